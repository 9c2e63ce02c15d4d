"""Segmented scans: running merges of neighbouring states that begin anew with every segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.aggregates import Failed
from windrow.aggregates.objects import ObjectPart, objects
from windrow.aggregates.parts import Array, Fold, NumberPart
from windrow.windows.tuples import Ints

LONG = 16  # entries in a segment, on average, from which on a call for each segment is faster than doubling
Scanned = NumberPart | ObjectPart  # the other parts hold lists: a running merge would hold them n times over


def scan(part: Scanned, state: Sequence[Array], segment: Ints) -> list[Array]:
    """The merge of every state with those before it in its segment. Equal ``segment`` numbers are neighbours.

    >>> from windrow.aggregates.parts import rows
    >>> scan(rows(), [np.array([1, 2, 3, 4])], np.array([0, 0, 1, 1]))[0].tolist()
    [1, 3, 3, 7]
    """
    if not len(segment):
        return list(state)
    if isinstance(part, ObjectPart):
        return [_objects(part, state[0], segment)]
    if isinstance(part, Fold):
        return [_fold(part, state[0], segment)]
    return _doubling(part, state, segment)


def scan_back(part: Scanned, state: Sequence[Array], segment: Ints) -> list[Array]:
    """The merge of every state with those after it in its segment."""
    try:
        return [s[::-1] for s in scan(part, [s[::-1] for s in state], segment[::-1])]
    except Failed as failure:
        failure.at = {"@row": len(segment) - 1 - failure.at["@row"]}
        raise


def picked(part: Scanned, state: Sequence[Array], at: Ints) -> list[Array]:
    """The states at some places; the state of nothing where the place is negative."""
    found = []
    for values, empty in zip(state, part.identity if isinstance(part, NumberPart) else (None,), strict=True):
        if not len(values):
            found.append(np.full(len(at), empty, values.dtype))
            continue
        chosen = values[np.maximum(at, 0)]
        chosen[at < 0] = empty
        found.append(chosen)
    return found


def pairs(part: Scanned, a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
    """Element by element, the state of two states."""
    if isinstance(part, NumberPart):
        return part.merge(a, b)
    found: list[Any] = []
    try:
        for left, right in zip(a[0], b[0], strict=True):
            found.append(part.merge(left, right))
    except Failed as failure:
        failure.at = {"@row": len(found)}
        raise
    return [objects(found)]


def segments(*columns: Ints) -> Ints:
    """A number for each run of rows that are equal in all columns."""
    found = np.zeros(len(columns[0]), np.int64)
    if len(found):
        changes = np.zeros(len(found) - 1, bool)
        for column in columns:
            changes |= column[1:] != column[:-1]
        found[1:] = np.cumsum(changes)
    return found


def lasts(segment: Ints) -> Ints:
    """Where each segment ends: the place of its last row."""
    return np.flatnonzero(np.append(segment[1:] != segment[:-1], True)) if len(segment) else segment


def _fold(part: Fold, values: Array, segment: Ints) -> Array:
    if segment[0] == segment[-1]:
        return np.asarray(part.ufunc.accumulate(values))
    if part.how == "sum" and values.dtype.kind in "iu":
        # Whole numbers wrap around, so a difference of sums is exact. One of doubles is not: it would keep the
        # rounding, the infinities and the NaN of segments before.
        running = np.add.accumulate(values)
        begins = np.concatenate([[0], lasts(segment)[:-1] + 1])
        before = np.concatenate([[0], running[begins[1:] - 1]])
        counts = np.diff(np.append(begins, len(values)))
        return np.asarray(running - np.repeat(before, counts))
    ends = (lasts(segment) + 1).tolist()
    if len(ends) * LONG > len(values):
        return _doubling(part, [values], segment)[0]
    found = np.empty_like(values)
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        part.ufunc.accumulate(values[begin:end], out=found[begin:end])
    return found


def _doubling(part: NumberPart, state: Sequence[Array], segment: Ints) -> list[Array]:
    """All merges of a distance at once, then of twice the distance, as long as a segment reaches so far."""
    found = [s.copy() for s in state]
    begins = np.append(0, lasts(segment)[:-1] + 1)
    place = np.arange(len(segment)) - np.repeat(begins, np.diff(np.append(begins, len(segment))))
    step, some = 1, np.flatnonzero(place >= 1)
    while len(some):
        values = part.merge([f[some - step] for f in found], [f[some] for f in found])
        for column, value in zip(found, values, strict=True):
            column[some] = value
        step *= 2
        some = some[place[some] >= step]
    return found


def _objects(part: ObjectPart, values: Array, segment: Ints) -> Array:
    found: list[Any] = []
    running, current = None, None
    try:
        for value, number in zip(values, segment.tolist(), strict=True):
            running = value if number != current else part.merge(running, value)
            current = number
            found.append(running)
    except Failed as failure:
        failure.at = {"@row": len(found)}
        raise
    return objects(found)
