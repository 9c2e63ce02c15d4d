"""Paned-WID alone: panes merged as windows close. What all sliding aggregates share: test_sliding_aggregates.py."""

import math

import numpy as np
import polars as pl
import pytest
from harness import (
    COUNTS,
    KINDS,
    LONG,
    SCHEMA,
    SPECS,
    WINDOWS,
    Model,
    Run,
    assert_same,
    careless,
    check_replay,
    check_waits,
    truthful,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.operators import Paned, Panes, Windowing
from windrow.operators.windows import pane_merge
from windrow.progress import END, START, Punctuation
from windrow.windows import Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


@settings(CHECK, max_examples=25)
@given(LONG, careless())
def test_chunks_of_several_panes_change_nothing(window, steps):
    check_replay("paned", window, steps)


@settings(CHECK, max_examples=25)
@given(WINDOWS, truthful(), st.sampled_from([1, 3, 10]))
def test_blocks_of_groups_and_ranges_of_windows_change_nothing(window, steps, cells):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pane_merge, "CELLS", cells)
        check_replay("paned", window, steps)


def test_waits_for_does_not_count_panes_whose_windows_are_all_released():
    """One row at 0 in windows of 48 panes, which are kept three to a chunk: at 48 its last window goes out."""
    check_waits("paned", Sliding(48, 1), [([{"@t": 0, "k": "a", "x": 1, "f": None}], False), (48, False)])


@settings(CHECK, max_examples=25)
@given(st.one_of(WINDOWS, LONG), careless())
def test_only_chunks_with_panes_of_open_windows_are_held(window, steps):
    run = Run("paned", window, specs=COUNTS)
    promised = START
    for step, _ in steps:
        if isinstance(step, list):
            run.take(step)
        else:
            run.promise(step)
            promised = max(promised, step)
        width = run.operator.width
        for name in set(run.operator.snapshot()) - {"closed"}:
            chunk = int(name.split(".")[0])
            last = window.origin + (chunk + 1) * width * window.pane - 1  # the last value of the chunk's last pane
            assert any(window.end(w) > promised for w in window.wids(Tuple(last))) or last >= promised


def test_a_row_is_kept_once_however_many_windows_it_is_in():
    run = Run("paned", Sliding(1000, 1), specs=COUNTS)
    run.take([{"@t": 0, "k": "a", "x": 1, "f": None}])
    assert sum(f.height for name, f in run.operator.snapshot().items() if name != "closed") == 1


def test_a_hundred_thousand_windows_per_row():
    run = Run("paned", Sliding(100_000, 1), specs=COUNTS)
    run.take([{"@t": t, "k": k, "x": x, "f": None} for t, k, x in ((0, "a", 1), (50_000, "b", 2), (150_000, "a", 4))])
    assert run.operator.state_bytes() < 1000
    frame, _ = run.promise(END)
    assert frame.height == 300_000  # every row alone in its group's windows: the two of "a" are too far apart to meet
    ends = frame.group_by("k", "s").agg(pl.col("window_end").min().alias("first"), pl.col("window_end").max(), pl.len())
    assert sorted(ends.rows()) == [
        ("a", 1, 1, 100_000, 100_000),
        ("a", 4, 150_001, 250_000, 100_000),
        ("b", 2, 50_001, 150_000, 100_000),
    ]


def test_long_gaps_between_rows_cost_nothing(monkeypatch):
    slid, counts = pane_merge.PaneMerge._slide, []

    def counted(self, *args):
        counts.append(args[4])
        assert len(counts) < 9, "the gap is being computed"
        return slid(self, *args)

    monkeypatch.setattr(pane_merge.PaneMerge, "_slide", counted)
    run = Run("paned", Sliding(100_000, 1000), specs=COUNTS)
    run.take([{"@t": t, "k": "a", "x": 1, "f": None} for t in (0, 10**15)])
    assert len(run.results(END)) == 200
    assert counts == [199, 199]  # panes: those of the hundred windows on either side


@pytest.mark.parametrize("cells", [1, 50, 300])
def test_many_groups_are_slid_over_in_blocks(cells, monkeypatch):
    rng = np.random.default_rng(7)
    window, size = Sliding(12, 4), 200
    rows = pl.DataFrame(
        {
            "@t": rng.integers(0, 60, size),
            "k": [f"group {g}" for g in rng.integers(0, 40, size)],
            "x": rng.integers(-5, 5, size),
            "f": rng.random(size),
        },
        schema=SCHEMA,
    )
    model = Model(window)
    model.take(rows.rows(named=True))
    blocks = []
    slid = pane_merge.PaneMerge._slide
    monkeypatch.setattr(pane_merge, "CELLS", cells)
    monkeypatch.setattr(pane_merge.PaneMerge, "_slide", lambda self, *a: blocks.append(a[1].height) or slid(self, *a))
    run = Run("paned", window)
    run.take(rows)
    assert_same(run.results(END), model.promise(END))
    groups = rows["k"].n_unique()
    assert max(blocks) < groups
    assert sum(blocks) % groups == 0


def test_no_block_is_larger_than_allowed_unless_a_single_window_is(monkeypatch):
    monkeypatch.setattr(pane_merge, "CELLS", 64)
    shapes = []
    slid = pane_merge.PaneMerge._slide
    monkeypatch.setattr(
        pane_merge.PaneMerge, "_slide", lambda self, *a: shapes.append((a[1].height, a[4])) or slid(self, *a)
    )
    run = Run("paned", Sliding(8, 4), specs=COUNTS)
    run.take([{"@t": t, "k": f"{g}", "x": 1, "f": None} for t in range(0, 300, 3) for g in range(5)])
    assert len(run.results(END)) == 5 * 76
    assert all(groups * panes <= 64 + run.operator.grid.length for groups, panes in shapes)


@pytest.mark.parametrize("value", [1e200, float("inf")])
def test_the_variance_of_one_value_does_not_depend_on_the_panes_beside_it(value):
    window = Sliding(4, 1)
    rows = [{"@t": 1, "k": "a", "x": 1, "f": value}]
    results = []
    for kind in ("wid", "paned"):
        run = Run(kind, window, specs=[("v", "var_pop", "f")])
        run.take(rows)
        frame, _ = run.promise(END)
        results.append(frame["v"].to_list())
    assert repr(results[0]) == repr(results[1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_that_is_nan_is_a_group_when_there_is_no_other(kind):
    run = Run(kind, Sliding(4, 2), specs=COUNTS, schema={**SCHEMA, "k": pl.Float64()})
    run.take([{"@t": 0, "k": math.nan, "x": 1, "f": None}])
    run.take([{"@t": 1, "k": math.nan, "x": 1, "f": None}])
    frame, _ = run.promise(END)
    assert sorted(frame.select("window_end", "n").rows()) == [(2, 2), (4, 2)]


def test_all_aggregates_are_checked():
    """The harness must not lose a part: sums, extremes and moments are merged in different ways."""
    run = Run("paned", Sliding(5, 5), specs=SPECS)
    assert {type(p).__name__ for p in run.aggregates.parts} == {"Fold", "Moments"}
    assert {getattr(p, "how", "moments") for p in run.aggregates.parts} == {"sum", "min", "max", "moments"}


def test_a_single_row_of_the_group_nan_is_a_group():
    rows = pl.DataFrame({"@t": [1], "k": [float("nan")], "x": [5]})
    window, aggregates = Sliding(4, 2), Partials([make("max", "n", "x", pl.Int64())])
    operator = Paned(Windowing(window, ["k"], aggregates, pl.Int64()))
    operator.on_batch(0, Panes(window, ["k"], aggregates).on_batch(0, rows)[0])
    results, _promise = operator.on_punctuation(0, Punctuation(END))
    assert results.select("window_end", "n").sort("window_end").rows() == [(2, 5), (4, 5)]
