"""A join in order on Spark: streaming over a restart, each micro-batch as it is written, and batch."""

import os
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare, oracle

SECOND = 1_000_000
SIDES = {"left": "x", "right": "y"}
FILES = 3


def frame(side, number):
    """80 rows in 40 s; those of the right side are 15 s behind. In the second file they are four times as frequent."""
    rng = np.random.default_rng([number, list(SIDES).index(side)])
    rows = 320 if number == 1 else 80
    at = number * 40 * SECOND + np.sort(rng.integers(0, 40, rows)) * SECOND - 15 * SECOND * (side == "right")
    at[1::7] -= 2 * SECOND * (rng.random(len(at[1::7])) < 0.5)  # a little out of order
    stamps = pl.Series("ts", at).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": stamps, "k": rng.integers(0, 20, rows), SIDES[side]: np.arange(rows)})


def put(folder, numbers):
    for side in SIDES:
        (folder / side).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            frame(side, number).write_parquet(folder / side / f"{number}.parquet")
            os.utime(folder / side / f"{number}.parquet", (100 + number, 100 + number))


def query(source):
    """An adaptive join: in each of two shards it is busy for 3 % of its time, then for half of it, then 3 % again."""
    left, right = (wr.stream(source(side), "ts", name=side, slack="2 seconds") for side in SIDES)
    pairs = left.join(right, on="k", within=("-5 seconds", "5 seconds"), using="adaptive", cost=6_000)
    return pairs.select("k", "x", "y", u="greatest(ts, ts_right)").order_by("u", "x", "y DESC")


def in_order(rows):
    keys = [(row["u"], row["x"], -row["y"]) for row in rows.iter_rows(named=True)]
    return all(a <= b for a, b in pairwise(keys))


@pytest.mark.spark
def test_results_are_in_order_over_shards_micro_batches_and_a_restart(spark, tmp_path):
    def write(results, number):
        results.write.parquet(str(tmp_path / "out" / str(number)))

    def source(side):
        files = spark.readStream.schema(f"ts TIMESTAMP, k BIGINT, {SIDES[side]} BIGINT")
        return files.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in" / side))

    for numbers in (range(2), range(2, FILES)):
        put(tmp_path / "in", numbers)
        writer = query(source).to_spark(shards=2).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.start().awaitTermination()
    batches = sorted((tmp_path / "out").iterdir(), key=lambda folder: int(folder.name))
    found = [pl.concat([pl.read_parquet(f) for f in sorted(b.glob("*.parquet"))]) for b in batches]
    assert len([rows for rows in found if rows.height]) >= FILES
    out = pl.concat(found)
    assert in_order(out)
    data = {side: pl.concat([frame(side, number) for number in range(FILES)]) for side in SIDES}
    expected = oracle(query(lambda side: data[side]))
    assert out.height > expected.height // 2
    compare(out, expected.filter(pl.col("u") <= out["u"].max()), "streaming")
    batch = query(lambda side: spark.read.parquet(str(tmp_path / "in" / side)))
    finite = pl.DataFrame(batch.to_spark(shards=2).toArrow()).cast(batch.plan().schema)
    assert in_order(finite)
    compare(finite, expected, "batch")


def test_the_same_micro_batches_make_the_join_change_to_and_fro():
    run = query(lambda side: frame(side, 0).clear()).run()
    ways = []
    for number in range(FILES):
        for side in SIDES:
            run.push(side, frame(side, number))
            ways += [n.operator.filtering for n in run.graph.nodes if hasattr(n.operator, "filtering")]
    assert True in ways
    assert False in ways[ways.index(True) :]
