"""Kang's Eqs. 9 to 14: bounds hold, the defaults are the best, the paper's numbers, and its errata."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import PlanError
from windrow.spec.allocation import (
    BOTH_POLICIES,
    RATE_POLICIES,
    STATE_POLICIES,
    allocate,
    output_rate,
    policies,
    split,
)

rates = st.tuples(st.floats(0, 1000), st.floats(0, 1000))
windows = st.tuples(st.floats(0, 1000), st.floats(0, 1000))
some_limit = st.none() | st.floats(0.01, 10_000)
given_all = given(rates, windows, some_limit, some_limit, st.data())
NEAR = 1 + 1e-9


def out(allocation):
    return output_rate(1.0, allocation.rates, allocation.windows)


def everything(rates, windows, max_rate, max_state):
    return {policy: allocate(rates, windows, max_rate, max_state, policy) for policy in policies(max_rate, max_state)}


# -- bounds ------------------------------------------------------------------------------------------------------------
@given_all
def test_no_stream_gets_more_than_it_has_and_the_limits_hold(rates, windows, max_rate, max_state, data):
    names = policies(max_rate, max_state)
    found = allocate(rates, windows, max_rate, max_state, data.draw(st.sampled_from(names)) if names else None)
    for i in (0, 1):
        assert 0 <= found.rates[i] <= rates[i]
        assert 0 <= found.windows[i] <= windows[i]
        assert found.rows[i] == pytest.approx(found.rates[i] * found.windows[i])
    assert max_rate is None or sum(found.rates) <= max_rate * NEAR
    assert max_state is None or sum(found.rows) <= max_state * NEAR
    assert 0 <= found.recall(rates, windows) <= 1


@given_all
def test_a_limit_that_is_not_reached_changes_nothing(rates, windows, max_rate, max_state, data):
    high = sum(rates) + 1, rates[0] * windows[0] + rates[1] * windows[1] + 1
    limits = high[0] if max_rate else None, high[1] if max_state else None
    names = policies(*limits)
    found = allocate(rates, windows, *limits, data.draw(st.sampled_from(names)) if names else None)
    assert (found.rates, found.windows) == (rates, windows)
    assert found.recall(rates, windows) == 1


@given_all
def test_limits_are_used_up(rates, windows, max_rate, max_state, data):
    names = policies(max_rate, max_state)
    found = allocate(rates, windows, max_rate, max_state, data.draw(st.sampled_from(names)) if names else None)
    if max_rate is not None:
        assert sum(found.rates) == pytest.approx(min(max_rate, sum(rates)))
    if max_state is not None:
        most = sum(rate * window for rate, window in zip(found.rates, windows, strict=True))
        assert sum(found.rows) == pytest.approx(min(max_state, most))


# -- the best ----------------------------------------------------------------------------------------------------------
@given(rates, windows, some_limit, some_limit)
def test_the_default_is_at_least_as_good_as_every_other_policy(rates, windows, max_rate, max_state):
    best = out(allocate(rates, windows, max_rate, max_state))
    for policy, found in everything(rates, windows, max_rate, max_state).items():
        assert best * NEAR >= out(found), policy


@given(rates, windows, some_limit, some_limit)
def test_the_default_is_the_best_of_a_grid(rates, windows, max_rate, max_state):
    """Eq. 10 over rates, and Eq. 13 over the memory that those leave."""
    best = out(allocate(rates, windows, max_rate, max_state))
    capacity = sum(rates) if max_rate is None else min(max_rate, sum(rates))
    left = np.linspace(max(capacity - rates[1], 0), min(rates[0], capacity), 41)[:, None]
    right = np.clip(capacity - left, 0, rates[1])
    full_left, full_right = left * windows[0], right * windows[1]
    memory = full_left + full_right if max_state is None else np.minimum(max_state, full_left + full_right)
    share = np.linspace(0, 1, 41)[None, :]
    least = np.maximum(memory - full_right, 0)
    a = least + share * (np.minimum(full_left, memory) - least)
    found = a * right + np.clip(memory - a, 0, full_right) * left
    assert best * (1 + 1e-6) + 1e-9 >= found.max()


# -- edges -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limits", [(10, None), (None, 10), (10, 10)])
@pytest.mark.parametrize("rates", [(0, 0), (0, 50), (50, 0)])
def test_a_silent_stream_leaves_all_to_the_other(limits, rates):
    for policy, found in everything(rates, (60, 60), *limits).items():
        if limits[0]:
            assert sum(found.rates) == min(sum(rates), 10), policy
        if limits[1] and sum(rates):
            assert sum(found.rows) == pytest.approx(10), policy
        assert found.recall(rates, (60, 60)) == 1  # the whole join has no results


def test_with_equal_rates_memory_can_go_anywhere():
    found = everything((50, 50), (60, 60), None, 1000)
    assert {round(out(a)) for a in found.values()} == {50 * 1000}
    assert found["slower"].rows == (500, 500)


def test_a_stream_below_half_of_the_capacity_keeps_all():
    """The example of section 4.2."""
    assert allocate((5, 100), (60, 60), 50, None).rates == (5, 45)


def test_split_gives_what_one_cannot_use_to_the_other():
    assert split(10, (0, 0), (9, 9)) == (5, 5)
    assert split(10, (1, 0), (4, 9)) == (4, 6)
    assert split(10, (0, 1), (4, 3)) == (4, 3)


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_limits_must_leave_something(limit):
    with pytest.raises(PlanError, match="max_rate must be above 0"):
        allocate((1, 1), (1, 1), limit, None)
    with pytest.raises(PlanError, match="max_state must be above 0"):
        allocate((1, 1), (1, 1), None, limit)


def test_a_policy_must_fit_the_limits():
    with pytest.raises(PlanError, match="max_rate cannot be shared by 'slower'; share can be equal, inverse"):
        allocate((1, 1), (1, 1), 1, None, "slower")
    with pytest.raises(PlanError, match="max_rate and max_state cannot be shared by 'slower'"):
        allocate((1, 1), (1, 1), 1, 1, "slower")
    with pytest.raises(PlanError, match="give max_rate, max_state or both"):
        allocate((1, 1), (1, 1), None, None, "equal")


# -- the paper's figures -----------------------------------------------------------------------------------------------
def test_figure_8():
    found = everything((80, 20), (9, 1), 10, None)
    assert {policy: a.rates for policy, a in found.items()} == {
        "equal": (5, 5),
        "proportional": (8, 2),
        "inverse": (2, 8),
        "window-proportional": (9, 1),
        "window-inverse": (1, 9),
    }
    rates = {policy: output_rate(0.02, a.rates, a.windows) for policy, a in found.items()}
    assert list(rates) == list(RATE_POLICIES)
    assert rates["equal"] == pytest.approx(5)
    assert rates["proportional"] == pytest.approx(rates["inverse"])  # "did not show much difference"


def test_figure_9():
    found = everything((10, 50), (1000, 1000), None, 1000)
    rates = {policy: output_rate(0.005, a.rates, a.windows) for policy, a in found.items()}
    assert sorted(rates, key=rates.get) == ["faster", "proportional", "equal", "inverse", "slower"]
    assert set(rates) == set(STATE_POLICIES)
    assert rates["slower"] == pytest.approx(250)
    assert rates["faster"] == pytest.approx(50)


def test_figure_10():
    found = everything((100, 100), (1000, 1000), 10, 100)
    rates = {policy: output_rate(0.01, a.rates, a.windows) for policy, a in found.items()}
    assert set(rates) == set(BOTH_POLICIES)
    assert rates["best"] == pytest.approx(9.9)
    assert rates["left-window/right-rate"] == rates["right-window/left-rate"] == pytest.approx(9.9)
    assert rates["equal"] == pytest.approx(5)
    assert rates["left-window/left-rate"] == rates["right-window/right-rate"] == pytest.approx(0.1)


@given(st.floats(0.01, 10), st.floats(0.1, 100), st.floats(0, 1000), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_eqs_13_and_14_are_eq_9_with_its_limits_put_in(left, right, memory, sigma, x):
    a = memory / 3
    windows = a / left, (memory - a) / right
    eq_13 = sigma * (right - left) * left * windows[0] + sigma * left * memory
    assert output_rate(sigma, (left, right), windows) == pytest.approx(eq_13)
    mu = left + right
    eq_14 = sigma * (x * mu * memory - (2 * x - 1) * mu * a)
    both = a / (x * mu), (memory - a) / ((1 - x) * mu)
    assert output_rate(sigma, (x * mu, (1 - x) * mu), both) == pytest.approx(eq_14)


# -- errata ------------------------------------------------------------------------------------------------------------
def test_a_window_cannot_take_memory_that_its_length_has_no_use_for():
    """Section 4.3 has T' anywhere in [0, M/rate]; Eq. 12 has it at most T."""
    found = allocate((10, 50), (60, 60), None, 1000)
    assert 1000 / 10 > 60
    assert found.windows == (60, 8)
    assert found.rows == (600, 400)


def test_the_greatest_rate_of_eq_14_needs_an_endless_window():
    """A stream without a rate has no rows in its window: to fill M, a rate of M/T is taken from the other."""
    sigma, mu, memory = 0.01, 10, 100
    for length in (50, 100, 1000):
        best = allocate((100, 100), (length, length), mu, memory)
        assert min(best.rates) == pytest.approx(memory / length)
        assert output_rate(sigma, best.rates, best.windows) == pytest.approx(sigma * memory * (mu - memory / length))


def test_with_short_windows_the_best_is_no_corner():
    """Both windows together hardly fill the memory: the best rates are between the corner's and equal ones."""
    found = everything((100, 100), (12, 12), 10, 100)
    assert min(found["best"].rates) == pytest.approx(10 / 4 + 100 / (4 * 12))
    assert out(found["best"]) > 1.001 * max(out(a) for policy, a in found.items() if policy != "best")
