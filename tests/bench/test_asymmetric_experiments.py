"""The parts of asym-crossover and asym-full: all joins find the same pairs, the server, and the claims."""

import math

import numpy as np
import pytest

from windrow.bench import asym_crossover, asym_full
from windrow.bench.served import completed, output, work
from windrow.planner.choose.costs.asymmetric import FULL, Side, Streams, Weights, full_join, hash_join, nested_loops
from windrow.planner.choose.timed_joins import A_TO_B, BOTH, SECOND, Ran, one_way, timed, trace, weights

STREAMS = Streams(Side(20, 3, 5), Side(60, 2, 5))


@pytest.fixture(scope="module")
def given():
    return trace(STREAMS, 20)


def by_hand(given, probing):
    """Each tuple with those of the other side that came before it, and are in their window."""
    lengths = [int(side.window * SECOND) for side in (given.streams.a, given.streams.b)]
    found = []
    for i in range(len(given.times)):
        before = slice(0, i)
        near = given.times[before] > given.times[i] - lengths[1 - given.sides[i]]
        same = (given.sides[before] != given.sides[i]) & (given.keys[before] == given.keys[i])
        found.append(int((near & same).sum()) if probing[given.sides[i]] else 0)
    return found


# -- timed joins -------------------------------------------------------------------------------------------------------
def test_a_trace_has_the_tuples_of_both_streams_in_order(given):
    assert np.bincount(given.sides).tolist() == [400, 1200]
    assert (np.diff(given.times) >= 0).all()
    assert set(given.keys.tolist()) == set(range(5))


@pytest.mark.parametrize("probing", [BOTH, A_TO_B])
def test_all_joins_find_the_pairs_of_the_definition(given, probing):
    pairs = sum(by_hand(given, probing))
    assert {timed(given, form, probing, in_order, 1).pairs for form in FULL for in_order in (True, False)} == {pairs}


def test_joins_touch_what_the_equations_say(given):
    """But for the time in which windows fill up."""
    unit = Weights(1, 1)
    for form in FULL:
        touched = timed(given, form, rounds=1).touched
        assert touched / given.seconds == pytest.approx(full_join(form, STREAMS, unit), rel=0.15)


def test_weights_are_times_over_costs(given):
    found = weights(STREAMS, 20, Ran(1.0, 0, 0), Ran(2.0, 0, 0))
    assert nested_loops(STREAMS.a, STREAMS.b, found) * 20 == pytest.approx(1 * SECOND)
    assert hash_join(STREAMS.a, STREAMS.b, found) * 20 == pytest.approx(2 * SECOND)
    nested, hashed = one_way(given, 1)
    assert nested.pairs == hashed.pairs
    assert nested.touched > hashed.touched


# -- asym-crossover ----------------------------------------------------------------------------------------------------
def test_sorted_runs_find_the_same_pairs(given):
    assert asym_crossover.sorted_runs(given)[1] == timed(given, "HHJ", A_TO_B, rounds=1).pairs


def test_the_crossover_is_where_the_ratio_stays_above_1():
    assert asym_crossover.root({1: 2, 2: 0.5, 8: 2}) == pytest.approx(4)
    assert asym_crossover.root({2: 3, 4: 5}) == pytest.approx(2)
    assert asym_crossover.root({2: 0.3, 4: 0.5}) == math.inf


def crossings(off=1.0, in_order=1.0):
    figures = {f"{what}_{n}": n * (off if what == "eq7" else 1) for n in (5, 10) for what in ("measured", "eq7")}
    for r, nlj, hj in ((1, 5, 2), (2, 6, 6.5), (4, 8, 20)):
        figures |= {f"ms_nlj_{r}": nlj, f"ms_hj_{r}": hj, f"ms_hj_in_order_{r}": in_order}
    return figures


def test_claims_of_the_crossover():
    assert all(asym_crossover.claims(crossings(), (5, 10)).values())
    assert not asym_crossover.claims(crossings(off=1.4), (5, 10))[asym_crossover.NEAR]
    assert list(asym_crossover.claims(crossings(in_order=3), (5, 10)).values()) == [True, True, True, False]


# -- asym-full ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("probing", [BOTH, A_TO_B])
def test_a_server_has_the_results_of_the_join_and_the_work_of_the_equations(given, probing):
    own = Weights(2, 3)
    for form in FULL:
        pairs, service = work(given, form, own, probing)
        assert pairs.tolist() == by_hand(given, probing)
        if probing == BOTH:
            assert service.sum() / given.seconds == pytest.approx(full_join(form, STREAMS, own), rel=0.15)


def test_a_server_that_is_too_slow_falls_behind_and_gives_less(given):
    fast, slow = (output(given, "HHJ", Weights(c, c), BOTH) for c in (1, 5e5))
    assert fast.kept_up
    assert fast.load < 0.001
    assert slow.load > 1
    assert not slow.kept_up
    assert slow.rate == pytest.approx(fast.rate / slow.load, rel=0.2)
    assert completed(np.array([0.0, 5.0]), np.array([1.0, 1.0])).tolist() == [1, 6]


@pytest.mark.parametrize(("keys", "rate"), [(10, 67), (20, 144)])
def test_where_hnj_takes_over_in_figures_2_and_3(keys, rate):
    assert asym_full.takes_over(keys) == pytest.approx(rate, abs=1)


def of_full(pick=1.0, thrash=2):
    figures = {}
    for keys in asym_full.KEYS:
        for ratio, times in ((1, (1, 2, 3, 4)), (9, (4, 2, 5, 3))):
            figures |= {f"ms_{form}_{keys}_{ratio}": ms for form, ms in zip(FULL, times, strict=True)}
            figures |= {f"ms_HHJ_in_order_{keys}_{ratio}": 0.5, f"pick_over_best_{keys}_{ratio}": pick}
    for ratio in (1, 2, 3, 4):
        for name in asym_full.JOINS:
            falls = ratio >= thrash and name in ("hj", "hhj")
            figures |= {f"kept_up_{name}_{ratio}": float(not falls), f"load_{name}_{ratio}": 1.0}
            figures |= {f"model_load_{name}_{ratio}": 1.0, f"results_per_s_{name}_{ratio}": 1 / ratio if falls else 1}
    return figures


def test_claims_of_full_joins():
    assert all(asym_full.claims(of_full(), (1, 9), (1, 2, 3, 4)).values())
    assert list(asym_full.claims(of_full(pick=1.3), (1, 9), (1, 2, 3, 4)).values()).count(False) == 1
    assert list(asym_full.claims(of_full(thrash=5), (1, 9), (1, 2, 3, 4)).values()).count(False) == 2
