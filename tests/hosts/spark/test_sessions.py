"""A session on a real Spark: changes between micro-batches, a restart in its folder, state that is carried along."""

from datetime import UTC, datetime

import polars as pl
import pytest

import windrow as wr
from windrow.errors import CheckpointError, PlanError, QueryError
from windrow.testing import compare

pytestmark = pytest.mark.spark
SCHEMA = {"ts": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}
DDL = "ts BIGINT, k BIGINT, x BIGINT"
COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 20, SLIDE 10, WA ts] GROUP BY k"
SUMS = "SELECT k, sum(x) AS total FROM s [RANGE 20, SLIDE 20, WA ts] WHERE x > 2 GROUP BY k"
DEEP = (
    "SELECT max(n) AS most FROM (SELECT k, count(*) AS n FROM s [RANGE 10, SLIDE 10, WA ts] GROUP BY k) "
    "[RANGE 20, SLIDE 10, WA window_end]"
)
ROWS = "SELECT count(*) AS n, min(row_num) AS first FROM s [RANGE 20 ROWS, SLIDE 20 ROWS, WA row_num]"
ARRIVED = "SELECT ts, row_num, arrival_ts FROM s WHERE ts % 25 = 0"


def rows(batch):
    """The next batch begins before the end of this one. From the second on, one row is late, and one has no time."""
    at = [*range(50 * batch, 50 * batch + 55), *([1, None] if batch else [])]
    known = [t or 0 for t in at]
    return pl.DataFrame({"ts": at, "k": [t % 3 for t in known], "x": [t % 7 for t in known]}, schema=SCHEMA)


def brittle(stream):
    def lower(state):
        if state > 120:
            raise ValueError("too late for me")
        return state

    return stream.window(10).agg(last=wr.aggregate("brittle", int, max, lower, state="BIGINT", result="BIGINT")("ts"))


def alone(query, batches):
    stream = wr.stream(pl.DataFrame(schema=SCHEMA), progress="ts", slack=5, name="s")
    meant = wr.sql(query, s=stream) if isinstance(query, str) else query(stream)
    run, found = meant.run(), [pl.DataFrame(schema=meant.schema)]
    for batch in batches:
        run.push("s", rows(batch))
        found.append(run.results())
    counts = run.counts["rows_late"], run.counts["rows_bad"]
    return pl.concat(found), counts


class Life:
    """A session over a folder of files, one for each micro-batch."""

    def __init__(self, folder, **options):
        self.folder, self.batch, self.sunk = folder, 0, []
        (folder / "in").mkdir()
        self.open(**options)

    def open(self, queries=None, **options):
        stream = wr.read_parquet(self.folder / "in", "ts", streaming=True, slack=5, schema=DDL)
        sink = lambda name, frame, batch: self.sunk.append((name, frame.count(), batch))  # noqa: E731
        self.session = wr.Session(folder=self.folder / "session", sink=sink, s=stream, **options)
        python = {name: query(self.session.streams["s"]) for name, query in (queries or {}).items()}
        self.session.start(queries=python)

    def push(self):
        file = self.folder / "in" / f".{self.batch}"
        rows(self.batch).write_parquet(file)
        file.rename(self.folder / "in" / f"{self.batch}.parquet")
        self.batch += 1
        self.session.process_available()

    def check(self, name, query, batches):
        found = [frame for _, frame in self.session.results(name)]
        expected, counts = alone(query, batches)
        compare(pl.concat([expected.clear(), *found]), expected, name)
        info = self.session.queries()[name]
        assert info.rows_out == expected.height > 0
        assert (info.rows_late, info.rows_bad) == counts
        bad = [frame for _, frame in self.session.bad_rows(name)]
        assert sum(frame.height for frame in bad) == info.rows_bad > 0
        assert {reason for frame in bad for reason in frame["reason"]} == {"the progress value is NULL"}


def test_a_life(spark, tmp_path):
    life = Life(tmp_path, shards=2, depth=1)
    session = life.session
    session.add(counts=COUNTS, brittle=brittle(session.streams["s"]))
    life.push()
    session.add("sums", SUMS)
    life.push()
    session.pause("counts")
    life.push()  # the brittle one fails; the others do not notice
    failed = session.queries()["brittle"]
    assert (failed.status, session.queries()["sums"].status) == ("failed", "running")
    assert "too late for me" in (failed.error or "")
    session.resume("counts")
    session.set_strategy("BFS")
    life.push()
    session.stop()

    with pytest.raises(CheckpointError, match="has 2 shards, which its state is divided by for good"):
        life.open(shards=3)
    with pytest.raises(QueryError, match="'brittle' was not given as SQL: give it again"):
        life.open()
    with pytest.raises(QueryError, match=r"brittle\. Give them again, as they were: start"):
        life.session.add("more", SUMS)
    life.session.drop("brittle")  # then nobody needs to give it again
    life.session.start()
    session = life.session
    session.drop("sums")
    session.add("deep", DEEP)  # needs another level: all state moves to a new checkpoint
    life.push()
    session.add(by_rows=ROWS, arrived=ARRIVED)
    life.push()
    with pytest.raises(PlanError, match="running already"):
        session.start()
    with pytest.raises(CheckpointError, match="another program runs the session"):
        life.open()
    assert not session.wait(0.1)
    session.stop()
    assert session.wait()
    life.session = session
    life.check("counts", COUNTS, [0, 1, 3, 4, 5])
    life.check("deep", DEEP, [4, 5])
    arrivals(session)
    assert [p.name for p in (tmp_path / "session").glob("checkpoint*")] == ["checkpoint-1"]
    kept = pl.concat([pl.read_parquet(p) for p in (tmp_path / "session" / "results").glob("sums-2/*/*.parquet")])
    compare(kept, alone(SUMS, [1, 2, 3])[0], "what a dropped query has put out stays")
    assert sum(n for name, n, _ in life.sunk if name == "counts") == alone(COUNTS, [0, 1, 3, 4, 5])[0].height


def arrivals(session):
    """Rows have the numbers that they have in the stream, whenever a query begins, and the time of their file."""
    before = sum(rows(batch).height for batch in range(5))
    [(_, found)] = session.results("arrived")
    expected = [(t, before + i) for i, t in enumerate(rows(5)["ts"]) if t is not None and t % 25 == 0]
    assert sorted(found["row_num"]) == [number for _, number in expected]
    assert sorted(found.select("ts", "row_num").rows()) == sorted(expected)
    assert found["arrival_ts"].n_unique() == 1
    assert found["arrival_ts"].max() > datetime(2024, 1, 1, tzinfo=UTC)
    [(_, windows)] = session.results("by_rows")
    first = -(-before // 20) * 20
    assert (first, 20) in windows.select("first", "n").rows()
