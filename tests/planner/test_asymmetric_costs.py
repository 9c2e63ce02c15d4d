"""Kang's Eqs. 1 to 8: the printed forms agree with each other, what the paper reads off its figures, and its errata."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.planner.choose.costs import asymmetric as costs
from windrow.planner.choose.costs.asymmetric import PAPER, Side, Streams, Weights

rates = st.floats(0.01, 1e4)
sides = st.builds(Side, rates, st.floats(0.1, 1e3), st.integers(1, 1000))
weights = st.builds(Weights, st.floats(0.1, 10), st.floats(0.1, 10))
pairs = st.builds(Streams, sides, sides)


def figure(rate, keys=10):
    """Figures 2 to 4, 6 and 7, at this rate of B."""
    return Streams(Side(10, 60, keys), Side(rate, 60, keys))


# -- the printed forms -------------------------------------------------------------------------------------------------
@given(sides, sides, weights)
def test_the_two_forms_of_eq_3_are_the_same(a, b, w):
    share = 1 / b.keys
    printed = (a.rate * b.window * b.rate * share + b.rate * b.window * b.rate * share + b.rate) * w.hashed
    assert costs.hash_join(a, b, w) == pytest.approx(printed)


@given(pairs, weights)
def test_eq_4_is_eq_3_both_ways(streams, w):
    a, b = streams.a, streams.b
    assert costs.full_join("HHJ", streams, w) == pytest.approx((a.rate + b.rate) * (b.bucket + a.bucket + 1) * w.hashed)


@given(pairs, weights)
def test_eq_5_is_eq_2_both_ways(streams, w):
    a, b = streams.a, streams.b
    printed = a.rate * (b.rows + 2) * w.nested + b.rate * (a.rows + 2) * w.nested
    assert costs.full_join("NNJ", streams, w) == pytest.approx(printed)


@given(pairs, weights)
def test_eq_6_is_eq_2_one_way_and_eq_3_the_other(streams, w):
    a, b, n, h = streams.a, streams.b, w.nested, w.hashed
    printed = a.rate * (b.rows * n + a.bucket * h + h) + b.rate * (a.bucket * h + 2 * n)
    assert costs.full_join("HNJ", streams, w) == pytest.approx(printed)
    mirrored = Streams(b, a)
    assert costs.full_join("NHJ", mirrored, w) == pytest.approx(printed)


@given(pairs, weights)
def test_the_exact_crossover_is_where_eq_2_meets_eq_3(streams, w):
    a, b = streams.a, streams.b
    ratio = costs.crossover_exact(a, b, w)
    if ratio:
        there = Side(a.rate * ratio, b.window, b.keys)
        scale = a.rate * there.rows * w.nested
        assert costs.hash_join(a, there, w) == pytest.approx(
            costs.nested_loops(a, there, w), rel=1e-6, abs=1e-9 * scale
        )
        if (there.bucket + 1) * w.hashed > 2 * w.nested * (1 + 1e-3) and there.bucket > 1e-3:
            assert costs.crossover_of(there.rows, b.keys, w) == pytest.approx(ratio, rel=1e-3)


@given(pairs, weights)
def test_each_direction_is_chosen_on_its_own(streams, w):
    one = {letter: f(streams.a, streams.b, w) for letter, f in (("H", costs.hash_join), ("N", costs.nested_loops))}
    other = {letter: f(streams.b, streams.a, w) for letter, f in (("H", costs.hash_join), ("N", costs.nested_loops))}
    best = costs.full_join(costs.cheapest(streams, w), streams, w)
    assert best == pytest.approx(min(one.values()) + min(other.values()))


# -- what the paper says of its figures --------------------------------------------------------------------------------
@pytest.mark.parametrize(("keys", "around"), [(10, 70), (20, 140)])
def test_figures_2_and_3(keys, around):
    assert costs.cheapest(figure(10, keys)) == "HHJ"
    assert costs.cheapest(figure(around * 0.9, keys)) == "HHJ"
    assert costs.cheapest(figure(around * 1.1, keys)) == "HNJ"


def test_the_determinant_is_the_cheapest_join_where_windows_are_large():
    for keys in (10, 20, 50):
        for rate in range(10, 400, 15):
            streams = figure(rate, keys)
            picked = costs.full_join(costs.determined(streams), streams)
            assert picked <= 1.01 * costs.full_join(costs.cheapest(streams), streams)


def test_one_way_joins_of_figure_4_cross_near_70():
    a = Side(10, 60, 10)
    assert costs.hash_join(a, Side(60, 60, 10)) < costs.nested_loops(a, Side(60, 60, 10))
    assert costs.hash_join(a, Side(75, 60, 10)) > costs.nested_loops(a, Side(75, 60, 10))


def test_the_regulated_rates_of_section_4_2_are_the_doctests_of_the_determinant():
    assert costs.determined(Streams(Side(5, 60, 10), Side(100, 60, 20))) == "HNJ"  # before load is shed
    assert costs.determined(Streams(Side(5, 60, 10), Side(45, 60, 20))) == "HHJ"


# -- errata ------------------------------------------------------------------------------------------------------------
def test_eq_7_drops_constants_that_are_not_small_where_buckets_are():
    assert costs.crossover(10) == pytest.approx(6.69, abs=0.01)
    assert costs.crossover_of(4200, 10) == pytest.approx(costs.crossover(10), rel=0.01)
    assert costs.crossover_of(10, 10) > 2 * costs.crossover(10)  # a bucket of one tuple


def test_the_number_of_keys_is_not_the_only_variable_of_the_crossover():
    """Section 3.4 says that |B| is; the tuples of A per window of B move it as well."""
    slow, fast = (costs.crossover_exact(Side(rate, 60, 50), Side(1, 60, 50)) for rate in (0.05, 50))
    assert fast == pytest.approx(costs.crossover(50), rel=0.001)
    assert slow > 1.2 * fast


def test_lazy_invalidation_costs_more_where_the_probing_stream_is_faster():
    """Its formula has a search for each probe, also if nothing can have expired since the last one."""
    a, b = Side(100, 60, 10), Side(10, 60, 10)
    assert costs.nested_loops_lazy(a, b) > costs.nested_loops(a, b)
    assert costs.nested_loops_lazy(b, a) < costs.nested_loops(b, a)


# -- since then --------------------------------------------------------------------------------------------------------
@given(sides, st.floats(1.01, 3), st.lists(rates, min_size=2, max_size=5))
def test_with_buckets_in_order_of_time_no_ratio_of_rates_decides(a, ratio, of_b):
    w = Weights(1, ratio)
    nested = {costs.nested_loops(a, b, w) < costs.hash_in_order(a, b, w) for b in (Side(rate, 60, 10) for rate in of_b)}
    expected = a.rate * 60 < costs.silent_rows(10, w)
    if abs(a.rate * 60 / costs.silent_rows(10, w) - 1) > 1e-6:
        assert nested == {expected}


@given(sides, sides, weights)
def test_buckets_in_order_never_cost_more_than_the_papers_unless_they_are_empty(a, b, w):
    if b.bucket >= 1:
        assert costs.hash_in_order(a, b, w) <= costs.hash_join(a, b, w) * (1 + 1e-12)


def test_lazy_hashing_pays_with_memory():
    a, b = Side(10, 60, 10), Side(100, 60, 10)
    assert costs.hash_lazy_rows(a, b) == 50
    assert costs.hash_lazy_rows(Side(0, 60, 10), b) == math.inf


def test_a_silent_stream_probes_nothing():
    silent, b = Side(0, 60, 10), Side(100, 60, 10)
    assert costs.nested_loops(silent, b) == 200 * PAPER.nested
    assert costs.nested_loops_lazy(silent, b) == 100 * PAPER.nested
    assert costs.hash_lazy(silent, b) == 100 * PAPER.hashed
    assert costs.crossover_exact(silent, b) == math.inf
    assert costs.determined(Streams(silent, b)) == "HNJ"
    assert costs.crossover(1) < 0
    assert costs.determinant(b, silent) == "hash"
    assert costs.crossover_of(1, 2, Weights(1, 1)) == math.inf
