"""Buffering alone: windows from their rows. What all sliding aggregates share: test_sliding_aggregates.py."""

import numpy as np
import polars as pl
import pytest
from harness import (
    COUNTS,
    LONG,
    WINDOWS,
    Run,
    careless,
    check_replay,
    check_waits,
    truthful,
)
from hypothesis import given, settings

import windrow as wr
from windrow.operators.state import rowbuffer
from windrow.planner import ALGORITHMS
from windrow.progress import END, START
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


@CHECK
@given(WINDOWS, truthful())
def test_windows_are_computed_in_blocks(window, steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowbuffer, "BLOCK", 5)
        check_replay("buffering", window, steps)


@CHECK
@given(LONG, truthful())
def test_waits_for_with_slices_of_several_panes(window, steps):
    check_waits("buffering", window, steps)


def test_a_slice_that_holds_nothing_of_an_open_window_is_freed_when_it_is_past():
    check_waits("buffering", Sliding(48, 1), [([{"@t": 0, "k": "a", "x": 1, "f": None}], False), (48, False)])


@settings(CHECK, max_examples=25)
@given(WINDOWS, careless())
def test_only_rows_of_open_windows_are_held_but_for_a_slice(window, steps):
    run = Run("buffering", window, specs=COUNTS)
    promised = START
    for step, _ in steps:
        if isinstance(step, list):
            run.take(step)
        else:
            run.promise(step)
            promised = max(promised, step)
        rows = run.operator.rows.rows()
        if rows is not None and promised > START:
            first = window.start(window.closed_below(promised))
            assert rows["@t"].min() > first - max(1, window.range // 16)


def test_rows_are_kept_once_and_without_what_follows_from_them():
    run = Run("buffering", Sliding(100, 1), specs=COUNTS)
    run.take([{"@t": t, "k": "a", "x": 1, "f": None} for t in range(50)])
    rows = run.operator.rows.rows()
    assert rows.columns == ["@t", "k", "x", "f"]
    assert rows.height == 50


def test_no_more_rows_times_windows_than_a_block_are_looked_at_at_once(monkeypatch):
    sizes = []
    honest = rowbuffer._copies
    monkeypatch.setattr(rowbuffer, "BLOCK", 1000)
    monkeypatch.setattr(rowbuffer, "_copies", lambda *a: sizes.append((f := honest(*a)).height) or f)
    run = Run("buffering", Sliding(100, 1), specs=COUNTS)
    run.take([{"@t": t, "k": "a", "x": 1, "f": None} for t in range(500)])
    found = run.results(END)
    assert sum(sizes) == 500 * 100
    assert max(sizes) <= 1000
    assert {r["n"] for (wid, _), r in found.items() if 99 <= wid < 500} == {100}


@pytest.mark.parametrize(
    "refused", [lambda w: w.emit_early(3), lambda w: w.late("revise", keep=9), lambda w: w.with_empty()]
)
@pytest.mark.parametrize("using", ALGORITHMS[1:])
def test_what_needs_panes_is_refused_when_the_query_is_planned(using, refused):
    s = wr.stream(pl.DataFrame({"t": np.arange(3)}), progress="t")
    with pytest.raises(wr.PlanError, match=f"'{using}' cannot run this query"):
        refused(s.window(10, using=using)).agg(n=wr.count()).explain()
