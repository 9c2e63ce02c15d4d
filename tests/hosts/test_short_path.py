"""Rows that come one at a time take a short path, and give what they give on the plain one (decision 33)."""

import math
from contextlib import contextmanager

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import windrow as wr
from windrow.operators import PanedRows
from windrow.planner import graphs
from windrow.planner.plan import Step
from windrow.sources.fitting import Fitting

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "v": pl.Float64()}
# Whole numbers: their sums do not depend on the order. A progress value that is NULL or text makes a bad row.
VALUES = st.sampled_from([None, math.nan, -0.0, math.inf, 1.0, 2.0, 3.0])
TIMES = st.integers(0, 40)
ROW = st.fixed_dictionaries(
    {"t": st.none() | st.just("soon") | TIMES, "k": st.none() | st.integers(0, 2), "v": VALUES},
)
ROWS = st.lists(ROW, max_size=12)
# Some rows of one source, and what is promised about both sources after them.
MOVES = st.lists(st.tuples(st.sampled_from("ab"), ROWS, TIMES), max_size=8)
SQUARES = wr.aggregate("squares", lambda x: x * x, lambda a, b: a + b, lambda s: s, state="DOUBLE", result="DOUBLE")
WANTED = {"n": wr.count(), "top": wr.max("v"), "mean": wr.avg("v")}


def grouped(windowed):
    return windowed.group_by("k").agg(**WANTED)


# Queries whose results depend on promises only. Rows wait for these of them:
WAITING = {
    "numbers": lambda s: grouped(s.window(10, 5)),
    "no key": lambda s: s.window(10, 3).agg(n=wr.count("v"), low=wr.min("v")),
    "generous": lambda s: grouped(s.window(10, 5).late("drop", generous=True)),
    "to the side": lambda s: grouped(s.window(10, 5).late("side")),
    "without partial": lambda s: grouped(s.window(10, 5).without_partial()),
    "twice": lambda s: grouped(s.window(10, 5)).where("n > 1").window(20).agg(n=wr.sum("n")),
}
NOT_WAITING = {
    "gaps": lambda s: grouped(s.window(5, 10)),
    "empty": lambda s: grouped(s.window(10, 5).with_empty()),
    "lists": lambda s: s.window(10, 5).group_by("k").agg(n=wr.count_distinct("v"), last=wr.last("t")),
    "user": lambda s: s.window(10, 5).group_by("k").agg(n=SQUARES("v")),
}
# These have results whenever rows come, too.
BETWEEN = {
    "revised": lambda s: grouped(s.window(10, 5).late("revise", keep=10)),
    "early": lambda s: grouped(s.window(10, 5).emit_early(5)),
}
QUERIES = {**WAITING, **NOT_WAITING, **BETWEEN}


def asked(name, slack=None):
    empty = pl.DataFrame(schema=SCHEMA)
    first, second = (wr.stream(empty, "t", slack=slack, name=s).where("k IS NULL OR k < 2") for s in "ab")
    return QUERIES[name](first.union(second))


def seen(run):
    """All that can be seen of a run, in an order of its own."""
    results, late = run.results(), run.late_rows()
    return [*(f.sort(f.columns) for f in (results, late.select(sorted(late.columns))))], run.counts, run.promised


def check(one, other):
    for mine, others in zip(one[0], other[0], strict=True):
        assert_frame_equal(mine, others)
    assert one[1:] == other[1:]


def cut(rows, size):
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def fed(run, moves, size, stop=None):
    """Rows in batches of a size; after ``stop`` moves it goes on from a snapshot."""
    for number, (source, rows, promised) in enumerate(moves):
        for batch in cut(rows, size):
            run.push(source, batch)
        if number == stop:
            run.restore(run.snapshot())
        run.promise("a", promised).promise("b", promised)
    return run


@contextmanager
def plain():
    """Without the short path: every operator by itself, partials at once, and values looked at one by one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Step, "whole", lambda step: step)
        patched.setattr(graphs, "Stateless", type("Nobody", (), {}))
        patched.setattr(Fitting, "_as_declared", lambda *_: None)
        yield


@pytest.mark.parametrize("name", [*WAITING, *NOT_WAITING])
@given(moves=MOVES, stop=st.integers(0, 8))
@CHECK
def test_the_size_of_batches_changes_nothing(name, moves, stop):
    whole = seen(fed(asked(name).run(), moves, 12).end())
    for size in (1, 3):
        check(seen(fed(asked(name).run(), moves, size, stop).end()), whole)


@pytest.mark.parametrize("name", QUERIES)
@given(rows=st.lists(st.tuples(st.sampled_from("ab"), ROW), max_size=40), slack=st.integers(0, 5))
@CHECK
def test_the_short_path_gives_what_the_plain_one_gives_row_by_row(name, rows, slack):
    with plain():
        slow = asked(name, slack).run()
    fast = asked(name, slack).run()
    for source, row in rows:
        with plain():
            slow.push(source, [row])
        check(seen(fast.push(source, [row])), seen(slow))
    check(seen(fast.end()), seen(slow.end()))
    assert_frame_equal(fast.bad_rows(), slow.bad_rows())


@pytest.mark.parametrize("name", QUERIES)
def test_rows_wait_only_where_nothing_needs_their_partials(name):
    kinds = {type(node.operator) for node in asked(name).run().graph.nodes}
    assert (PanedRows in kinds) == (name in WAITING)


@given(MOVES)
@CHECK
def test_what_waits_is_in_every_snapshot_and_in_no_form_of_its_own(moves):
    fast = fed(asked("numbers").run(), moves, 1)
    with plain():
        slow = fed(asked("numbers").run(), moves, 1)
    fast, slow = fast.snapshot(), slow.snapshot()
    assert fast.keys() - _partials(fast) == slow.keys() - _partials(slow)
    _equal_partials(fast, slow)


def _partials(state):
    return {name for name in state if "-paned/" in name and name[-1].isdigit()}


def _equal_partials(*states):
    """Partials are merged in pairs as they come, so that equal states can be in different frames."""
    whole = [asked("numbers").run().restore(state).end().results() for state in states]
    assert_frame_equal(*(frame.sort(frame.columns) for frame in whole))


def test_a_late_row_is_an_error_at_once():
    run = grouped(wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name="s").window(5).late("error")).run()
    run.push("s", [{"t": 1, "k": 1, "v": 1.0}]).push("s", [{"t": 7, "k": 1, "v": 1.0}])
    with pytest.raises(wr.LateError):
        run.push("s", [{"t": 2, "k": 1, "v": 1.0}])


# -- values that are as declared -------------------------------------------------------------------------------------
ANY = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=3)
DECLARED = {"t": pl.Int64(), "f": pl.Float64(), "s": pl.String(), "b": pl.Boolean()}
EXACT = st.fixed_dictionaries(
    {"t": st.integers(-(2**63), 2**63 - 1), "f": st.floats(), "s": st.text(max_size=3), "b": st.booleans()}
)


@given(st.lists(EXACT | st.fixed_dictionaries({"t": ANY, "f": ANY}, optional={"s": ANY, "b": ANY}), max_size=3))
@example([{"t": 2**63, "f": 1.0, "s": "", "b": True}])
@example([{"t": True, "f": 1.0, "s": "", "b": True}])
@example([{"t": 1, "f": 1, "s": "", "b": True}])
@example([{"b": True, "s": "x", "f": math.nan, "t": 1}])
@CHECK
def test_a_few_dicts_become_the_same_frame_on_both_paths(rows):
    def fitted():
        try:
            return [repr((frame.schema, frame.rows())) for frame in Fitting("s", DECLARED, "t").fit(rows)]
        except wr.DataError as error:
            return str(error)

    short = fitted()
    with plain():
        assert short == fitted()
