"""The parts of oa-join, join-skew, join-late and join-limit: what is fed, that all give the same, and the claims."""

import polars as pl
import pytest

from windrow.bench import join_late, join_limit, join_skew, oa_join, spark_join
from windrow.bench.flows import BACK, THERE, number_of_flows, packets_of_flows
from windrow.bench.join_data import BAND, HOUR, KEYS, MICROS, SLACK, hot_span, side
from windrow.bench.skew import CLOCK, PLANS, behind, fed_through, measured
from windrow.testing import compare, oracle


# -- data --------------------------------------------------------------------------------------------------------------
def test_flows_have_as_many_partners_as_they_are_made_for():
    flows = number_of_flows(50, 40, 2)
    there, back = (packets_of_flows(n, 50, 40, flows, back=b) for n, b in (("A", False), ("B", True)))
    pairs = there.join(back, left_on=list(THERE), right_on=list(BACK)).height
    assert pairs / there.height == pytest.approx(2, rel=0.15)
    assert there.select(THERE).n_unique() <= flows
    assert there["arrival"].is_sorted()
    assert packets_of_flows("A", 50, 40, flows).equals(there)


def partners(span, hot=0.0, keys=KEYS, rows=20_000):
    """Pairs per row, at the rate of the whole data."""
    sides = [side(i, rows, keys, span * rows / 1_000_000, hot) for i in (0, 1)]
    return join_limit.batch_join(tuple(sides), BAND, 20).height / rows


def test_a_hot_key_has_half_of_the_rows_and_the_pairs_stay_of_one_order():
    hot = side(0, 20_000, hot=0.5)
    assert (hot["k"] == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert partners(HOUR) == pytest.approx(2.8, rel=0.1)
    assert partners(hot_span(KEYS, HOUR), 0.5) == pytest.approx(2.8, rel=0.15)
    assert partners(spark_join.SPAN, keys=spark_join.KEYS, rows=100_000) == pytest.approx(1.67, rel=0.15)
    assert partners(hot_span(spark_join.KEYS, spark_join.SPAN), 0.5, spark_join.KEYS) == pytest.approx(1.67, rel=0.15)


def test_rows_come_at_most_slack_out_of_order():
    rows = side(1, 5000)
    times = rows["ts"].to_physical()
    assert not times.is_sorted()
    assert (times.cum_max() - times).max() < SLACK * MICROS
    assert rows["k"].n_unique() > 0.9 * KEYS


# -- oa-join -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def steps():
    return oa_join.generate(6, 70)


@pytest.mark.parametrize("band", [1, 9])
def test_all_joins_count_what_the_query_means(steps, band):
    given = {name: pl.concat([frames[name] for _, frames in steps]) for name in ("M1", "M2")}
    asked = oa_join.asked(steps, band, "oa")
    expected = oracle(asked, given).sort("window_end")["n"].to_list()
    for using in oa_join.JOINS:
        cost = oa_join.driven(oa_join.asked(steps, band, using), steps, sizes=True)
        assert cost.counted == expected[:1]  # the second minute does not end
        assert (len(cost.latencies), cost.bytes > 0) == (1, True)


def oa_figures(**changed):
    names = [f"{what}_{join}_{band}" for what in ("bytes", "latency_ms") for join in oa_join.JOINS for band in (1, 9)]
    found = {name: 1.0 if "_oa_" in name else 2.0 for name in names}
    return {**found, "pairs_1": 5, **changed}


@pytest.mark.parametrize(
    ("changed", "same", "expected"),
    [
        ({}, True, [True, True, True, True]),
        ({"bytes_opob_9": 1.0}, True, [False, True, True, True]),
        ({"latency_ms_opob_1": 0.5}, True, [True, False, True, True]),
        ({"bytes_opib_1": 1.0}, False, [True, True, False, False]),
        ({"pairs_1": 0, "latency_ms_opib_1": 0}, True, [True, True, True, False]),
    ],
)
def test_the_claims_of_oa_join_follow_from_the_figures(changed, same, expected):
    assert list(oa_join.claims(oa_figures(**changed), (1, 9), same).values()) == expected


# -- join-skew and join-late -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("experiment", "late"), [(join_skew, ("B", "D")), (join_late, ("C",))])
def test_both_plans_give_what_the_query_means(experiment, late):
    feeds = {n: behind(f, 7) if n in late else f for n, f in experiment.feeds(3, 70).items()}
    for plan in PLANS:
        asked = experiment.query(plan, feeds)
        _, found, lost = fed_through(asked, feeds)
        compare(found, oracle(asked, {n: f.drop("arrival") for n, f in feeds.items()}), plan)
        assert found.height > 0
        assert lost == 0
    for fed in feeds.values():
        assert fed.filter(pl.col(CLOCK).is_not_null()).height == 71


def test_figures_have_every_skew():
    figures, same = measured(join_skew.query, join_skew.feeds(4, 30), ("B", "D"), (0, 10), lambda text, done: None)
    assert set(figures) == {f"bytes_{plan}_{skew}" for plan in PLANS for skew in (0, 10)}
    assert same
    assert min(figures.values()) > 0


def skews(oop, iop):
    return {f"bytes_{p}_{s}": v for p, line in (("oop", oop), ("iop", iop)) for s, v in enumerate(line)}


@pytest.mark.parametrize(
    ("claims", "oop", "iop", "expected"),
    [
        (join_skew.claims, [10, 12], [10, 10], [True, True]),
        (join_skew.claims, [10, 13], [10, 10], [False, True]),
        (join_late.claims, [10, 11], [10, 12], [True, True, True]),
        (join_late.claims, [10, 12], [10, 12], [False, False, True]),
        (join_late.claims, [8, 11], [10, 12], [False, True, True]),
    ],
)
def test_claims_about_skew_follow_from_the_figures(claims, oop, iop, expected):
    assert list(claims(skews(oop, iop), range(2), True).values()) == expected
    assert not list(claims(skews(oop, iop), range(2), False).values())[-1]


# -- join-limit --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slice_", [3, *join_limit.SLICES])
def test_the_batch_join_and_ours_give_the_same_pairs(slice_):
    sides = tuple(side(i, 1000, 20, 60) for i in (0, 1))
    run = join_limit.query(sides).run()
    for name, frame in zip("lr", sides, strict=True):
        run.push(name, frame)
    ours = run.end().results()
    compare(join_limit.batch_join(sides, BAND, slice_), ours)
    assert join_limit.pushed(join_limit.query(sides), sides, 300) == ours.height > 0


def test_a_point_of_a_curve_has_its_figures(monkeypatch):
    monkeypatch.setattr(join_limit, "SMALL", 500)
    found = join_limit.grown(join_limit.Point("band", 0.5, band=0.5, batch=200), 1)
    assert set(found) == {f"{name}_band_0.5" for name in ("rows_per_s", "us_each", "pairs")}


def test_the_claims_of_join_limit_follow_from_the_figures():
    assert list(join_limit.claims({"over_batch": 0.34}, {"windrow": 3, "polars_10": 3}).values()) == [True, True]
    assert list(join_limit.claims({"over_batch": 0.33}, {"windrow": 3, "polars_10": 4}).values()) == [False, False]
