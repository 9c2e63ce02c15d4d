"""The file source on Spark: the same results as in process, each file once, bad files set aside and counted."""

import os

import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

pytestmark = pytest.mark.spark
MICROS = 1_000_000
DAY = 86_400


def rows(start, n=400):
    at = [(start + (i * 7) % n) * MICROS for i in range(n)]
    stamps = pl.Series("ts", at).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": stamps, "k": [f"k{i % 5}" for i in range(n)], "x": list(range(n))})


def put(folder, name, frame, at):
    folder.mkdir(exist_ok=True)
    frame.write_parquet(folder / name)
    os.utime(folder / name, (30 * DAY + at, 30 * DAY + at))


def damage(path, change, at):
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, (30 * DAY + at, 30 * DAY + at))


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


@pytest.mark.filterwarnings("ignore::windrow.WindrowWarning")  # its times do look like seconds
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
    put(folder, "spoiled.parquet", rows(2000), 107)  # this one, too
    put(folder, "old.parquet", rows(0), 104 - 8 * DAY)
    second = ran(query(folder, streaming=True, max_files=2).to_spark(), tmp_path, "out")
    assert (second["rows_in"], second["files_bad"], second["batches"]) == (1200, 2, 3)
    assert ran(query(folder, streaming=True, max_files=2).to_spark(), tmp_path, "out") == {}
    found = read_committed(tmp_path / "out")
    (folder / "old.parquet").rename(tmp_path / "old.parquet")
    expected = query(folder).collect()  # in process, to the end
    promised = found["window_end"].max()
    assert promised is not None
    compare(found, expected.filter(pl.col("window_end") <= promised), "streaming")
    assert expected.filter(pl.col("window_end") > promised).height
    damage(folder / "spoiled.parquet", lambda data: data[:40] + bytes(40) + data[80:], 104)
    bad = query(folder, streaming=True).bad_rows()
    assert ran(bad, tmp_path, "bad")["rows_bad"] == 2
    (tmp_path / "old.parquet").rename(folder / "old.parquet")
    assert ran(bad, tmp_path, "bad")["rows_bad"] == 1
    reasons = sorted(read_committed(tmp_path / "bad")["reason"].to_list())
    assert [
        f"{name} {what}" in r
        for (name, what), r in zip(
            (("foreign.parquet", "does not fit"), ("old.parquet", "is too old"), ("spoiled.parquet", "is damaged")),
            reasons,
            strict=True,
        )
    ] == [True] * 3


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
    counts = ran(query.to_spark(), tmp_path, "out")
    assert (counts["rows_in"], counts["rows_bad"], counts["rows_out"]) == (402, 0, 4)
    first = read_committed(tmp_path / "out")
    assert sorted(first["k"].to_list()) == ["k1", "k1", "k3", "k3"]
    put(folder, "1.parquet", about[2], 2)
    ran(query.to_spark(), tmp_path, "out")
    both = read_committed(tmp_path / "out")
    assert both.height == 10
    assert both.select("k", "window_end").is_unique().all()
    assert both["n"].sum() == 200


def test_a_stream_starts_over_an_empty_folder_and_takes_what_fits(spark, tmp_path):
    """Declared columns; then a file with a narrower type, one without a column that is not needed, one too wide."""
    folder = tmp_path / "in"
    declared = "ts TIMESTAMP, k STRING, x BIGINT, note STRING"
    run = query(folder, schema=declared, streaming=True).to_spark
    assert ran(run(), tmp_path, "out")["rows_in"] == 0
    put(folder, "0.parquet", rows(0).with_columns(pl.col("x").cast(pl.Int32)), 100)
    put(folder, "1.parquet", rows(400).with_columns(pl.col("x").cast(pl.Float64)), 101)
    put(folder, "2.parquet", rows(400).with_columns(pl.lit(1).alias("note")), 102)
    put(folder, "3.parquet", rows(800), 103)
    counts = ran(run(), tmp_path, "out")
    assert (counts["rows_in"], counts["files_bad"]) == (1200, 1)
    found = read_committed(tmp_path / "out")
    expected = query(folder, schema=declared).collect()
    compare(found, expected.filter(pl.col("window_end") <= found["window_end"].max()), "streaming")
    assert found.height


FOLDERS = {
    "whole": ["1", "-2", "007"],
    "long": ["1", "3000000000"],
    "huge": ["123456789012345678901", "5"],
    "share": ["1.5", "2", "__HIVE_DEFAULT_PARTITION__"],
    "mixed": ["1.5", "3000000000"],
    "day": ["2024-01-01", "2024-02-03"],
    "at": ["2024-01-01", "2024-01-01 10%3A00%3A00.5"],
    "text": ["a%2Fb", "c d", "x%ZZ", "2024-13-01", "e=f"],
}


def test_columns_in_folder_names_are_those_that_spark_sees(spark, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # Spark reads times in folders as local ones
    try:
        for name, values in FOLDERS.items():
            for i, value in enumerate(values):
                (tmp_path / name / f"{name}={value}").mkdir(parents=True)
                pl.DataFrame({"t": [i]}).write_parquet(tmp_path / name / f"{name}={value}" / "0.parquet")
            here = wr.read_parquet(tmp_path / name, progress="t")
            there = wr.stream(spark.read.parquet(str(tmp_path / name)), progress="t")
            assert here.schema == there.schema, name
            compare(here.collect(), there.collect(), name)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")


def many_groups(start):
    return pl.DataFrame({"t": range(start, start + 2000), "k": range(start, start + 2000)})


def few_groups(start):
    return pl.DataFrame({"t": [start + i // 10 for i in range(2000)], "k": [i % 3 for i in range(2000)]})


def counting(folder, **options):
    packets = wr.read_parquet(folder, progress="t", slack=5, streaming=True, name="p")
    return packets.window(range=10, **options).group_by("k").agg(n=wr.count())


def test_a_removed_file_does_not_change_the_algorithm_of_a_restart(spark, tmp_path):
    """The oldest file chose it, at every start anew (issue 11): it is kept, or not chosen by files at all."""
    folder, state = tmp_path / "in", tmp_path / "out-state"
    put(folder, "0.parquet", many_groups(0), 100)
    first = counting(folder)
    assert "algorithm buffering: the fastest" in first.explain(checkpoint=state)
    assert "algorithm paned: nothing is known of the stream" in first.explain()
    ran(first.to_spark(checkpoint=state), tmp_path, "out")
    (folder / "0.parquet").unlink()
    put(folder, "1.parquet", few_groups(2000), 101)
    second = counting(folder)
    assert "algorithm paned: the fastest" in second.explain(checkpoint=tmp_path / "new")
    assert "algorithm paned: nothing is known of the stream" in second.explain()
    assert "algorithm buffering: as at the first start" in second.explain(checkpoint=state)
    ran(second.to_spark(checkpoint=state), tmp_path, "out")
    found = read_committed(tmp_path / "out")
    whole = wr.stream(pl.concat([many_groups(0), few_groups(2000)]), progress="t").window(range=10).group_by("k")
    expected = whole.agg(n=wr.count()).collect()
    compare(found, expected.filter(pl.col("window_end") <= found["window_end"].max()), "restarted")
    wr.check_checkpoint(state)
    put(folder, "2.parquet", few_groups(3000), 102)
    with pytest.raises(Exception, match="using='buffering'"):
        ran(counting(folder, using="paned").to_spark(checkpoint=state), tmp_path, "out")


def test_a_checkpoint_is_for_endless_queries(spark, tmp_path):
    put(tmp_path / "in", "0.parquet", rows(0), 100)
    with pytest.raises(wr.QueryError, match="endless"):
        query(tmp_path / "in").to_spark(checkpoint=tmp_path / "state")
