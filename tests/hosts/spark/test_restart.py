"""A program of many queries dies by SIGKILL again and again; each result is that of a run never disturbed."""

import datetime as dt
import json
import os
import random
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deltalake import DeltaTable
from killed import QUERIES, SLACK

import ready_workers
import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.sources.kafka.reading import of_now
from windrow.sources.kafka.topic import Topic
from windrow.sources.links import Link, packets, write
from windrow.testing import after_file, compare, run_until

pytestmark = pytest.mark.kills
PROGRAM = Path(__file__).with_name("killed.py")
KILLS = int(os.environ.get("WINDROW_KILLS", "3"))  # more in make soak
STOPS = ("written", "committed")  # the last kills come between the write and a commit: of the Delta table, and of Spark
MINUTES = KILLS + 2  # of rows, in files of a minute


@pytest.fixture(scope="module")
def rows():
    return packets(Link("main", rate=20, hosts=20, band=3.2), MINUTES * 60)


@pytest.fixture(scope="module")
def out(rows, broker, tmp_path_factory):
    """The folder of all results, after the last run has come to its end."""
    folder = tmp_path_factory.mktemp("killed")
    write(rows, folder / "main", step=60)
    topics(rows, broker, folder)
    command = [sys.executable, ready_workers.__file__, str(folder / "python"), str(PROGRAM), str(folder)]
    rng = random.Random(7)
    kills = [run_until(command, some_moment(folder, rng)) for _ in range(KILLS - len(STOPS))]
    kills += [run_until(command, at_the_table(folder, where)) for where in STOPS]
    assert all(kills)
    (folder / "stop").unlink()
    assert not run_until(command, lambda: False)
    files = len(list((folder / "main").glob("*.parquet")))
    assert files > MINUTES
    for name in QUERIES:  # one file in each micro-batch
        assert len(list((folder / f"{name}-state" / "commits").glob("[0-9]*"))) == files
    return folder


def topics(rows, broker, folder):
    """The rows in a topic, too, as many in a micro-batch as in a file; and one for results."""
    lines = rows.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).write_ndjson().splitlines()
    broker.make("main", 3)
    broker.make("sliding", 2)
    for part in range(3):
        broker.put("main", lines[part::3], part)
    size = -(-rows.height // len(list((folder / "main").glob("*.parquet"))))
    where = {"brokers": broker.brokers, "main": "main", "sliding": "sliding", "rows": size}
    (folder / "topics.json").write_text(json.dumps(where))


def some_moment(folder, rng):
    """In the middle of a micro-batch of any query (its offsets are logged, its commit is not), or after its commit.

    The others are wherever they are by then.
    """
    log = folder / f"{rng.choice(sorted(QUERIES))}-state" / rng.choice(["offsets", "offsets", "commits"])
    done = max((int(p.name) for p in log.glob("[0-9]*")), default=-1)
    return after_file(log / str(min(done + 1, MINUTES)), seconds=rng.uniform(0, 1.2))


def at_the_table(folder, where):
    """When the Delta sink has come to this place; the others are wherever they are by then."""
    (folder / "stop").write_text(where)
    return after_file(folder / where)


def result(out, name):
    """What a reader of the sink sees."""
    if name == "sliding":
        where = json.loads((out / "topics.json").read_text())
        return messages_of(where["brokers"], name)
    return pl.read_delta(str(out / name)) if name == "joined" else read_committed(out / name)


def messages_of(brokers, name):
    """The results in a topic, as far as they are committed."""
    at = Topic(brokers, name)
    values = pl.concat(of_now(at, ["value"])[1])["value"].cast(pl.String)
    times = [pl.col(name).str.to_datetime(time_zone="UTC", time_unit="us") for name in ("window_start", "window_end")]
    return pl.DataFrame([json.loads(value) for value in values]).with_columns(times)


def promised(rows, slack=3_200_000):
    return rows["ts"].to_physical().max() - slack


def meant(name, rows):
    """What the query means over all rows, to the end, with times as numbers."""
    query = QUERIES[name](wr.stream(rows, progress="ts", slack=SLACK, name="main"))
    return numbered(query.collect())


def numbered(frame):
    return frame.with_columns(pl.selectors.datetime().to_physical())


@pytest.mark.parametrize(("name", "behind"), [("sliding", 0), ("two_stages", None), ("joined", 1_000_000)])
def test_nothing_is_lost_doubled_or_changed(name, behind, rows, out):
    """``behind``: a pair can still come for a row as long as the other side may bring one. None: the source was asked
    when it had no more rows, which closes all windows.
    """
    found, expected = numbered(result(out, name)), meant(name, rows)
    closed = expected if behind is None else expected.filter(pl.col("window_end") <= promised(rows) - behind)
    assert closed.height > 3
    compare(found, closed, name)


def test_a_table_leaves_out_what_was_not_committed(out):
    """The files of the attempt that was killed before its commit are there, and belong to nothing."""
    table = DeltaTable(out / "joined")
    there = {str(f.relative_to(out / "joined")) for f in (out / "joined").rglob("part-*.parquet")}
    added = pl.DataFrame(table.get_add_actions(flatten=True))
    assert there > set(added["path"])
    batches = added["path"].str.split("/").list.first()
    assert batches.n_unique() == batches.str.slice(0, len("batch-00000000")).n_unique() == table.version()


def test_pairs_and_rows_without_a_partner_come_out_once(rows, out):
    """A row without a partner comes out when its window is over; a pair at once."""
    found, expected = numbered(read_committed(out / "outer")), meant("outer", rows)
    time, length = pl.coalesce("ts", "ts_right"), 5_000_000
    alone = pl.col("ts").is_null() | pl.col("ts_right").is_null()
    closed = expected.filter(~alone | (time // length * length + length <= promised(rows)))
    assert 0 < closed.filter(alone).height < closed.height
    compare(found, closed, "outer")


def test_sequences_and_as_of_joins_are_those_of_all_rows(rows, out):
    """A sequence comes out when all streams have promised beyond its time."""
    found, expected = numbered(read_committed(out / "followed")), meant("followed", rows)
    closed = expected.filter(pl.col("begin") + 5_000_000 < promised(rows))
    assert closed.height > 100
    compare(found, closed, "followed")


def test_a_join_with_limits_sheds_the_rows_that_it_always_sheds(rows, out):
    """Results come out by stretches of two seconds."""
    found, expected = numbered(read_committed(out / "limited")), meant("limited", rows)
    length = 2_000_000
    closed = expected.filter(pl.max_horizontal("ts", "ts_right") < promised(rows) // length * length)
    assert closed.height > 300
    compare(found, closed, "limited")


def test_pairs_in_order_are_those_of_all_rows_and_in_order(rows, out):
    found, expected = numbered(read_committed(out / "pairs_in_order")), meant("pairs_in_order", rows)
    closed = expected.filter(pl.col("u") < promised(rows))
    assert closed.height > 300
    assert found.equals(closed)


def test_each_row_counts_once_in_each_of_its_windows(rows, out):
    """By hand, as far as the last promise closes them."""
    ends = rows.filter(pl.col("len") > 60)["ts"].to_physical() // 60_000_000
    last = promised(rows) // 60_000_000
    assert result(out, "sliding")["n"].sum() == sum(((ends + i) <= last).sum() for i in range(1, 5))


def test_windows_of_every_fiftieth_row_are_those_of_all_rows(rows, out):
    found, expected = numbered(read_committed(out / "by_row")), meant("by_row", rows)
    assert found.height > 80
    compare(found, expected.filter(pl.col("window_end") < promised(rows)), "by row")


def test_each_distinct_row_comes_once_and_in_order(rows, out):
    kept = rows.filter(pl.col("len") > 60).select("ts", "src_ip", "len").unique()
    expected = kept.filter(pl.col("ts").to_physical() < promised(rows)).sort("ts", "src_ip", "len")
    assert expected.height > 1000
    assert numbered(read_committed(out / "in_order")).equals(numbered(expected))


def test_late_rows_and_sessions_add_up(rows, out):
    """Less slack than disorder: some rows are late. Each row is in a result or in the late rows, once."""
    found, left = read_committed(out / "sessions"), read_committed(out / "late")
    assert left.height > 0
    assert left["rows"].sum() == left.height
    rows = rows.select("ts", "src_ip", "src_port", "len")
    assert left.select(rows.columns).is_unique().all()
    # What is neither late nor released is in sessions that are still open: they end after the last promise.
    in_time = rows.join(left.select(rows.columns), on=rows.columns, how="anti", nulls_equal=True)
    assert in_time.height == rows.height - left.height
    expected = sessions_of(in_time).filter(pl.col("window_end") <= promised(rows, 1_000_000))
    compare(numbered(found).select(expected.columns), expected, "sessions")


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
