"""AsOfJoin against all right rows, in any order of arrival, with a restore between any two calls."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.errors import DataError
from windrow.operators import AsOfJoin, Side
from windrow.operators.sequences.as_of_join import Nearness
from windrow.operators.sequences.beside import Partners, beside
from windrow.progress import END, START, Punctuation

NAN = float("nan")
LEFT = {"k": pl.Float64(), "@t": pl.Int64(), "a": pl.Int64()}
RIGHT = {"k": pl.Float64(), "@t": pl.Int64(), "b": pl.Int64(), "n": pl.Int64()}
TYPES = ({"a": pl.Int64()}, {"b": pl.Int64(), "n": pl.Int64()})
SMALLER = pl.col("a") < pl.col("n")


def same(a, b):
    return a is not None and b is not None and (a == b or (a != a and b != b))


def partner(left, rights, near, keyed, smaller):
    """The right row of a left one by the definition."""
    k, t, a = left
    possible = [
        (u, b is not None, b or 0, n)  # NULL comes first
        for m, u, b, n in rights
        if (not keyed or same(k, m)) and (not smaller or a < n) and (u != t or near.exact)
        if near.tolerance is None or abs(u - t) <= near.tolerance
        if near.strategy == "nearest" or (u <= t if near.strategy == "backward" else u >= t)
    ]
    if not possible:
        return None
    by_distance = {"key": lambda row: (-abs(row[0] - t), *row)} if near.strategy == "nearest" else {}
    _, there, b, n = min(possible) if near.strategy == "forward" else max(possible, **by_distance)
    return (b if there else None), n


keys = st.sampled_from([0.0, -0.0, 1.0, NAN, None])
left_rows = st.lists(st.tuples(keys, st.integers(0, 12)), max_size=12)
right_rows = st.lists(st.tuples(keys, st.integers(0, 12), st.sampled_from([None, 1, 2])), max_size=14)
nearness = st.builds(
    Nearness, st.sampled_from(["backward", "forward", "nearest"]), st.booleans(), st.sampled_from([None, 0, 1, 5])
)


@settings(deadline=None, max_examples=200)
@given(
    lefts=left_rows,
    rights=right_rows,
    near=nearness,
    outer=st.booleans(),
    keyed=st.booleans(),
    smaller=st.booleans(),
    data=st.data(),
)
def test_results_are_those_of_the_definition_and_promises_are_true(lefts, rights, near, outer, keyed, smaller, data):
    lefts = [(k, t, n) for n, (k, t) in enumerate(lefts)]
    rights = [(k, t, b, n) for n, (k, t, b) in enumerate(rights) if not keyed or k is not None]
    waiting = [data.draw(st.permutations(lefts)), data.draw(st.permutations(rights))]
    smaller = smaller and near.tolerance is not None
    options = {"ties": ["b", "n"], "outer": outer, "where": SMALLER if smaller else None}
    join = Restarting(lambda: AsOfJoin(["k"] if keyed else [], TYPES, near, **options))
    found, sides, promised = [], [], START

    def take(items):
        nonlocal promised
        for item in items:
            if isinstance(item, pl.DataFrame):
                assert item["@t"].min() >= promised
                found.extend(item.select("a", "b", "n").rows())
            elif isinstance(item, Punctuation):
                assert item.value > promised
                promised = item.value
            else:
                sides.append(item)

    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, pl.DataFrame(batch, schema=(LEFT, RIGHT)[port], orient="row")))
        if data.draw(st.booleans()):
            join.restart()
        if data.draw(st.booleans()):  # the strongest promise that is true
            take(join.promise(port, min((row[1] for row in waiting[port]), default=END)))
        if data.draw(st.booleans()):
            join.restart()
    for port in (0, 1):
        take(join.promise(port, END))
    expected = [(row[2], *(partner(row, rights, near, keyed, smaller) or (None, None))) for row in lefts]
    assert sorted(found, key=repr) == sorted((row for row in expected if outer or row[2] is not None), key=repr)
    assert join.operator.state_bytes() == 0
    assert join.operator.waits_for() == []
    assert promised == END
    assert sum(side.count for side in sides) == len(lefts) + len(rights)  # each row was joined or freed


def test_each_row_is_joined_or_freed_once():
    join = AsOfJoin([], TYPES, Nearness("backward", False, 0), ties=["b", "n"])
    items = join.on_batch(1, batch(1, (1.0, 0), (1.0, 1), (1.0, 1), (1.0, 1)))
    items += join.on_punctuation(1, Punctuation(0))
    items += join.on_batch(1, batch(1, (1.0, 0), (1.0, 0)))
    items += join.on_punctuation(0, Punctuation(END)) + join.on_punctuation(1, Punctuation(END))
    assert sum(item.count for item in items if isinstance(item, Side)) == 6


def batch(port, *rows):
    """Rows of (key, time), with zeros."""
    return pl.DataFrame([(*row, *(0,) * (1 + port)) for row in rows], schema=(LEFT, RIGHT)[port], orient="row")


def test_what_is_kept_of_a_key_is_its_latest_row():
    join = AsOfJoin(["k"], TYPES, ties=["b", "n"], most_keys=2)
    for t in range(0, 200, 2):
        join.on_batch(1, batch(1, (float(t % 4), t)))
        for port in (0, 1):
            join.on_punctuation(port, Punctuation(t))
    assert join.right.height <= 6
    with pytest.raises(DataError, match="3 keys in one shard, and the query accepts 2"):
        join.on_batch(1, batch(1, (7.0, 300)))


def test_right_rows_leave_with_the_promise_of_the_left_side():
    for strategy, limit in (("backward", 25), ("forward", 20), ("nearest", 25)):
        join = AsOfJoin(["k"], TYPES, Nearness(strategy, True, 5), ties=["b", "n"])
        join.on_batch(1, batch(1, (1.0, 19), (2.0, 20)))
        join.on_punctuation(1, Punctuation(1000))
        join.on_punctuation(0, Punctuation(limit))
        assert join.right.height == 1, strategy
        (side,) = [item for item in join.on_punctuation(0, Punctuation(limit + 1)) if isinstance(item, Side)]
        assert (side.kind, side.count, join.right.height) == ("freed", 1, 0), strategy


def test_a_left_row_waits_for_no_right_row_with_its_own_time_if_that_must_be_earlier():
    join = AsOfJoin(["k"], TYPES, Nearness("backward", False), ties=["b", "n"])
    join.on_batch(1, batch(1, (1.0, 9)))
    join.on_batch(0, batch(0, (1.0, 10)))
    assert join.on_punctuation(1, Punctuation(9)) == []
    pairs, *_ = join.on_punctuation(1, Punctuation(10))
    assert pairs.rows() == [(0, 0, 0, 10)]


def test_no_column_of_the_right_side_is_wanted_where_partners_are_in_several_runs():
    left, right = pl.DataFrame({"a": [1, 2], "@t": [5, 6]}), pl.DataFrame({"b": ["x", "y"]})
    partners = [Partners(right, np.array([at]), np.array([at])) for at in (0, 1)]
    assert beside(left, partners, ({"a": pl.Int64()}, {})).rows() == [(1, 5), (2, 6)]
