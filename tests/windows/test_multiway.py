"""The windows of multi-way joins: everything that follows from ``near``, against all combinations of times."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.progress import END, START
from windrow.windows.multiway import Moment, Ranges
from windrow.windows.pairing import Within

LENGTHS = st.lists(st.sampled_from([1, 2, 3, 6, 20]), min_size=2, max_size=3)
CHECK = settings(deadline=None, max_examples=150)


def moments(count):
    """All times of results of so many inputs."""
    inputs = st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True).map(sorted).map(tuple)
    return st.builds(Moment, inputs, st.booleans())


def results_to_come(ranges, promised):
    """Times of results of which at least one row is still to come."""
    reach = max(ranges.lengths)
    low, high = min(promised) - reach, max(promised) + reach
    for times in product(range(low, high + 1), repeat=len(promised)):
        if ranges.near(times) and any(time >= value for time, value in zip(times, promised, strict=True)):
            yield times


@CHECK
@given(lengths=LENGTHS, data=st.data())
def test_promises_are_the_strongest_true_ones(lengths, data):
    ranges = Ranges(tuple(lengths))
    promised = [data.draw(st.integers(40, 46)) for _ in lengths]
    moment = data.draw(moments(len(lengths)))
    assert ranges.promised(moment, promised) == min(moment.of(times) for times in results_to_come(ranges, promised))


@CHECK
@given(lengths=LENGTHS, data=st.data())
def test_a_row_is_kept_as_long_as_it_can_be_in_a_result_with_a_row_to_come(lengths, data):
    ranges = Ranges(tuple(lengths))
    promised = [data.draw(st.integers(40, 46)) for _ in lengths]
    own = data.draw(st.integers(0, len(lengths) - 1))
    others = [i for i in range(len(lengths)) if i != own]
    wanted = (t for t in results_to_come(ranges, promised) if any(t[i] >= promised[i] for i in others))
    assert ranges.first_kept(own, promised) == min(times[own] for times in wanted)


@CHECK
@given(lengths=st.lists(st.sampled_from([1, 2, 5, 50]), min_size=2, max_size=5), data=st.data())
def test_the_next_row_is_between_what_the_rows_so_far_allow(lengths, data):
    """Row after row in any order, the bounds of each step leave exactly what is near in the end."""
    ranges, count = Ranges(tuple(lengths)), len(lengths)
    order = data.draw(st.permutations(range(count)))
    times = data.draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    latest, until = times[order[0]], times[order[0]] + lengths[order[0]]
    inside = True
    for target in order[1:]:
        first, last = ranges.between(target, latest, until)
        inside &= first <= times[target] <= last
        latest, until = max(latest, times[target]), min(until, times[target] + lengths[target])
    assert inside == ranges.near(times)


@CHECK
@given(a=st.integers(1, 30), b=st.integers(1, 30), t=st.integers(0, 40), u=st.integers(0, 40))
def test_of_two_inputs_it_is_the_binary_window(a, b, t, u):
    assert Ranges((a, b)).near([t, u]) == Within(1 - b, a - 1).near(t, u) == (-b < u - t < a)


@pytest.mark.parametrize("lengths", [(10, 100, 1000), (1000, 10, 100)])
def test_borders_on_both_sides_a_factor_of_ten_apart(lengths):
    ranges = Ranges(lengths)
    for i, held in enumerate(lengths):
        times = [5000] * 3
        times[i] -= held - 1
        assert ranges.near(times)
        times[i] -= 1
        assert not ranges.near(times)


def test_an_input_that_has_ended_holds_nothing_back():
    ranges, all_times = Ranges((10, 2, 5)), Moment((0, 1, 2))
    assert ranges.first_kept(0, [50, END, 20]) == 11
    assert ranges.first_kept(2, [50, END, 20]) == 46
    assert ranges.first_kept(1, [END, 3, END]) == END
    assert ranges.promised(all_times, [END, 30, END]) == 30
    assert ranges.promised(all_times, [END, END, END]) == END


def test_nothing_is_promised_before_all_inputs_have_promised():
    ranges = Ranges((10, 2))
    assert ranges.promised(Moment((0,)), [50, START]) == START
    assert ranges.first_kept(0, [50, START]) == START


@given(inputs=st.lists(st.integers(0, 11), min_size=1, max_size=5, unique=True), later=st.booleans())
def test_the_name_of_a_moment_says_all_of_it(inputs, later):
    moment = Moment(tuple(inputs), later)
    assert Moment.read(moment.name) == moment
