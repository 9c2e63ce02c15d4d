"""The driver dies by SIGKILL again and again; the result is that of a run that was never disturbed."""

import datetime as dt
import random
import sys

import numpy as np
import polars as pl
import pytest

from windrow.sinks.parquet import read_committed
from windrow.sources.links import Link, packets, write
from windrow.testing import after_file, compare, run_until

QUERY = """SELECT src_ip, count(*) AS n, max(len) AS longest, avg(len) AS mean
FROM main [RANGE 4 MINUTES, SLIDE 1 MINUTE, WA ts] WHERE len > 60 GROUP BY src_ip"""
MINUTES = 16
KILLS = 6


def command(folder, name, slack="3.2 seconds", reader="spark-parquet", most=1):
    return [
        *(sys.executable, "-m", "windrow.cli", "run", str(folder / "query.sql")),
        *("--source", f"main={reader}:{folder / 'main'}", "--progress", "ts", "--slack", slack),
        *("--sink", f"parquet:{folder / name}", "--checkpoint", str(folder / f"{name}-state")),
        *("--once", "--max-files", str(most)),
    ]


@pytest.mark.kills
def test_killed_six_times_nothing_is_lost_doubled_or_changed(tmp_path):
    link = Link("main", rate=60, hosts=20, band=3.2)
    rows = packets(link, MINUTES * 60)
    write(rows, tmp_path / "main", step=60)
    (tmp_path / "query.sql").write_text(QUERY)
    state = tmp_path / "killed-state"
    rng = random.Random(7)
    kills = 0
    for _ in range(KILLS):
        # In the middle of a micro-batch (its offsets are logged, its commit is not), or just after its commit.
        log = rng.choice(["offsets", "offsets", "commits"])
        after = max((int(p.name) for p in (state / log).glob("[0-9]*")), default=-1)
        moment = after_file(state / log / str(after + rng.choice([1, 2])), seconds=rng.uniform(0, 0.9))
        kills += run_until(command(tmp_path, "killed"), moment)
    assert kills >= 5
    assert not run_until(command(tmp_path, "killed"), lambda: False)
    # The same query to the end in one go, with other micro-batches and our own reader.
    assert not run_until(command(tmp_path, "undisturbed", reader="parquet", most=5), lambda: False)
    killed = read_committed(tmp_path / "killed")
    compare(killed, read_committed(tmp_path / "undisturbed"), "killed")
    assert killed.select("src_ip", "window_end").is_unique().all()
    assert killed["n"].sum() == expected_count(rows)


def expected_count(rows):
    """Each row counts once in each of its four windows, as far as the last promise closes them."""
    ends = rows.filter(pl.col("len") > 60)["ts"].to_physical() // 60_000_000
    promised = (rows["ts"].to_physical().max() - 3_200_000) // 60_000_000
    return sum(((ends + i) <= promised).sum() for i in range(1, 5))


LATE_QUERY = """SELECT src_ip, count(*) AS n, median(len) AS typical, first(src_port) AS opened
FROM main [SESSION 20 SECONDS, WA ts, LATE SIDE] GROUP BY src_ip"""


@pytest.mark.kills
def test_killed_three_times_late_rows_and_sessions_add_up(tmp_path):
    """Less slack than disorder: some rows are late. Each row is in a result or in the late rows, once."""
    link = Link("main", rate=20, hosts=30, band=3.2)
    rows = packets(link, 7 * 60)
    write(rows, tmp_path / "main", step=60)
    (tmp_path / "query.sql").write_text(LATE_QUERY)
    state = tmp_path / "out-state"
    late = [
        *command(tmp_path, "out", "1 second", reader="parquet"),
        "--late-rows",
        f"parquet:{tmp_path / 'late'}",
    ]
    rng = random.Random(3)
    kills = 0
    for _ in range(3):
        after = max((int(p.name) for p in (state / "offsets").glob("[0-9]*")), default=-1)
        moment = after_file(state / "offsets" / str(after + 1), seconds=rng.uniform(0.1, 1.2))
        kills += run_until(late, moment)
    assert kills >= 2
    assert not run_until(late, lambda: False)
    found, left = read_committed(tmp_path / "out"), read_committed(tmp_path / "late")
    assert left.height > 0
    assert left["rows"].sum() == left.height
    rows = rows.select("ts", "src_ip", "src_port", "len")
    assert left.select(rows.columns).is_unique().all()
    # What is neither late nor released is in sessions that are still open: they end after the last promise.
    late_by = rows.join(left.select(rows.columns), on=rows.columns, how="anti", nulls_equal=True)
    assert late_by.height == rows.height - left.height
    promised = rows["ts"].to_physical().max() - 1_000_000
    expected = sessions_of(late_by).filter(pl.col("window_end") <= promised)
    compare(found.select(expected.columns).with_columns(pl.col("window_end").to_physical()), expected, "sessions")


def sessions_of(rows):
    """The sessions of each host, by hand."""
    out = []
    for (ip,), mine in rows.sort("ts").group_by("src_ip", maintain_order=True):
        run = []
        for row in mine.iter_rows(named=True):
            if run and (row["ts"] - run[-1]["ts"]).total_seconds() >= 20:
                out.append((ip, run))
                run = []
            run.append(row)
        out.append((ip, run))
    ends = [
        (r[-1]["ts"].replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        for _, r in out
    ]
    return pl.DataFrame(
        {
            "src_ip": [ip for ip, _ in out],
            "window_end": [e + 20_000_000 for e in ends],
            "n": [len(r) for _, r in out],
            "typical": [float(np.median([x["len"] for x in r])) for _, r in out],
        },
        schema_overrides={"window_end": pl.Int64},
    )


ROW_QUERY = "SELECT DISTINCT ts, src_ip, len FROM main WHERE len > 60 ORDER BY ts, src_ip, len"


@pytest.mark.kills
def test_killed_twice_each_row_comes_once_and_in_order(tmp_path):
    link = Link("main", rate=30, hosts=20, band=3.2)
    rows = packets(link, 6 * 60)
    write(pl.concat([rows, rows[::3]]).sort(pl.int_range(pl.len()) % rows.height), tmp_path / "main", step=60)
    (tmp_path / "query.sql").write_text(ROW_QUERY)
    state = tmp_path / "out-state"
    rng = random.Random(5)
    kills = 0
    for _ in range(2):
        after = max((int(p.name) for p in (state / "offsets").glob("[0-9]*")), default=-1)
        moment = after_file(state / "offsets" / str(after + 1), seconds=rng.uniform(0.1, 1.2))
        kills += run_until(command(tmp_path, "out", reader="parquet"), moment)
    assert kills == 2
    assert not run_until(command(tmp_path, "out", reader="parquet"), lambda: False)
    found = read_committed(tmp_path / "out")
    kept = rows.filter(pl.col("len") > 60).select("ts", "src_ip", "len").unique()
    promised = rows["ts"].to_physical().max() - 3_200_000
    expected = kept.filter(pl.col("ts").to_physical() < promised).sort("ts", "src_ip", "len")
    assert found.height > 3000
    assert found.with_columns(pl.col("ts").to_physical()).equals(expected.with_columns(pl.col("ts").to_physical()))
