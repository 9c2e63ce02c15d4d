"""WindowJoin against all pairs, in any order of arrival, with a restore between any two calls."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Side, WindowJoin
from windrow.progress import END, START, Punctuation

NAN = float("nan")
LEFT = {"k": pl.Float64(), "a": pl.Int64(), "@t": pl.Int64()}
RIGHT = {"k": pl.Float64(), "b": pl.Int64(), "@t": pl.Int64()}
TIMES = {"left": lambda a, b: a, "right": lambda a, b: b, "later": max, "earlier": min}


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    schema = (LEFT, RIGHT)[side]
    return pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=schema, orient="row")


def same(a, b):
    return a == b or (a != a and b != b)


def all_pairs(lefts, rights, low, high, on):
    return sorted(
        (a, b, TIMES[on](t, u)) for k, t, a in lefts for m, u, b in rights if same(k, m) and low <= u - t <= high
    )


keys = st.sampled_from([0.0, -0.0, 1.0, NAN])
side_rows = st.lists(st.tuples(keys, st.integers(0, 40)), max_size=14)


@settings(deadline=None, max_examples=150)
@given(
    lefts=side_rows,
    rights=side_rows,
    low=st.integers(-12, 12),
    width=st.integers(0, 12),
    on=st.sampled_from(sorted(TIMES)),
    keyed=st.booleans(),
    data=st.data(),
)
def test_pairs_are_those_of_the_definition_and_promises_are_true(lefts, rights, low, width, on, keyed, data):
    high = low + width
    lefts = [(k, t, n) for n, (k, t) in enumerate(lefts)]
    rights = [(k, t, n) for n, (k, t) in enumerate(rights)]
    expected = all_pairs(*([(1.0, t, n) for _, t, n in s] if not keyed else s for s in (lefts, rights)), low, high, on)
    waiting = [data.draw(st.permutations(lefts)), data.draw(st.permutations(rights))]

    def fresh():
        return WindowJoin(["k"] if keyed else [], low, high, on)

    join, found, given_promises, stored = fresh(), [], [START, START], {}
    promised = START
    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        frame = rows(port, batch) if keyed else rows(port, batch).drop("k")
        items = join.on_batch(port, frame)
        if data.draw(st.booleans()):  # the strongest promise that is true
            value = min((t for _, t, _ in waiting[port]), default=END)
            given_promises[port] = max(given_promises[port], value)
            items += join.on_punctuation(port, Punctuation(value))
        for item in items:
            if isinstance(item, pl.DataFrame):
                new = item.select("a", "b", "@t").rows()
                assert all(t >= promised for *_, t in new)
                found += new
            else:
                assert isinstance(item, Punctuation)
                assert item.value > promised
                promised = item.value
        stored = {k: v for k, v in {**stored, **join.changes()}.items() if v is not None}
        if data.draw(st.booleans()):
            join = fresh()
            join.restore(stored)
    assert sorted(found) == expected
    for port in (0, 1):
        join.on_punctuation(port, Punctuation(END))
    assert join.state_bytes() == 0
    assert join.waits_for() == []


@pytest.mark.parametrize(
    ("low", "high", "on", "expected"),
    [
        (-3, 10, "later", 100),
        (-3, 10, "left", 90),
        (-3, 10, "right", 97),
        (-3, 10, "earlier", 90),
        (4, 10, "later", 100),
        (4, 10, "right", 100),
        (-10, -4, "later", 100),
        (-10, -4, "left", 100),
    ],
)
def test_the_promise_of_the_result_is_the_strongest_true_one(low, high, on, expected):
    """Both sides promise 100: a pair to come can be as early as this, and no earlier."""
    join = WindowJoin(["k"], low, high, on)
    assert join.on_punctuation(0, Punctuation(100)) == []
    assert join.on_punctuation(1, Punctuation(100)) == [Punctuation(expected)]
    assert earliest(100, 100, low, high, on) == expected


@settings(deadline=None, max_examples=200)
@given(
    left=st.integers(90, 110),
    right=st.integers(90, 110),
    low=st.integers(-8, 8),
    width=st.integers(0, 8),
    on=st.sampled_from(sorted(TIMES)),
)
def test_no_promise_of_the_result_could_be_stronger(left, right, low, width, on):
    join = WindowJoin(["k"], low, low + width, on)
    join.on_punctuation(0, Punctuation(left))
    [found] = join.on_punctuation(1, Punctuation(right))
    assert found.value == earliest(left, right, low, low + width, on)


def earliest(left, right, low, high, on):
    """The least time of a pair of which one row is still to come."""
    near = range(60, 140)
    pairs = ((t, u) for t in near for u in near if low <= u - t <= high and (t >= left or u >= right))
    return min(TIMES[on](t, u) for t, u in pairs)


def test_a_row_is_kept_only_as_long_as_a_partner_can_come():
    join = WindowJoin(["k"], 0, 5)
    join.on_batch(0, rows(0, [(1.0, 10, 0), (1.0, 20, 1)]))
    assert [str(wait) for wait in join.waits_for()] == ["waits on port 1 for a promise >= 16, holding 2 rows"]
    join.on_punctuation(1, Punctuation(16))
    assert [wait.count for wait in join.waits_for()] == [1]
    join.on_batch(0, rows(0, [(1.0, 10, 2)]))  # not kept: no right row below 16 will come
    assert [wait.count for wait in join.waits_for()] == [1]
    join.on_punctuation(1, Punctuation(26))
    assert join.waits_for() == []


def test_a_row_below_its_own_promise_is_late_and_makes_no_pair():
    join = WindowJoin(["k"], 0, 5)
    join.on_batch(1, rows(1, [(1.0, 12, 0)]))
    join.on_punctuation(0, Punctuation(11))
    [side] = join.on_batch(0, rows(0, [(1.0, 10, 7)]))
    assert isinstance(side, Side)
    assert (side.kind, side.count, side.rows["late_by"].to_list()) == ("late", 1, [1])


def test_the_end_comes_when_both_sides_have_ended_and_says_how_far_they_came():
    join = WindowJoin(["k"], 0, 5)
    assert join.on_punctuation(0, Punctuation(END, reached=30)) == []
    found = join.on_punctuation(1, Punctuation(END, reached=40))
    assert [(p.value, p.reached) for p in found] == [(40, None), (END, 40)]
