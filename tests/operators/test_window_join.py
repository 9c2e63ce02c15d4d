"""WindowJoin against all pairs, in any order of arrival, with a restore between any two calls."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Side, WindowJoin
from windrow.operators.joins.choosing import WAYS, Choosing
from windrow.operators.joins.costs import Unit
from windrow.progress import END, START, Punctuation
from windrow.spec.keeping import KEPT
from windrow.windows.pairing import SameWindow, Within

NAN = float("nan")
LEFT = {"k": pl.Float64(), "a": pl.Int64(), "@t": pl.Int64()}
RIGHT = {"k": pl.Float64(), "b": pl.Int64(), "@t": pl.Int64()}
TYPES = ({"a": pl.Int64()}, {"b": pl.Int64()})
TIMES = {"left": lambda a, b: a, "right": lambda a, b: b, "later": max, "earlier": min, "first": lambda a, b: a}
TIMED = {"left": ("left", "later"), "right": ("right", "earlier"), "full": ("later", "earlier", "first")}
SMALLER = pl.col("a") < pl.col("b")


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    schema = (LEFT, RIGHT)[side]
    return pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=schema, orient="row")


def within(low, high, on="later", keys=("k",), **options):
    return WindowJoin(keys, Within(low, high), TYPES, on=on, **options)


def same(a, b):
    return a is not None and b is not None and (a == b or (a != a and b != b))


def results(lefts, rights, window, on, how, keyed, smaller):
    """All results by the definition, as (a, b, time); of semi and anti joins (a, time)."""

    def pair(left, right):
        (k, t, a), (m, u, b) = left, right
        return window.near(t, u) and (not keyed or same(k, m)) and (not smaller or a < b)

    pairs = [(x, y) for x in lefts for y in rights if pair(x, y)]
    matched = [{x for x, _ in pairs}, {y for _, y in pairs}]
    if how in ("semi", "anti"):
        return sorted((a, t) for x in lefts for _, t, a in [x] if (x in matched[0]) is (how == "semi"))
    found = [(a, b, TIMES[on](t, u)) for (_, t, a), (_, u, b) in pairs]
    alone = [(a, None, t) for x in lefts for _, t, a in [x] if how in ("left", "full") and x not in matched[0]]
    alone += [(None, b, u) for y in rights for _, u, b in [y] if how in ("right", "full") and y not in matched[1]]
    return sorted(found + alone, key=repr)


class Flipping(Choosing):
    """Changes its mind with nearly every batch, by what it has seen so far."""

    def before(self, side, rows, keeping, held):
        return {at: WAYS[(held[at] + rows) % 3] for at in (0, 1) if held[at] % 2}

    def _better(self, keeping, held):
        for at, window in enumerate(self.windows):
            new = WAYS[(int(window.pairs) + at + held[1 - at]) % 3]
            if new != keeping[at]:
                yield at, new


FREE = Unit(call=0, run=0, sort=0, merge=0, keep=0, chain=0)  # so that a change costs nothing
KEEPING = [(a, b) for a in WAYS for b in WAYS] + [KEPT[name] for name in KEPT if name.endswith("lazy")]
keys = st.sampled_from([0.0, -0.0, 1.0, NAN, None])
side_rows = st.lists(st.tuples(keys, st.integers(0, 40)), max_size=14)
windows = st.one_of(
    st.builds(lambda low, width: Within(low, low + width), st.integers(-12, 12), st.integers(0, 50)),
    st.builds(SameWindow, st.integers(1, 30), st.integers(-5, 50)),
)


@settings(deadline=None, max_examples=200)
@given(
    lefts=side_rows,
    rights=side_rows,
    window=windows,
    how=st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]),
    keyed=st.booleans(),
    smaller=st.booleans(),
    data=st.data(),
)
def test_results_are_those_of_the_definition_and_promises_are_true(lefts, rights, window, how, keyed, smaller, data):
    lefts = [(k, t, n) for n, (k, t) in enumerate(lefts)]
    rights = [(k, t, n) for n, (k, t) in enumerate(rights)]
    on = data.draw(st.sampled_from(sorted(TIMED.get(how, ("left",) if how in ("semi", "anti") else TIMES))))
    waiting = [data.draw(st.permutations(lefts)), data.draw(st.permutations(rights))]
    options = {"how": how, "where": SMALLER if smaller else None}

    def fresh():
        """Kept in one way or another, or in changing ones: a checkpoint of any can be restored by any."""
        choosing = data.draw(st.sampled_from([None, None, Flipping, Choosing]))
        kept = {"keeping": data.draw(st.sampled_from(KEEPING[: 9 if choosing else None]))}
        kept |= {"choosing": choosing(FREE)} if choosing else {}
        return WindowJoin(["k"] if keyed else [], window, TYPES, on=on, **kept, **options)

    join, found, stored, sides = fresh(), [], {}, []
    promised = START

    def take(items):
        nonlocal promised
        for item in items:
            if isinstance(item, pl.DataFrame):
                new = item.rows()
                assert all(row[-1] >= promised for row in new)
                found.extend(new)
            elif isinstance(item, Punctuation):
                assert item.value > promised
                promised = item.value
            else:
                sides.append(item)

    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, rows(port, batch)))
        if data.draw(st.booleans()):  # the strongest promise that is true
            value = min((t for _, t, _ in waiting[port]), default=END)
            take(join.on_punctuation(port, Punctuation(value)))
        stored = {k: v for k, v in {**stored, **join.changes()}.items() if v is not None}
        snapshot = {name: frame for name, frame in join.snapshot().items() if name != "promises"}
        assert sorted(stored.keys() - {"promises"}) == sorted(snapshot)
        assert all(frame.equals(stored[name]) for name, frame in snapshot.items())
        if data.draw(st.booleans()):
            join = fresh()
            join.restore(stored)
    for port in (0, 1):
        take(join.on_punctuation(port, Punctuation(END)))
    assert sorted(found, key=repr) == results(lefts, rights, window, on, how, keyed, smaller)
    assert join.state_bytes() == 0
    assert join.waits_for() == []
    assert sum(side.count for side in sides) == len(lefts) + len(rights)  # each row was joined or freed, once


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
    join = within(low, high, on)
    assert join.on_punctuation(0, Punctuation(100)) == []
    assert join.on_punctuation(1, Punctuation(100)) == [Punctuation(expected)]
    assert earliest(100, 100, low, high, on) == expected


@settings(deadline=None, max_examples=200)
@given(
    left=st.integers(90, 110),
    right=st.integers(90, 110),
    low=st.integers(-8, 8),
    width=st.integers(0, 8),
    on=st.sampled_from(["left", "right", "later", "earlier", "first"]),
)
def test_no_promise_of_the_result_could_be_stronger(left, right, low, width, on):
    join = within(low, low + width, on)
    join.on_punctuation(0, Punctuation(left))
    [found] = join.on_punctuation(1, Punctuation(right))
    assert found.value == earliest(left, right, low, low + width, on)


def earliest(left, right, low, high, on):
    """The least time of a pair of which one row is still to come."""
    near = range(60, 140)
    pairs = ((t, u) for t in near for u in near if low <= u - t <= high and (t >= left or u >= right))
    return min(TIMES[on](t, u) for t, u in pairs)


def test_a_row_is_kept_only_as_long_as_a_partner_can_come():
    join = within(0, 5)
    join.on_batch(0, rows(0, [(1.0, 10, 0), (1.0, 20, 1)]))
    assert [str(wait) for wait in join.waits_for()] == ["waits on port 1 for a promise >= 16, holding 2 rows"]
    join.on_punctuation(1, Punctuation(16))
    assert [wait.count for wait in join.waits_for()] == [1]
    join.on_batch(0, rows(0, [(1.0, 10, 2)]))  # not kept: no right row below 16 will come
    assert [wait.count for wait in join.waits_for()] == [1]
    join.on_punctuation(1, Punctuation(26))
    assert join.waits_for() == []


def test_a_row_below_its_own_promise_is_late_and_makes_no_pair():
    join = within(0, 5)
    join.on_batch(1, rows(1, [(1.0, 12, 0)]))
    join.on_punctuation(0, Punctuation(11))
    [side] = join.on_batch(0, rows(0, [(1.0, 10, 7)]))
    assert isinstance(side, Side)
    assert (side.kind, side.count, side.rows["late_by"].to_list()) == ("late", 1, [1])


def test_the_end_comes_when_both_sides_have_ended_and_says_how_far_they_came():
    join = within(0, 5)
    assert join.on_punctuation(0, Punctuation(END, reached=30)) == []
    found = join.on_punctuation(1, Punctuation(END, reached=40))
    assert [(p.value, p.reached) for p in found] == [(40, None), (END, 40)]
