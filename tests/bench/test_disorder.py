"""The parts of band-disorder and block-disorder: which row releases a window, true markers, errors, claims."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.api.functions import count
from windrow.api.sources import stream
from windrow.bench import band_disorder, block_disorder
from windrow.bench.disorder import MARKER, SECOND, Windows, arrivals, by_punctuation, by_slack, marked, named
from windrow.sources.links import Link

CHECK = settings(deadline=None, derandomize=True, max_examples=25)
SMALL = Windows(8, 4, count())
ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), min_size=1, max_size=15)


def frame(rows):
    found = pl.DataFrame({"t": [t for t, _ in rows], "arrival": [t + d for t, d in rows]}, schema_overrides={"t": int})
    return found.with_columns(pl.lit(1).alias("len")).sort("arrival", maintain_order=True)


@CHECK
@given(rows=ROWS, slack=st.integers(0, 9), policy=st.sampled_from(["consistent", "generous"]))
def test_cuts_give_the_same_as_row_by_row(rows, slack, policy):
    data = frame(rows)
    run = SMALL.query(stream(data.clear().drop("arrival"), progress="t", slack=slack, name="s"), policy).run()
    expected = []
    for row in data.iter_slices(1):
        out = run.push("s", row.drop("arrival")).results()
        expected += [(end, r, row["arrival"][0]) for end, r in out.select("window_end", "r").rows()]
    assert sorted(by_slack(data, SMALL, slack, policy).rows()) == sorted(expected)


@CHECK
@given(rows=ROWS)
def test_markers_are_true_and_results_of_punctuation_are_right(rows):
    data = frame(rows)
    with_markers = marked(data, SMALL.slide)
    for i, marker in enumerate(with_markers[MARKER].to_list()):
        if marker is not None:
            assert all(t is None or t >= marker for t in with_markers["t"][i:])
            assert with_markers["arrival"][i] >= marker
    for end, r, released in by_punctuation(data, SMALL).rows():
        assert r == sum(end - SMALL.range <= t < end for t, _ in rows)
        assert released >= end


def test_errors_are_those_of_the_thesis():
    rows = pl.DataFrame({"t": [0, 1, 2], "len": [10, 20, 30]}).with_columns(pl.col("t") * SECOND)
    found = pl.DataFrame({"window_end": [64 * SECOND, 65 * SECOND], "r": [20.0, 28.0]})  # the second is of 20 and 30
    assert band_disorder.mean_error(rows, found.head(1)) == 0
    assert band_disorder.mean_error(rows, found.tail(1)) == pytest.approx(12.0)
    counts = pl.DataFrame({"window_end": [60 * SECOND, 601 * SECOND], "r": [3, 3]})
    assert block_disorder.wrong_answers(rows, counts) == 50


def test_arrivals_are_in_order_and_no_later_than_the_band():
    rows = arrivals(Link("x", 50, band=3.2), 20)
    late = (rows["arrival"] - rows["t"]).to_numpy()
    assert np.all(np.diff(rows["arrival"].to_numpy()) >= 0)
    assert 0 <= late.min() <= late.max() <= 3.2 * SECOND


def figures(slacks, error, latency, punctuation):
    found = {"error_punctuation": punctuation[0], "latency_s_punctuation": punctuation[1]}
    for policy, share in (("consistent", 1.0), ("generous", 0.5)):
        for i, slack in enumerate(slacks):
            found[f"error_{named(policy, slack)}"] = error[i] * share
            found[f"latency_s_{named(policy, slack)}"] = latency[i]
    return found


def test_claims_of_the_band_follow_from_the_figures():
    slacks = band_disorder.SLACKS
    error, latency = [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]
    assert list(band_disorder.claims(figures(slacks, error, latency, (0, 4.5))).values()) == [True] * 3
    assert list(band_disorder.claims(figures(slacks, error, latency, (0, 5))).values()) == [False, True, True]
    assert list(band_disorder.claims(figures(slacks, error[::-1], latency, (0, -1))).values()) == [True, True, False]


def test_claims_of_the_blocks_follow_from_the_figures():
    slacks = block_disorder.SLACKS
    error, latency = [9, 9, 8, 7, 6, 5, 0, 0], [3, 4, 5, 6, 7, 8, 9, 10]
    assert all(block_disorder.claims(figures(slacks, error, latency, (0, 3))).values())
    late = block_disorder.claims(figures(slacks, error, latency, (0, 3.5)))
    assert [holds for claim, holds in late.items() if "punctuation" in claim] == [False, False]
    falling = block_disorder.claims(figures(slacks, error, [*latency[:-1], 8], (0, 3)))
    assert [holds for claim, holds in falling.items() if "optimal" in claim] == [False, False]
