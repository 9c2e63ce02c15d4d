"""A checkpoint belongs to one query: what differs is named, and so is a torn or foreign file."""

import json

import polars as pl
import pytest
from pyspark.errors import StreamingQueryException

import windrow as wr
from windrow.cli.run import reason
from windrow.errors import CheckpointError
from windrow.hosts.spark.checkpoint import check
from windrow.hosts.spark.shard import difference


@pytest.fixture(scope="module")
def history(spark, tmp_path_factory):
    """A folder with data and the checkpoint of a finished run over it."""
    folder = tmp_path_factory.mktemp("history")
    data = pl.DataFrame({"t": [1, 12, 25], "k": ["a", "b", "a"], "x": [1, 2, 3]})
    (folder / "data").mkdir()
    data.write_parquet(folder / "data" / "0.parquet")
    run(spark, folder, query(spark, folder), shards=2)
    data.write_parquet(folder / "data" / "1.parquet")
    return folder


def query(spark, folder, size=10, t="BIGINT"):
    source = spark.readStream.schema("t BIGINT, k STRING, x BIGINT").parquet(str(folder / "data"))
    typed = source.withColumn("t", source["t"].cast(t))
    return wr.stream(typed, progress="t", slack=5).window(range=size).group_by("k").agg(n=wr.count())


def run(spark, folder, built, shards):
    spark.conf.set("spark.sql.shuffle.partitions", shards)
    try:
        writer = built.to_spark(shards).writeStream.format("noop").option("checkpointLocation", str(folder / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)


@pytest.mark.spark
def test_another_shard_count_is_refused_and_named(spark, history):
    with pytest.raises(StreamingQueryException) as error:
        run(spark, history, query(spark, history), shards=4)
    message = reason(error.value)
    assert "shards:" in message
    assert "checkpoint: 2" in message
    assert "now:        4" in message


@pytest.mark.spark
def test_another_query_is_refused_and_both_are_shown(spark, history):
    with pytest.raises(StreamingQueryException) as error:
        run(spark, history, query(spark, history, size=20), shards=2)
    message = reason(error.value)
    assert "[RANGE 10, SLIDE 10, WA t]" in message
    assert "[RANGE 20, SLIDE 20, WA t]" in message
    assert "shards" not in message


@pytest.mark.spark
def test_another_column_type_is_refused_and_named(spark, history):
    with pytest.raises(StreamingQueryException) as error:
        run(spark, history, query(spark, history, t="INT"), shards=2)
    assert "source columns" in reason(error.value)
    assert "Int32" in reason(error.value)


def test_a_difference_names_only_what_differs():
    stages = {"0": {"query": "a\nb", "algorithm": "paned", "source columns": {}, "result columns": {}}}
    text = difference({"stages": stages, "shards": 2}, {"stages": stages, "shards": 3})
    assert "shards" in text
    assert "query:" not in text


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint folder in miniature."""
    for name in ("offsets", "commits", "state/0/0"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "metadata").write_text('{"id":"x"}')
    (tmp_path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}\n-')
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    return tmp_path


def test_a_sound_checkpoint_passes(checkpoint, tmp_path):
    check(checkpoint)
    check(tmp_path / "not-there-yet")
    (tmp_path / "planned" / "windrow").mkdir(parents=True)  # to_spark(checkpoint=..) was called, and nothing started
    check(tmp_path / "planned")


@pytest.mark.parametrize(
    ("damaged", "content"),
    [("offsets/0", 'v1\n{"batchWater'), ("commits/0", ""), ("metadata", '{"id":'), ("offsets/1", "\0\0\0\0")],
)
def test_a_torn_log_is_named(checkpoint, damaged, content):
    (checkpoint / damaged).write_text(content)
    with pytest.raises(CheckpointError, match=damaged):
        check(checkpoint)


@pytest.mark.parametrize("foreign", ["holiday.jpg", "offsets/notes.txt"])
def test_a_foreign_file_is_named(checkpoint, foreign):
    (checkpoint / foreign).write_text("hello")
    with pytest.raises(CheckpointError, match=foreign):
        check(checkpoint)


def test_a_folder_that_is_no_checkpoint_is_refused(checkpoint):
    (checkpoint / "metadata").unlink()
    with pytest.raises(CheckpointError, match="not the checkpoint of a streaming query"):
        check(checkpoint)


@pytest.mark.spark
def test_a_flipped_or_lost_byte_in_the_state_is_found_by_its_checksum(history):
    check(history / "state")
    victim = sorted((history / "state" / "state").rglob("*.changelog"))[0]
    sound = victim.read_bytes()
    for damaged in (sound[:-1], sound + b"x", bytes([sound[0] ^ 1]) + sound[1:]):
        victim.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=victim.name):
            check(history / "state")
    victim.write_bytes(sound)
    check(history / "state")


@pytest.mark.spark
def test_the_identity_in_the_state_is_readable(spark, history):
    """The state store is Spark's own: its reader shows our identity as text, not as a pickle."""
    options = {"path": str(history / "state"), "stateVarName": "identity"}
    rows = spark.read.format("statestore").options(**options).load().collect()
    identities = [json.loads(r["value"]["json"]) for r in rows]
    assert {i["shards"] for i in identities} == {2}
    assert len(identities) == 2
