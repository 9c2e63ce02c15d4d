"""Joins that keep rows in different ways: one state, which any of them can go on with; and which way is chosen."""

import random
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.operators.joins import choosing
from windrow.operators.joins.costs import Unit
from windrow.operators.joins.window_join import WindowJoin
from windrow.planner import keeping
from windrow.planner.choose.calibrated import REFERENCE, Calibration
from windrow.spec.keeping import ALIKE, KEPT
from windrow.testing import compare, oracle
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import Checkpoint, SimulatedSpark

SIDES, ROWS = ("l", "r"), 600
QUICK = Calibration(Unit(call=0, run=0, sort=0, merge=0, keep=0, chain=0), "made up")  # a change costs nothing


@pytest.fixture
def restless(monkeypatch):
    """Joins that change their ways with every few batches."""
    monkeypatch.setattr(keeping, "found", lambda: QUICK)
    monkeypatch.setattr(choosing, "CLEARLY", 1.0)


def rows(seed, value):
    rng = random.Random(f"{seed}{value}")
    times = sorted(range(ROWS), key=lambda t: t + rng.random() * 9)
    data = [(t, rng.choice([0, 1, 2, 3, None]), rng.randrange(9)) for t in times]
    return pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), value: pl.Int64()}, orient="row")


def joined(using=None, data=None, seed=0, **more):
    given = data or {name: rows(seed, value) for name, value in zip(SIDES, "xy", strict=True)}
    left, right = (wr.stream(given[name], "t", slack=9, name=name) for name in SIDES)
    return left.join(right, on="k", within=(-8, 12), how="left", using=using, **more)


def pieces(seed, count):
    """The rows of both sides in pieces of all sizes."""
    frames = {name: rows(seed, value) for name, value in zip(SIDES, "xy", strict=True)}
    cuts = sorted(random.Random(seed).sample(range(1, ROWS), count - 1))
    bounds = zip([0, *cuts], [*cuts, ROWS], strict=True)
    return [{name: frame[a:b] for name, frame in frames.items()} for a, b in bounds]


@pytest.fixture
def changes(restless, monkeypatch):
    """The ways that joins have taken."""
    found, keep = [], WindowJoin._keep_as
    monkeypatch.setattr(WindowJoin, "_keep_as", lambda join, side, way: found.append(way) or keep(join, side, way))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_run_goes_on_with_the_state_of_any_other_way(seed, changes):
    rng, found = random.Random(seed), []
    run = joined(seed=seed).run()
    for piece in pieces(seed, 30):
        for name, frame in piece.items():
            run.push(name, frame)
        found.append(run.results())
        run = LocalRun(joined(rng.choice(ALIKE), seed=seed).plan()).restore(run.snapshot())
    found.append(run.end().results())
    compare(pl.concat(found), oracle(joined(seed=seed)), "over restarts")
    assert len({*changes}) > 1


def test_a_query_on_spark_goes_on_with_the_state_of_any_other_way(restless):
    checkpoint, found = Checkpoint(), []
    order = [None, "hnj", "oa", "runs", "nnj-lazy", "nhj", None, "hhj-lazy"]
    for using, piece in zip(order, pieces(5, len(order)), strict=True):
        spark = SimulatedSpark(2, seed=len(found))
        empty = {name: spark.stream(frame.schema) for name, frame in piece.items()}
        found.append(spark.start(joined(using, empty), checkpoint).push(piece).results)
    whole, end = joined(seed=5).collect(), ROWS - 9 - 12
    compare(pl.concat(found).filter(pl.col("t") < end), whole.filter(pl.col("t") < end), "over restarts")


@pytest.mark.parametrize("using", [None, *KEPT])
def test_micro_batches_that_run_again_decide_alike(using, restless):
    """What differs is a Mismatch: results, counts, and so what is kept."""
    batches = pieces(7, 12)
    out = disturbed(
        lambda spark: joined(using, {n: spark.stream(f.schema) for n, f in batches[0].items()}), batches, seed=3
    )
    whole, end = joined(seed=7).collect(), ROWS - 9 - 12
    found = pl.concat([batch.results for batch in out])
    compare(found.filter(pl.col("t") < end), whole.filter(pl.col("t") < end), str(using))
    if using is None:  # the state of the join says how it decided
        again = disturbed(
            lambda spark: joined(using, {n: spark.stream(f.schema) for n, f in batches[0].items()}), batches, seed=4
        )
        assert [b.counts["rows_joined"] for b in again] == [b.counts["rows_joined"] for b in out]


# -- which way -----------------------------------------------------------------------------------------------------
def declared(rate, groups, width=60, using=None, batch=1000):
    sides = [
        wr.stream([{"t": 0, "k": 0}], "t", slack=0, name=n, statistics=wr.Statistics(rate=r, groups=groups))
        for n, r in zip(SIDES, (1, rate), strict=True)
    ]
    return sides[0].join(sides[1], on="k", within=(-width, width), using=using)


def kept(query):
    return query.plan().stages()[0].choice


def test_the_way_of_each_side_is_the_cheapest_by_the_unit_costs(monkeypatch):
    assert kept(declared(100, 10)).ways == ("runs", "runs")
    monkeypatch.setattr(keeping, "found", lambda: Calibration(replace(Unit(), sort=1e4, chase=0.1, pair=1), "made up"))
    assert kept(declared(1, 10)).ways == ("hash", "hash")
    monkeypatch.setattr(keeping, "found", lambda: Calibration(replace(Unit(), sort=1e4, scan=1e-3, pair=1), "made up"))
    assert kept(declared(1, 10)).ways == ("loops", "loops")


def test_measured_rows_come_before_declared_ones(monkeypatch):
    frame = pl.DataFrame({"t": np.arange(4000) // 4, "k": np.arange(4000) % 5})
    sides = [wr.stream(frame, "t", slack=0, name=n, statistics=wr.Statistics(rate=9, groups=9)) for n in SIDES]
    found = kept(sides[0].join(sides[1], on="k", within=(0, 99)))
    assert found.streams.basis == "measured"
    assert found.streams.alike == pytest.approx(1 / 5)
    assert [side.rate for side in found.streams.sides] == pytest.approx([4, 4], rel=0.01)


def test_explain_shows_the_candidates_of_each_direction_and_what_2002_would_take():
    shown = declared(100, 10).explain()
    assert "rows are kept as runs on the left and runs on the right: the cheapest by the cost model" in shown
    assert "left rows, which right rows probe: runs " in shown
    assert "not in the order of time, and tuple by tuple: hash left and loops right" in shown
    assert f"unit costs: {REFERENCE.says}" in shown
    assert "hash on the left and loops on the right: as asked for" in declared(100, 10, using="hnj").explain()


@pytest.mark.parametrize("using", KEPT)
def test_sql_hints_name_the_same_joins(using):
    data = {name: wr.stream(rows(1, value), "t", slack=9, name=name) for name, value in zip(SIDES, "xy", strict=True)}
    text = f"SELECT /*+ USING({using}) */ l.t, x, y FROM l JOIN r ON l.k = r.k AND r.t BETWEEN l.t - 8 AND l.t + 12"
    query = wr.sql(text, **data)
    assert kept(query).ways == KEPT[using]
    assert query.collect().height == joined(seed=1).where("y IS NOT NULL").collect().height
