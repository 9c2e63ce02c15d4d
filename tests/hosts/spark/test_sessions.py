"""A session on a real Spark: changes between micro-batches, a restart in its folder, state that is carried along."""

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


def rows(batch):
    at = range(50 * batch, 50 * batch + 55)  # the next batch begins before the end of this one
    return pl.DataFrame({"ts": at, "k": [t % 3 for t in at], "x": [t % 7 for t in at]}, schema=SCHEMA)


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
    return pl.concat(found)


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
        expected = alone(query, batches)
        compare(pl.concat([expected.clear(), *found]), expected, name)
        assert self.session.queries()[name].rows_out == expected.height > 0


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
    life.open({"brittle": brittle})
    session = life.session
    session.drop("sums", "brittle")
    session.add("deep", DEEP)  # needs another level: all state moves to a new checkpoint
    life.push()
    life.push()
    with pytest.raises(PlanError, match="running already"):
        session.start()
    session.stop()
    life.check("counts", COUNTS, [0, 1, 3, 4, 5])
    life.check("deep", DEEP, [4, 5])
    assert [p.name for p in (tmp_path / "session").glob("checkpoint*")] == ["checkpoint-1"]
    kept = pl.concat([pl.read_parquet(p) for p in (tmp_path / "session" / "results").glob("sums-2/*/*.parquet")])
    compare(kept, alone(SUMS, [1, 2, 3]), "what a dropped query has put out stays")
    assert sum(n for name, n, _ in life.sunk if name == "counts") == alone(COUNTS, [0, 1, 3, 4, 5]).height
