"""OpobJoin and OpibJoin against all pairs, in order, in any order of arrival, with a restore between any two calls."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.errors import PlanError
from windrow.operators import OpibJoin, OpobJoin, Side, WindowJoin
from windrow.progress import END, START, Punctuation
from windrow.windows.pairing import SameWindow, Within

LEFT = {"k": pl.Int64(), "a": pl.Int64(), "@t": pl.Int64()}
RIGHT = {"k": pl.Int64(), "b": pl.Int64(), "@t": pl.Int64()}
TIMES = {"left": lambda a, b: a, "right": lambda a, b: b, "later": max, "earlier": min}
ORDERED = [(OpobJoin, on) for on in TIMES] + [(OpibJoin, on) for on in ("left", "right", "later")]


def window_join(window, on, keys=("k",), how="inner"):
    return WindowJoin(keys, window, ({"a": pl.Int64()}, {"b": pl.Int64()}), on=on, how=how)


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    return pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=(LEFT, RIGHT)[side], orient="row")


def all_pairs(lefts, rights, window, on):
    return sorted((TIMES[on](t, u), a, b) for k, t, a in lefts for m, u, b in rights if k == m and window.near(t, u))


side_rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), max_size=14)
bands = st.builds(lambda low, width: Within(low, low + width), st.integers(-12, 12), st.integers(0, 12))
windows = bands | st.builds(SameWindow, st.integers(1, 15), st.integers(-3, 3))


@pytest.mark.parametrize(("kind", "on"), ORDERED)
@settings(deadline=None, max_examples=60)
@given(lefts=side_rows, rights=side_rows, window=windows, keyed=st.booleans(), data=st.data())
def test_pairs_come_in_order_and_promises_are_true(kind, on, lefts, rights, window, keyed, data):
    lefts, rights = ([(k * keyed, t, n) for n, (k, t) in enumerate(side)] for side in (lefts, rights))
    waiting = [data.draw(st.permutations(lefts)), data.draw(st.permutations(rights))]
    join = Restarting(lambda: kind(window_join(window, on, ["k"] if keyed else [])))
    found, promised = [], START

    def take(items):
        nonlocal promised
        for item in items:
            if isinstance(item, pl.DataFrame):
                new = item.select("@t", "a", "b").rows()
                assert all(t >= promised for t, *_ in new)
                found.extend(new)
            elif isinstance(item, Punctuation):
                assert item.value > promised
                promised = item.value
            else:
                assert item.kind in ("joined", "freed")

    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, rows(port, batch) if keyed else rows(port, batch).drop("k")))
        if data.draw(st.booleans()):
            join.restart()
        if waiting[port] and data.draw(st.booleans()):  # the strongest promise that is true
            take(join.promise(port, min(t for _, t, _ in waiting[port])))
        if data.draw(st.booleans()):
            join.restart()
    for port in (0, 1):
        take(join.promise(port, END))
        join.restart()
    assert [t for t, *_ in found] == sorted(t for t, *_ in found)
    assert sorted(found) == all_pairs(lefts, rights, window, on)
    assert promised == END
    assert join.operator.state_bytes() == 0
    assert join.operator.waits_for() == []


@pytest.mark.parametrize(("kind", "on"), ORDERED)
@settings(deadline=None, max_examples=60)
@given(window=windows, left=st.integers(90, 110), right=st.integers(90, 110))
def test_the_promise_is_that_of_the_join_without_order(kind, on, window, left, right):
    joins = [kind(window_join(window, on)), window_join(window, on)]
    for join in joins:
        assert join.on_punctuation(0, Punctuation(left)) == []
    ordered, plain = (join.on_punctuation(1, Punctuation(right)) for join in joins)
    if (kind, on) == (OpibJoin, "later"):
        assert [p.value for p in ordered] == [min(left, right)]
    else:
        assert ordered == plain


@pytest.mark.parametrize("kind", [OpobJoin, OpibJoin])
def test_a_row_at_the_promise_itself_need_not_wait(kind):
    join = kind(window_join(Within(-5, 0), "left"))
    join.on_punctuation(0, Punctuation(10))
    join.on_punctuation(1, Punctuation(11))
    join.on_batch(1, rows(1, [(1, 11, 0)]))
    assert join.on_batch(0, rows(0, [(1, 10, 0)])) == [Side("freed", 1)]  # no partner
    join = kind(window_join(Within(-5, 0), "left"))
    join.on_batch(1, rows(1, [(1, 7, 3)]))
    join.on_punctuation(0, Punctuation(10))
    join.on_punctuation(1, Punctuation(11))
    [pairs, *_] = join.on_batch(0, rows(0, [(1, 10, 0)]))
    assert pairs.select("a", "b", "@t").rows() == [(0, 3, 10)]


def test_the_input_buffered_join_keeps_rows_where_the_other_keeps_pairs():
    """Li 7.3: a left row with many partners is one row; its pairs are many."""
    lefts, rights = rows(0, [(1, 10, 0)]), rows(1, [(1, t, t) for t in range(6, 15)])
    for kind, held in ((OpobJoin, 9), (OpibJoin, 0)):
        join = kind(window_join(Within(-5, 5), "left"))
        assert all(isinstance(x, Side) for x in [*join.on_batch(0, lefts), *join.on_batch(1, rights)])
        assert (join.buffer.runs.height if kind is OpobJoin else 0) == held
        join.on_punctuation(0, Punctuation(20))
        assert [str(w) for w in join.waits_for()][-1].startswith("waits on port 1 for a promise >= 16")
        pairs, *_, promise = join.on_punctuation(1, Punctuation(16))
        assert (pairs.height, promise.value) == (9, 11)


def test_opib_names_the_promise_of_each_side_that_a_row_waits_for():
    join = OpibJoin(window_join(Within(-5, 5), "left"))
    join.on_batch(0, rows(0, [(1, 10, 0), (1, 12, 1)]))
    assert [str(w) for w in join.waits_for()] == [
        "waits on port 0 for a promise >= 10, holding 2 rows",
        "waits on port 1 for a promise >= 16, holding 2 rows",
    ]
    join.on_punctuation(0, Punctuation(30))
    assert [str(w) for w in join.waits_for()] == ["waits on port 1 for a promise >= 16, holding 2 rows"]
    join.on_punctuation(1, Punctuation(16))
    assert [str(w) for w in join.waits_for()] == ["waits on port 1 for a promise >= 18 since 16, holding 1 rows"]


@pytest.mark.parametrize(("kind", "on"), ORDERED)
def test_a_late_row_is_counted_and_makes_no_pair(kind, on):
    join = kind(window_join(Within(0, 5), on))
    join.on_batch(1, rows(1, [(1, 12, 0)]))
    join.on_punctuation(0, Punctuation(11))
    [side] = join.on_batch(0, rows(0, [(1, 10, 7)]))
    assert isinstance(side, Side)
    assert (side.kind, side.count, side.rows["late_by"].to_list()) == ("late", 1, [1])


@pytest.mark.parametrize(("kind", "on"), ORDERED)
def test_the_end_says_how_far_both_sides_came(kind, on):
    join = Restarting(lambda: kind(window_join(Within(0, 5), on)))
    assert join.operator.on_punctuation(0, Punctuation(END, reached=30)) == []
    join.restart()
    found = join.operator.on_punctuation(1, Punctuation(END, reached=40))
    reached = {"left": 30, "right": 40, "later": 40, "earlier": 30}[on]
    assert [(p.value, p.reached) for p in found] == [(reached, None), (END, reached)]


@pytest.mark.parametrize(("how", "on", "why"), [("left", "left", "inner joins only"), ("inner", "earlier", "earlier")])
def test_opib_refuses_what_it_cannot_put_in_order(how, on, why):
    with pytest.raises(PlanError, match=f"{why}.*opob"):
        OpibJoin(window_join(Within(0, 5), on, how=how))
