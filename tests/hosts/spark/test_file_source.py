"""The file source on Spark: the same results as in process, each file once, bad files set aside and counted."""

import os

import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

pytestmark = pytest.mark.spark
MICROS = 1_000_000


def rows(start, n=400):
    at = [(start + (i * 7) % n) * MICROS for i in range(n)]
    stamps = pl.Series("ts", at).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": stamps, "k": [f"k{i % 5}" for i in range(n)], "x": list(range(n))})


def put(folder, name, frame, at):
    folder.mkdir(exist_ok=True)
    frame.write_parquet(folder / name)
    os.utime(folder / name, (at, at))


def damage(path, change, at):
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, (at, at))


def query(folder, **options):
    packets = wr.read_parquet(folder, progress="ts", slack="400 seconds", name="p", **options)
    windows = packets.where("x >= 3").window(range="5 minutes", slide="1 minute").group_by("k")
    return windows.agg(n=wr.count(), top=wr.max("x"), mid=wr.median("x"))


def ran(frame, folder, name):
    writer = frame.writeStream.format("parquet").option("path", str(folder / name))
    running = writer.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True).start()
    running.awaitTermination()
    counts = [p.observedMetrics["windrow"].asDict() for p in running.recentProgress if "windrow" in p.observedMetrics]
    return {k: sum(c[k] or 0 for c in counts) for k in counts[0]} | {"batches": len(counts)} if counts else {}


def test_new_files_are_read_once_over_restarts_and_bad_ones_are_set_aside(spark, tmp_path):
    folder = tmp_path / "in"
    for i in range(3):
        put(folder, f"{i}.parquet", rows(i * 400), 100 + i)
    put(folder, "torn.parquet", rows(9_000), 103)
    damage(folder / "torn.parquet", lambda data: data[:-20], 103)
    put(folder, "spoiled.parquet", rows(0), 104)
    damage(folder / "spoiled.parquet", lambda data: data[:40] + bytes(40) + data[80:], 104)  # a page, not the foot
    first = ran(query(folder, streaming=True, max_files=2).to_spark(), tmp_path, "out")
    assert (first["rows_in"], first["files_bad"], first["batches"]) == (1200, 2, 3)
    put(folder, "3.parquet", rows(1200), 90)  # older than all that was read
    put(folder, "foreign.parquet", rows(0).drop("x"), 105)
    put(folder, "torn.parquet", rows(1600), 106)  # written anew, whole
    second = ran(query(folder, streaming=True, max_files=2).to_spark(), tmp_path, "out")
    assert (second["rows_in"], second["files_bad"], second["batches"]) == (800, 1, 2)
    assert ran(query(folder, streaming=True, max_files=2).to_spark(), tmp_path, "out") == {}
    found = read_committed(tmp_path / "out")
    expected = query(folder).collect()  # in process, to the end
    promised = found["window_end"].max()
    assert promised is not None
    compare(found, expected.filter(pl.col("window_end") <= promised), "streaming")
    assert expected.filter(pl.col("window_end") > promised).height
    bad = query(folder, streaming=True).bad_rows()
    assert ran(bad, tmp_path, "bad")["rows_bad"] == 2
    reasons = sorted(read_committed(tmp_path / "bad")["reason"].to_list())
    assert ["foreign.parquet is foreign" in reasons[0], "spoiled.parquet is torn" in reasons[1]] == [True, True]


def test_as_a_batch_it_equals_sparks_own_reader_and_the_process(spark, tmp_path):
    folder = tmp_path / "in"
    for i in range(3):
        put(folder, f"{i}.parquet", rows(i * 400), 100 + i)
    here = query(folder).collect()
    compare(pl.DataFrame(query(folder).to_spark().toArrow()).cast(here.schema), here, "batch")
    own = wr.stream(spark.read.parquet(str(folder)), progress="ts", slack="400 seconds", name="p")
    windows = own.where("x >= 3").window(range="5 minutes", slide="1 minute").group_by("k")
    compare(windows.agg(n=wr.count(), top=wr.max("x"), mid=wr.median("x")).collect(), here, "Spark's reader")
    both = own.union(wr.read_parquet(folder, progress="ts", name="q")).window(range="5 minutes").agg(n=wr.count())
    assert both.collect()["n"].sum() == 2 * 1200


def test_markers_in_files_make_promises(spark, tmp_path):
    folder = tmp_path / "in"
    marked = rows(0).with_columns(pl.lit(None, pl.Datetime("us", "UTC")).alias("done"))
    marker = pl.DataFrame({"ts": None, "k": None, "x": None, "done": rows(400, 1)["ts"]}, schema=marked.schema)
    put(folder, "0.parquet", pl.concat([marked, marker]), 1)
    packets = wr.read_parquet(folder, progress="ts", punctuation="done", streaming=True)
    counts = ran(packets.window(range="100 seconds").agg(n=wr.count()).to_spark(), tmp_path, "out")
    assert (counts["rows_in"], counts["rows_bad"], counts["rows_out"]) == (401, 0, 4)
    assert read_committed(tmp_path / "out")["n"].to_list() == [100] * 4


def test_markers_about_single_groups_close_their_windows_only(spark, tmp_path):
    """Over two micro-batches: what one group's marker releases in the first does not come again in the second."""
    folder = tmp_path / "in"
    marked = rows(0).with_columns(pl.lit(None, pl.Datetime("us", "UTC")).alias("done"))
    stamp = rows(200, 1)["ts"]
    about = [
        pl.DataFrame({"ts": None, "k": k, "x": None, "done": stamp}, schema=marked.schema) for k in ("k1", "k3", None)
    ]
    put(folder, "0.parquet", pl.concat([marked, *about[:2]]), 1)
    packets = wr.read_parquet(
        folder, progress="ts", punctuation="done", punctuation_by="k", streaming=True, max_files=1
    )
    query = packets.window(range="100 seconds").group_by("k").agg(n=wr.count())
    ran(query.to_spark(), tmp_path, "out")
    first = read_committed(tmp_path / "out")
    assert sorted(first["k"].to_list()) == ["k1", "k1", "k3", "k3"]
    put(folder, "1.parquet", about[2], 2)
    ran(query.to_spark(), tmp_path, "out")
    both = read_committed(tmp_path / "out")
    assert both.height == 10
    assert both.select("k", "window_end").is_unique().all()
    assert both["n"].sum() == 200
