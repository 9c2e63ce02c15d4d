"""The exchange: where groups live must never change, and shards must be spread over tasks."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import CheckpointError
from windrow.hosts.spark.exchange import _murmur3, decode, encode, shard_ids
from windrow.operators.kernels.key_hash import hashes
from windrow.planner.partition import ByKeys

KEYS = {
    "text": ["", "a", "10.0.0.1", "exactly8", "nine-char", "ünï", "x" * 100, None],
    "int": [0, 1, -1, 2**63 - 1, -(2**63), 42, 7, None],
    "float": [0.0, -0.0, 1.5, float("nan"), float("inf"), -2.0, 1e300, None],
}
PINNED = {
    "text": [12035550249420947055, 14009206508727675862, 15884494942072552995, 10879554848709721165],
    "int": [12035550249420947055, 6791897765849424158, 6755974106381971767, 7622863033291099422],
    "all": [3174391826616229454, 15368930336718786247, 3617465761310771063, 14793744060709349484],
}


def test_hashes_are_pinned_because_checkpoints_depend_on_them():
    frame = pl.DataFrame(KEYS)
    assert hashes(frame, ["text"]).tolist()[:4] == PINNED["text"]
    assert hashes(frame, ["int"]).tolist()[:4] == PINNED["int"]
    assert hashes(frame, ["text", "int", "float"]).tolist()[:4] == PINNED["all"]


def test_equal_keys_hash_equal():
    found = hashes(pl.DataFrame({"f": [0.0, -0.0, float("nan"), -float("nan")]}), ["f"])
    assert found[0] == found[1]
    assert found[2] == found[3]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.one_of(st.none(), st.text(max_size=30)), min_size=1, max_size=40))
def test_a_hash_depends_on_the_value_alone_not_on_its_neighbours(values):
    frame = pl.DataFrame({"k": values}, schema={"k": pl.String})
    alone = [int(hashes(frame[i : i + 1], ["k"])[0]) for i in range(frame.height)]
    assert hashes(frame, ["k"]).tolist() == alone
    assert len(set(alone)) == len(set(values))  # a collision of 64-bit hashes here would be a bug


def test_split_keeps_every_row_and_every_group_in_one_shard():
    frame = pl.DataFrame({"k": [f"host{i % 50}" for i in range(1000)], "x": range(1000)})
    parts = dict(ByKeys(("k",)).split(frame, 4))
    assert sorted(x for part in parts.values() for x in part["x"]) == list(range(1000))
    owners = [set(part["k"]) for part in parts.values()]
    assert sum(map(len, owners)) == 50
    assert min(map(len, owners)) >= 5  # spread, not heaped


def test_a_frame_survives_the_blob():
    frame = pl.DataFrame({"k": ["a", None], "n": [1, 2]})
    assert decode(encode(frame), "it").equals(frame)


def test_a_torn_blob_is_named():
    with pytest.raises(CheckpointError, match=r"state chunk 'x'.*torn"):
        decode(encode(pl.DataFrame({"n": range(100)}))[:200], "state chunk 'x'")


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16])
def test_shard_ids_begin_with_zero_and_fall_into_different_partitions(shards):
    ids = shard_ids(shards)
    assert ids[0] == 0  # shard 0 exists whatever the count: it notices a change of the count
    assert len({_murmur3(i) % shards for i in ids}) == shards


@pytest.mark.spark
def test_spark_agrees_that_shards_are_spread_over_tasks(spark):
    from pyspark.sql import functions as f

    ids = spark.createDataFrame([(i,) for i in shard_ids(5)], "shard INT")
    assert [r[0] for r in ids.select(f.hash("shard")).collect()] == [_murmur3(i) for i in shard_ids(5)]
    tasks = ids.repartition(5, "shard").select(f.spark_partition_id()).distinct().count()
    assert tasks == 5
