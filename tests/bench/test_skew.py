"""The parts of union-skew and agg-skew: what is fed, that both plans give what the query means, and the claims."""

import polars as pl
import pytest

from windrow.bench import agg_skew, union_skew
from windrow.bench.skew import BAND, CLOCK, PLANS, STEP, asked, behind, claims, compared, cut, fed_through, feed
from windrow.sources.links import MICROS, START, Link
from windrow.testing import compare, oracle

QUERIES = {"Q8-2": union_skew.QUERY, "Q8-5": agg_skew.QUERY}


@pytest.fixture(scope="module")
def feeds():
    rates = {"M1": 3, "M2": 3, "C": 0.2}
    made = {name: feed(Link(name, rate, hosts=4, band=BAND), 240, 4) for name, rate in rates.items()}
    return {**made, "M2": behind(made["M2"], 40)}


def test_a_link_that_is_behind_is_late_by_the_clock_and_keeps_its_own_promises(feeds):
    for name, skew in (("M1", 0), ("M2", 40), ("C", 0)):
        fed = feeds[name]
        assert fed["arrival"].is_sorted()
        late = fed.filter(pl.col("ts").is_not_null())
        delay = late["arrival"] + START - late["ts"].cast(pl.Int64)
        assert skew * MICROS <= delay.min()
        assert delay.max() <= (skew + BAND) * MICROS
        shown = fed[CLOCK].cast(pl.Int64).cum_max().forward_fill()
        assert (fed["ts"].cast(pl.Int64) >= shown - round(BAND * MICROS)).drop_nulls().all()
        assert shown.max() >= late["ts"].cast(pl.Int64).max() + round(BAND * MICROS)


def test_steps_hold_every_row_once(feeds):
    steps = cut(feeds["M2"])
    assert pl.concat(steps).equals(feeds["M2"].drop("arrival"))
    assert sum(s.height == 0 for s in steps[: 40 * MICROS // STEP]) == 40 * MICROS // STEP


@pytest.mark.parametrize("name", QUERIES)
def test_both_plans_give_what_the_query_means(feeds, name):
    most = {}
    for plan, hint in PLANS.items():
        query = asked(QUERIES[name].format(hint), feeds)
        asked_for = {n: feeds[n] for n in query.sources}
        most[plan], found, lost = fed_through(query, asked_for)
        compare(found, oracle(query, {n: f.drop("arrival") for n, f in asked_for.items()}), f"{name} {plan}")
        assert lost == 0
    assert 0 < most["oop"] < most["iop"]


def test_figures_have_every_skew_and_the_growth(feeds):
    said = []
    found = compared(agg_skew.QUERY, feeds, "M2", (0, 30), lambda text, done: said.append(done))
    names = [f"bytes_{plan}_{skew}" for skew in (0, 30) for plan in PLANS]
    assert list(found.figures) == [*names, "growth_oop", "growth_iop"]
    assert found.figures["growth_iop"] == round(found.figures["bytes_iop_30"] / found.figures["bytes_iop_0"], 2) > 1
    assert found.holds["both plans give the same results, and lose no row"]
    assert said == [0, 0.25, 0.5, 0.75]


def figures(oop, iop):
    return {f"bytes_{p}_{s}": v for p, line in (("oop", oop), ("iop", iop)) for s, v in enumerate(line)}


@pytest.mark.parametrize(
    ("oop", "iop", "same", "expected"),
    [
        ([10, 12, 11], [20, 30, 41], True, [True, True, True, True]),
        ([10, 13, 11], [20, 30, 41], True, [False, True, True, True]),
        ([10, 12, 11], [20, 45, 41], True, [True, False, True, True]),
        ([10, 12, 11], [20, 30, 40], True, [True, False, True, True]),
        ([10, 12, 11], [10, 30, 41], False, [True, True, False, False]),
    ],
)
def test_claims_follow_from_the_figures(oop, iop, same, expected):
    assert list(claims(figures(oop, iop), range(3), same).values()) == expected
