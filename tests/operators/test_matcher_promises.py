"""Matcher call by call: results come with the promise that makes them final; restarts between any two calls."""

from itertools import groupby

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.errors import DataError
from windrow.operators import Matcher, Side
from windrow.operators.kernels.automaton import Pattern, Rules
from windrow.operators.sequences.measured import Measured, Value
from windrow.progress import END, START, Punctuation

SCHEMA = {"@step": pl.Int8, "@k": pl.Int64, "@t": pl.Int64, "x": pl.Int64}
WITHIN = 7
BOTH = Measured({"a": pl.Int64(), "b": pl.Int64()}, [Value("a", 0, "x"), Value("b", 1, "x")])
FIRST = Measured({"a": pl.Int64()}, [Value("a", 0, "x")])
KINDS = ("recent", "chronicle", "no")  # a then b, by matching; a and then no b


def matcher(kind, **options):
    no, recent = kind == "no", kind != "chronicle"
    rules = Rules(
        depth=1 if no else 2,
        recent=recent,
        within=WITHIN,
        past=False,
        outer=False,
        waits=no,
        latest=kind == "recent",
        compares=0,
    )
    pattern = Pattern(rules, np.array([[1, 1 if no else 2], [0, no], [0, 0]]))
    ties = [["x"], ["x"]]
    return Matcher(["@k"], pattern, ties, FIRST if no else BOTH, last=0 if no else 1, **options)


def rows(step, given_rows):
    """Rows of (key, time, number) of a step."""
    return pl.DataFrame([(step, *row) for row in given_rows], schema=SCHEMA, orient="row")


def expected(kind, sides, promised):
    """What is known if all rows below a promise are there."""
    final = sorted((k, t, step, n) for step, side in enumerate(sides) for k, t, n in side if t < promised)
    found = set()
    for _, group in groupby(final, key=lambda row: row[0]):
        found |= of_key(kind, [row[1:] for row in group], promised)
    return found


def of_key(kind, events, promised):
    """Of rows of one key, (time, step, number) in order."""
    waiting: list[tuple[int, int]] = []  # the a that a b can take
    found = set()
    for t, step, n in events:
        if step == 0:
            waiting.append((t, n))
            continue
        near = [a for a in waiting if t - a[0] <= WITHIN]
        if kind == "no":
            waiting = [a for a in waiting if a not in near]
        elif near:
            taken = near[-1 if kind == "recent" else 0]
            found.add((taken[1], n))
            waiting = waiting if kind == "recent" else [a for a in waiting if a != taken]
    return found if kind != "no" else {(n,) for t, n in waiting if promised == END or t + WITHIN < promised}


some_rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 25)), max_size=12)


@settings(deadline=None, max_examples=150)
@given(given_rows=st.tuples(some_rows, some_rows), kind=st.sampled_from(KINDS), data=st.data())
def test_sequences_come_out_when_they_are_final_and_promises_are_true(given_rows, kind, data):
    sides = [[(k, t, n) for n, (k, t) in enumerate(side)] for side in given_rows]
    waiting = [data.draw(st.permutations(side)) for side in sides]
    operator = Restarting(lambda: matcher(kind))
    found: list[tuple[int, ...]] = []
    promised, given_out = [START, START], START
    while open_sides := [side for side in (0, 1) if promised[side] != END]:
        side = data.draw(st.sampled_from(open_sides))
        least = min((t for _, t, _ in waiting[side]), default=END)
        if waiting[side] and (promised[side] == least or data.draw(st.booleans())):
            size = data.draw(st.integers(1, 4))
            assert operator.on_batch(side, rows(side, waiting[side][:size])) == []
            waiting[side] = waiting[side][size:]
        else:
            promised[side] = least
            for item in operator.promise(side, least):
                if isinstance(item, pl.DataFrame):
                    assert all(row[-1] >= given_out for row in item.rows())
                    found += [row[:-1] for row in item.rows()]
                elif isinstance(item, Punctuation):
                    assert item.value > given_out
                    given_out = item.value
        assert len(found) == len(set(found))
        assert set(found) == expected(kind, sides, min(promised))
        if data.draw(st.booleans()):
            operator.restart()
    assert given_out == END
    assert operator.operator.waiting.height == operator.operator.open.height == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_that_is_over_leaves_with_the_next_rows(kind):
    operator = matcher(kind)
    for key, time, held in (1, 10, [1]), (2, 10 + WITHIN - 1, [1, 2]), (3, 10 + WITHIN, [2, 3]):
        operator.on_batch(0, rows(0, [(key, time, 0)]))
        for port in (0, 1):
            operator.on_punctuation(port, Punctuation(time + 1))
        assert sorted(k for run in operator.open.runs.values() for k in run.rows["@k"]) == held


def test_more_keys_than_the_query_accepts_stop_it():
    operator = matcher("recent", most_keys=1)
    operator.on_batch(0, rows(0, [(1, 10, 0), (2, 10, 0)]))
    operator.on_punctuation(0, Punctuation(12))
    with pytest.raises(DataError, match="open rows of 2 keys in one shard, and the query accepts 1"):
        operator.on_punctuation(1, Punctuation(12))


def test_late_rows_follow_the_policy_of_their_step():
    operator = matcher("chronicle", late=["drop", "side"])
    for port in (0, 1):
        operator.on_punctuation(port, Punctuation(10))
        items = operator.on_batch(port, rows(port, [(1, 9, 0)]))
        assert [item.kind for item in items if isinstance(item, Side)] == ["late"]
    assert operator.waiting.height == 0


def test_it_waits_for_the_slowest_stream():
    found = matcher("recent")
    assert found.waits_for() == []
    found.on_batch(0, rows(0, [(1, 10, 0)]))
    found.on_batch(1, rows(1, [(1, 12, 1)]))
    found.on_punctuation(1, Punctuation(30))
    [wait] = found.waits_for()
    assert (wait.port, wait.promise, wait.since, wait.count) == (0, 11, START, 2)
    assert not [i for i in found.on_punctuation(0, Punctuation(10)) if isinstance(i, pl.DataFrame)]
    found.on_punctuation(0, Punctuation(11))  # the first row is final, and open
    assert [(w.port, w.promise, w.count) for w in found.waits_for()] == [(0, 13, 2)]
    assert [i.height for i in found.on_punctuation(0, Punctuation(13)) if isinstance(i, pl.DataFrame)] == [1]
