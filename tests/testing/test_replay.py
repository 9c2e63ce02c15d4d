"""The public test helpers: they pass right queries and catch wrong ones."""

import math
import random

import polars as pl
import pytest

import windrow as wr
from windrow.errors import DataError
from windrow.operators import Paned, Wid
from windrow.testing import Mismatch, compare, load, replay, run_local

RNG = random.Random(3)
ROWS = [
    {
        "t": RNG.randint(-200, 200),
        "k": RNG.choice(["a", "b", None]),
        "x": RNG.choice([None, 1, -5, 2**40]),
        "f": RNG.random(),
    }
    for _ in range(150)
]


def stream(**options):
    return wr.stream(ROWS, progress="t", slack=25, **options)


QUERIES = {
    "sliding": lambda: stream().window(range=30, slide=7).group_by("k").agg(n=wr.count(), s=wr.sum("x"), m=wr.min("x")),
    "wid": lambda: stream().window(range=30, slide=7, using="wid").group_by("k").agg(n=wr.count(), a=wr.avg("f")),
    "hopping": lambda: stream().window(range=5, slide=11).agg(v=wr.var("f"), sd=wr.stddev_pop("x")),
    "filter, having, expressions": lambda: wr.sql(
        "SELECT k, max(x) - min(x) AS spread FROM s [RANGE 40, SLIDE 20] WHERE f > 0.2 GROUP BY k HAVING count(*) > 2",
        s=stream(),
    ),
    "union": lambda: (
        stream(name="a")
        .union(wr.stream(ROWS[:20], progress="t", slack=60, name="b"))
        .window(range=50)
        .agg(n=wr.count())
    ),
    "windows over windows": lambda: (
        stream()
        .window(range=10)
        .group_by("k")
        .agg(n=wr.count())
        .window(range=60, slide=20)
        .agg(top=wr.max("n"), total=wr.sum("n"))
    ),
    "no window": lambda: stream().where("x > 0").select("t", y="x + 1"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_right_queries_pass_under_every_arrival(name):
    replay(QUERIES[name](), runs=6, seed=1)


def test_an_operator_that_forgets_a_row_is_caught(monkeypatch):
    honest = Paned.on_batch
    monkeypatch.setattr(Paned, "on_batch", lambda self, port, batch: honest(self, port, batch[:-1]))
    with pytest.raises(Mismatch, match=r"run \d of seed 0"):
        replay(QUERIES["sliding"](), runs=3)


def test_an_operator_that_forgets_to_snapshot_is_caught(monkeypatch):
    honest = Wid.snapshot
    monkeypatch.setattr(Wid, "snapshot", lambda self: {"closed": honest(self)["closed"]})
    with pytest.raises(Mismatch):
        replay(QUERIES["wid"](), runs=3)
    replay(QUERIES["wid"](), runs=3, restore=False)


def test_a_slack_that_is_too_small_is_caught():
    rows = [{"t": t} for t in (10, 0, 20, 5, 30, 12)]
    query = wr.stream(rows, progress="t", slack=0).window(range=5).agg(n=wr.count())
    run = query.run()
    for row in rows:
        run.push("stream", pl.DataFrame([row]))
    assert run.counts["rows_late"] == 3


def test_compare_tolerates_last_bits_and_nothing_else():
    left = pl.DataFrame({"k": ["a", "b"], "v": [0.1 + 0.2, math.nan]})
    compare(left, pl.DataFrame({"k": ["b", "a"], "v": [math.nan, 0.3]}))
    for wrong in (
        {"k": ["a", "b"], "v": [0.3001, math.nan]},
        {"k": ["a"], "v": [0.3]},
        {"q": ["a", "b"], "v": [0.3, 1.0]},
    ):
        with pytest.raises(Mismatch):
            compare(left, pl.DataFrame(wrong))


BASE = """
query: SELECT count(*) AS n FROM s [RANGE 10, WA t]
streams: {s: {progress: t, columns: {t: bigint}}}
"""


@pytest.mark.parametrize(
    "steps",
    [
        "steps: [{input: {s: [[1]]}}, {punctuation: {s: 10}}, {expect: [[0, 10, 2]]}]",
        "steps: [{input: {s: [[1]]}}, {punctuation: {s: 10}}, {expect: []}]",
        "steps: [{input: {s: [[1]]}}, {punctuation: {s: 10}}]",
        "steps: [{input: {s: [[1]]}}, {counts: {rows_in: 2}}]",
        "error: nothing is wrong",
    ],
)
def test_transcripts_that_are_wrong_fail(tmp_path, steps):
    (tmp_path / "t.yaml").write_text(BASE + steps)
    with pytest.raises(Mismatch):
        run_local(load(tmp_path / "t.yaml")[0])


def test_an_unknown_field_in_a_transcript_is_named(tmp_path):
    (tmp_path / "t.yaml").write_text(BASE + "stepz: []")
    with pytest.raises(DataError, match="stepz"):
        load(tmp_path / "t.yaml")
