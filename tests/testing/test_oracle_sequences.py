"""The oracle's sequences and as-of joins: small ones by hand, and what other ways to compute them say."""

import random

import polars as pl
import pytest
from sqlglot import exp

import windrow as wr
from windrow.api.query import merged
from windrow.api.stream import Stream
from windrow.logical.checked_sequence import as_of, sequence
from windrow.logical.nodes import Compared, Measure, SeqStep
from windrow.testing import compare, oracle

SCHEMA = {"x": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}
SPAN = 30


def stream(rows, name):
    """Rows given as times of one key, or as (x, time, key)."""
    whole = [(n, row, 1) if isinstance(row, int) else row for n, row in enumerate(rows)]
    data = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(whole, schema=SCHEMA, orient="row")
    return wr.stream(data, "t", slack=100, name=name)


def query(steps, measures=None, conditions=(), on=("k",), **options):
    """``steps``: rows by names, such as ``a``, ``-x`` (negated) and ``b+`` (repeated). Rows of a step are those of
    another if it names that."""
    made = {}
    for name, rows in steps.items():
        made[name] = made[rows] if isinstance(rows, str) else stream(rows, name.strip("-+"))
    kinds = [SeqStep(name.strip("-+"), name[0] == "-", name[-1] == "+") for name in steps]
    if measures is None:
        measures = []
        for number, kind in enumerate(kinds):
            functions = ("first", "last", "count") if kind.repeated else ("",)
            measures += [(f"{kind.name}{f}", number, "t", f) for f in functions if not kind.negated]
    keys = [tuple(exp.column(key) for _ in steps) for key in on]
    tests = [Compared(a, exp.column(left), op, b, exp.column(right)) for a, left, op, b, right in conditions]
    measured = [Measure(*measure) for measure in measures]
    nodes = [each.node for each in made.values()]
    node = sequence(nodes, kinds, keys, measured, conditions=tests, **{"within": 1000, **options})
    return Stream(node, merged(made.values()))


def found(steps, **options):
    return sorted(oracle(query(steps, **options)).rows(), key=repr)


RECENT, CHRONICLE = {"matching": "recent"}, {"matching": "chronicle"}


def test_two_steps():
    steps = {"a": [1, 2, 6], "b": [2, 3, 4, 9]}
    assert found(steps, **RECENT) == [(2, 2), (2, 3), (2, 4), (6, 9)]
    assert found(steps, **CHRONICLE) == [(1, 2), (2, 3), (6, 9)]
    assert found(steps, within=1, **RECENT) == [(2, 2), (2, 3)]
    assert found(steps, within=1, **CHRONICLE) == [(1, 2), (2, 3)]
    assert found(steps, outer=True, within=1, **CHRONICLE) == [(1, 2), (2, 3), (None, 4), (None, 9)]


def test_rows_of_one_stream_follow_others_and_never_themselves():
    steps = {"a": [1, 2, 2, 5], "b": "a"}
    assert found(steps, **RECENT) == [(1, 2), (1, 2), (2, 5)]
    assert found(steps, **CHRONICLE) == [(1, 2), (2, 5)]  # of two rows at 2 one finds nothing before it


def test_a_row_with_a_null_key_comes_out_alone_or_not_at_all():
    steps = {"a": [(0, 1, None), (1, 2, 7)], "b": [(0, 3, None), (1, 4, 7)]}
    assert found(steps) == [(2, 4)]
    assert found(steps, outer=True) == [(2, 4), (None, 3)]


def test_what_comes_between_ends_all_sequences_or_the_earliest():
    steps = {"a": [1, 2, 5], "-x": [3], "b": [4, 6]}
    assert found(steps, **RECENT) == [(5, 6)]
    assert found(steps, **CHRONICLE) == [(2, 4), (5, 6)]


def test_what_does_not_come_within_the_time():
    steps = {"a": [1, 10, 20], "-x": [12, 26]}
    assert found(steps, within=5) == [(1,), (20,)]
    assert found(steps, within=6) == [(1,)]


def test_a_condition_on_what_must_not_come():
    steps = {"a": [(1, 1, 1), (2, 2, 1)], "-x": [(2, 3, 1)], "b": [5]}
    conditions = [(0, "x", "=", 1, "x")]
    assert found(steps, conditions=conditions) == [(1, 5)]


def test_one_and_more_rows_at_the_end():
    steps = {"a": [1, 5], "b+": [2, 3, 6, 30]}
    assert found(steps, within=10, **RECENT) == [(1, 2, 3, 2), (5, 6, 6, 1)]
    assert found(steps, within=10, **CHRONICLE) == [(1, 2, 6, 3)]  # the first one takes whatever it can


def test_one_and_more_rows_at_the_beginning():
    steps = {"a+": [1, 2, 9], "b": [3, 4, 10]}
    assert found(steps, within=5, **RECENT) == [(1, 2, 2, 3), (1, 2, 2, 4), (9, 9, 1, 10)]
    assert found(steps, within=5, **CHRONICLE) == [(1, 2, 2, 3), (9, 9, 1, 10)]


def test_one_and_more_rows_in_the_middle():
    """A row goes on with a sequence until a later one stands before its step."""
    steps = {"a": [1, 4], "b+": [2, 3, 5], "c": [3, 6, 7]}
    assert found(steps, **RECENT) == [(1, 2, 3, 2, 3), (4, 5, 5, 1, 6), (4, 5, 5, 1, 7)]
    assert found(steps, **CHRONICLE) == [(1, 2, 3, 2, 3), (4, 5, 5, 1, 6)]


def test_what_was_taken_does_not_grow_any_more():
    steps = {"a+": [1, 3], "b": [2, 4]}
    assert found(steps, **RECENT) == [(1, 1, 1, 2), (1, 3, 2, 4)]


def test_after_a_match_all_that_has_begun_is_forgotten():
    steps = {"a": [1, 2], "b": [3, 4, 8], "c": [5, 6]}
    assert found(steps, **CHRONICLE) == [(1, 3, 5), (2, 4, 6)]
    assert found(steps, skip="past last row", **CHRONICLE) == [(1, 3, 5)]
    assert found(steps, skip="past last row", **RECENT) == [(2, 4, 5)]


def test_measures_of_several_rows():
    """NULL is left out, but the first and the last row are what they are."""
    steps = {"a": [1], "b+": [(None, 2, 1), (4, 3, 1), (1, 4, 1), (None, 5, 1)]}
    functions = ["first", "last", "count", "sum", "min", "max", "avg"]
    measures = [("n", 1, None, "count"), *((f, 1, "x", f) for f in functions)]
    assert found(steps, measures=measures) == [(4, None, None, 2, 5, 1, 4, 2.5)]


# -- other ways to say the same ----------------------------------------------------------------------------------------
def drawn(seed, number):
    rng = random.Random(seed)
    frames = []
    for _ in range(number):
        data = [(rng.randrange(3), rng.randrange(SPAN), rng.choice([1, 2, None])) for _ in range(rng.randint(0, 20))]
        frames.append(pl.DataFrame(data, schema=SCHEMA, orient="row"))
    return frames


def every(number):
    return [(f"{'abc'[step]}{c}", step, c, "") for step in range(number) for c in SCHEMA]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("itself", [False, True])
def test_the_most_recent_of_two_steps_is_an_as_of_join_backward(seed, outer, itself):
    a, b = drawn(seed, 2)
    within = [0, 3, 1000][seed % 3]
    steps = {"a": a, "b": "a" if itself else b}
    asked = query(steps, every(2), within=within, outer=outer)
    left, right = asked.node.members[1], asked.node.members[0]
    columns = tuple((f"{'ab'[1 - side]}{c}", side, c) for side in (1, 0) for c in SCHEMA)
    node = as_of(
        left,
        right,
        [(exp.column("k"), exp.column("k"))],
        columns,
        exact=not itself,
        tolerance=within,
        how="left" if outer else "inner",
    )
    compare(oracle(asked), oracle(Stream(node, asked.sources)))


@pytest.mark.parametrize("seed", range(8))
def test_the_most_recent_of_three_steps_is_one_as_of_join_after_the_other(seed):
    a, b, c = drawn(seed, 3)
    first = b.filter(pl.col("k").is_not_null()).sort("t", "x").rename({"x": "bx"}).with_columns(bt="t", bk="k")
    pairs = first.join_asof(
        a.sort("t", "x").rename({"x": "ax"}).with_columns(at="t"), on="t", by="k", check_sortedness=False
    )
    pairs = pairs.filter(pl.col("at").is_not_null())
    last = c.rename({"x": "cx"}).with_columns(ct="t").sort("t")
    both = last.join_asof(pairs, on="t", by="k", check_sortedness=False).filter(pl.col("bt").is_not_null())
    expected = both.select("ax", "at", ak="k", bx="bx", bt="bt", bk="k", cx="cx", ct="ct", ck="k")
    compare(oracle(query({"a": a, "b": b, "c": c}, every(3), within=None, most_keys=9)), expected)


@pytest.mark.parametrize("seed", range(8))
def test_the_earliest_unused_rows_are_those_that_a_queue_gives(seed):
    a, b = drawn(seed, 2)
    expected = []
    for key in (1, 2):
        rows = sorted(
            [*((t, 0, x) for x, t, k in a.rows() if k == key), *((t, 1, x) for x, t, k in b.rows() if k == key)]
        )
        queue = []
        for t, step, x in rows:
            if step == 0:
                queue.append((x, t, key))
            elif queue:
                expected.append((*queue.pop(0), x, t, key))
    assert sorted(oracle(query({"a": a, "b": b}, every(2), **CHRONICLE)).rows()) == sorted(expected)


@pytest.mark.parametrize("seed", range(8))
def test_what_comes_between_by_comparing_times(seed):
    """A row pairs with the latest that has nothing between: a row at the same time as the first is after it, one at
    the time of the last before it."""
    a, x, b = drawn(seed, 3)
    expected = []
    for bx, bt, k in b.filter(pl.col("k").is_not_null()).rows():
        ended = max((t for _, t, key in x.rows() if key == k and t <= bt), default=-1)
        begun = [(t, ax) for ax, t, key in a.rows() if key == k and ended < t <= bt]
        if begun:
            expected.append((*max(begun), bx, bt))
    measures = [("at", 0, "t", ""), ("ax", 0, "x", ""), ("bx", 2, "x", ""), ("bt", 2, "t", "")]
    assert sorted(oracle(query({"a": a, "-x": x, "b": b}, measures)).rows()) == sorted(expected)
