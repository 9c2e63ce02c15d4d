"""AsOfJoin call by call: each row comes out with the promise that makes it final; restarts between any two calls."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.errors import DataError
from windrow.operators import AsOfJoin, Side
from windrow.operators.sequences.as_of_join import Nearness
from windrow.progress import END, START, Punctuation

TYPES = {"a": pl.Int64()}, {"b": pl.Int64()}
SCHEMAS = [{"@k": pl.Int64, "@t": pl.Int64, **types} for types in TYPES]
NEAR = [
    Nearness(s, exact, far) for s in ("backward", "forward", "nearest") for exact in (True, False) for far in (None, 6)
]


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    return pl.DataFrame(given_rows, schema=SCHEMAS[side], orient="row")


def partner(left, rights, near):
    """The right row that a left row is paired with, by the definition."""
    k, t, _ = left
    fit = [r for r in rights if r[0] == k and (near.exact or r[1] != t)]
    fit = [r for r in fit if near.tolerance is None or abs(r[1] - t) <= near.tolerance]
    back = max((r for r in fit if r[1] <= t), key=lambda r: r[1:], default=None)
    ahead = min((r for r in fit if r[1] >= t), key=lambda r: r[1:], default=None)
    if near.strategy == "backward" or ahead is None:
        return back if near.strategy != "forward" else None
    if near.strategy == "forward":
        return ahead
    if back is not None and t - back[1] < ahead[1] - t:
        return back
    return max(r for r in fit if r[1] == ahead[1])


def final(left, rights, near, promised):
    """Whether a left row is final under a promise of the right side, of rows that look one way."""
    t = left[1]
    if near.strategy == "backward":
        return t < promised + (not near.exact) or promised == END
    found = partner(left, rights, near)
    far = near.tolerance is not None and t + near.tolerance < promised
    return far or promised == END or (found is not None and found[1] < promised)


some_rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 25)), max_size=12)


@settings(deadline=None, max_examples=150)
@given(lefts=some_rows, rights=some_rows, near=st.sampled_from(NEAR), data=st.data())
def test_rows_come_out_when_they_are_final_and_promises_are_true(lefts, rights, near, data):
    given_rows = [[(k, t, n) for n, (k, t) in enumerate(side)] for side in (lefts, rights)]
    waiting = [data.draw(st.permutations(side)) for side in given_rows]
    join = Restarting(lambda: AsOfJoin(["@k"], TYPES, near, ties=["b"], outer=True))
    come: list[list[tuple[int, int, int]]] = [[], []]
    found: dict[int, int | None] = {}
    promised, given_out = [START, START], START

    def take(items):
        nonlocal given_out
        for item in items:
            if isinstance(item, pl.DataFrame):
                assert all(t >= given_out and a not in found for a, _, t in item.rows())
                found.update({a: b for a, b, _ in item.rows()})
            elif isinstance(item, Punctuation):
                assert item.value > given_out
                given_out = item.value

    while open_sides := [side for side in (0, 1) if promised[side] != END]:
        side = data.draw(st.sampled_from(open_sides))
        least = min((t for _, t, _ in waiting[side]), default=END)
        if waiting[side] and (promised[side] == least or data.draw(st.booleans())):
            size = data.draw(st.integers(1, 4))
            come[side] += waiting[side][:size]
            take(join.on_batch(side, rows(side, waiting[side][:size])))
            waiting[side] = waiting[side][size:]
        else:
            promised[side] = least
            take(join.promise(side, promised[side]))
        if near.strategy != "nearest":
            done = {r[2] for r in come[0] if final(r, come[1], near, promised[1])}
            assert set(found) == done
        if data.draw(st.booleans()):
            join.restart()
    expected = {left[2]: partner(left, given_rows[1], near) for left in given_rows[0]}
    assert found == {a: None if r is None else r[2] for a, r in expected.items()}
    assert given_out == END
    assert join.operator.right.height == join.operator.waiting.height == 0


def test_of_older_right_rows_the_latest_of_each_key_stays():
    join = AsOfJoin(["@k"], TYPES, ties=["b"])
    join.on_batch(1, rows(1, [(k, t, t) for k in (1, 2) for t in range(10)]))
    join.on_punctuation(1, Punctuation(20))
    assert join.right.height == 20
    join.on_punctuation(0, Punctuation(15))
    assert sorted(r for run in join.right.runs.values() for r in run.frame.select("@k", "b").rows()) == [(1, 9), (2, 9)]


def test_within_a_tolerance_the_latest_row_leaves_too():
    join = AsOfJoin(["@k"], TYPES, Nearness(tolerance=3), ties=["b"])
    join.on_batch(1, rows(1, [(1, 5, 0)]))
    join.on_punctuation(1, Punctuation(20))
    join.on_punctuation(0, Punctuation(8))
    assert join.right.height == 1
    join.on_punctuation(0, Punctuation(9))
    assert join.right.height == 0


def test_more_keys_than_the_query_accepts_stop_it():
    join = AsOfJoin(["@k"], TYPES, ties=["b"], most_keys=2)
    join.on_batch(1, rows(1, [(1, 1, 0), (2, 1, 0), (1, 2, 0)]))
    with pytest.raises(DataError, match="holds rows of 3 keys in one shard, and the query accepts 2"):
        join.on_batch(1, rows(1, [(3, 1, 0)]))


def test_late_rows_follow_the_policy_of_their_side():
    join = AsOfJoin(["@k"], TYPES, ties=["b"], late=("side", "drop"))
    for side in (0, 1):
        join.on_punctuation(side, Punctuation(10))
    kinds = [[i.kind for i in join.on_batch(side, rows(side, [(1, 9, 0)])) if isinstance(i, Side)] for side in (0, 1)]
    assert all(each == ["late"] for each in kinds)
    assert join.right.height == join.waiting.height == 0


@pytest.mark.parametrize(("exact", "needed"), [(True, 11), (False, 10)])
def test_it_waits_for_the_promise_that_makes_its_first_row_final(exact, needed):
    join = AsOfJoin(["@k"], TYPES, Nearness("backward", exact), ties=["b"], outer=True)
    assert join.waits_for() == []
    join.on_batch(0, rows(0, [(1, 10, 0), (1, 12, 1)]))
    [wait] = join.waits_for()
    assert (wait.port, wait.promise, wait.since, wait.count) == (1, needed, START, 2)
    assert not [i for i in join.on_punctuation(1, Punctuation(needed - 1)) if isinstance(i, pl.DataFrame)]
    assert [i.height for i in join.on_punctuation(1, Punctuation(needed)) if isinstance(i, pl.DataFrame)] == [1]
    join.on_batch(1, rows(1, [(1, 20, 0)]))
    assert {w.port: w.count for w in join.waits_for()} == {0: 1, 1: 1}


def test_looking_ahead_it_waits_for_whatever_the_right_side_promises_next():
    join = AsOfJoin(["@k"], TYPES, Nearness("forward", tolerance=5), ties=["b"])
    join.on_batch(0, rows(0, [(1, 10, 0)]))
    join.on_punctuation(1, Punctuation(13))
    assert [(w.port, w.promise, w.count) for w in join.waits_for()] == [(1, 14, 1)]
