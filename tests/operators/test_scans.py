"""Segmented scans against a loop that merges one state after the other."""

import functools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.objects import Edge, Pick, objects
from windrow.aggregates.parts import Fold, Moments
from windrow.operators.kernels.segments import (
    lasts,
    pairs,
    picked,
    scan,
    scan_back,
    segments,
)

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
FLOAT = pl.Float64()
NUMBERS = {
    "whole sum": (Fold("c", pl.col("x"), "sum"), st.integers(-(2**62), 2**62), np.int64),
    "sum": (Fold("c", pl.col("x"), "sum", 0.0, FLOAT), st.sampled_from([0.1, 1e300, -1e16, 3.0, math.inf]), float),
    "min": (Fold("c", pl.col("x"), "min", math.inf, FLOAT), st.floats(allow_nan=False), float),
    "max": (Fold("c", pl.col("x"), "max", -128, pl.Int8()), st.integers(-128, 127), np.int8),
}
SEGMENTS = st.lists(st.integers(1, 9), max_size=6)


def numbered(lengths):
    return np.repeat(np.arange(len(lengths)) * 7, lengths)


def slow(part, state, segment, places):
    """Each state merged with those before it (in the order of ``places``) of its segment, one at a time."""
    found = {}
    for n, i in enumerate(places):
        value = [s[i : i + 1] for s in state]
        if n and segment[places[n - 1]] == segment[i]:
            value = pairs(part, found[places[n - 1]], value)
        found[i] = value
    return [np.concatenate([found[i][c] for i in range(len(segment))]) for c in range(len(state))]


def check(part, state, segment, same=np.array_equal):
    if not len(segment):
        assert all(len(s) == 0 for s in scan(part, state, segment))
        return
    places = list(range(len(segment)))
    for got, order in ((scan(part, state, segment), places), (scan_back(part, state, segment), places[::-1])):
        want = slow(part, state, segment, order)
        assert all(same(g, w) for g, w in zip(got, want, strict=True)), (got, want)


@pytest.mark.parametrize("name", NUMBERS)
@CHECK
@given(SEGMENTS, st.data())
def test_folds(name, lengths, data):
    part, values, dtype = NUMBERS[name]
    segment = numbered(lengths)
    state = [np.array(data.draw(st.lists(values, min_size=len(segment), max_size=len(segment))), dtype)]
    with np.errstate(over="ignore"):
        check(part, state, segment, functools.partial(np.allclose, rtol=1e-12) if dtype is float else np.array_equal)


def test_a_sum_is_not_a_difference_of_sums():
    part, _, _ = NUMBERS["sum"]
    state, segment = [np.array([1e300, math.inf, 0.1, 0.2])], np.array([0, 0, 1, 1])
    assert scan(part, state, segment)[0].tolist() == [1e300, math.inf, 0.1, 0.1 + 0.2]


@CHECK
@given(SEGMENTS, st.data())
def test_moments_by_doubling(lengths, data):
    segment = numbered(lengths)
    xs = data.draw(st.lists(st.sampled_from([None, 0.5, 1e8, -3.0]), min_size=len(segment), max_size=len(segment)))
    state = [
        np.array([float(x is not None) for x in xs]),
        np.array([x or 0.0 for x in xs]),
        np.zeros(len(xs)),
    ]
    check(Moments("x"), state, segment, np.allclose)


@CHECK
@given(SEGMENTS, st.data())
def test_objects_where_none_is_nothing(lengths, data):
    segment = numbered(lengths)
    values = st.lists(st.sampled_from([None, "a", "bb", "c"]), min_size=len(segment), max_size=len(segment))
    texts = data.draw(values)
    check(Pick("x", "max", pl.String()), [objects(texts)], segment)
    edges = objects([None if text is None else (i % 3, text) for i, text in enumerate(texts)])
    check(Edge("x", "last", pl.String()), [edges], segment)


def test_what_is_picked_at_a_negative_place_is_nothing():
    part, _, _ = NUMBERS["max"]
    assert picked(part, [np.array([5, 6], np.int8)], np.array([1, -1]))[0].tolist() == [6, -128]
    assert picked(part, [np.array([], np.int8)], np.array([-1]))[0].tolist() == [-128]
    assert picked(Pick("x", "max", pl.String()), [objects(["a"])], np.array([-1, 0]))[0].tolist() == [None, "a"]


def test_segments_are_runs_of_equal_rows():
    found = segments(np.array([0, 0, 1, 1, 1]), np.array([3, 4, 4, 4, 3]))
    assert found.tolist() == [0, 1, 2, 2, 3]
    assert lasts(found).tolist() == [0, 1, 3, 4]
    assert lasts(segments(np.array([], np.int64))).tolist() == []
