"""Probing a sorted run: for each row of a batch, the rows of the run with the same hash and a time between two bounds.

Run and batch are sorted by hash and time, so the place of one row is where the search for the next begins: a batch of
m rows costs O(m log(n/m)) in a run of n, whether it is much smaller than the run or as large. No window is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.operators.kernels.compiled import compiled_when_called
from windrow.windows.tuples import Ints

Hashes = NDArray[np.uint32]
Places = NDArray[np.uint32]
BITS = 32  # of a hash
MOST = 1 << 22  # pairs that are looked at together, unless one row alone has more


def sorted_by(hashes: Hashes, times: Ints, merging: bool = False) -> NDArray[np.int64]:
    """The order of rows by hash and time. ``merging``: the rows are a few sorted runs one after another.

    >>> sorted_by(np.array([7, 3, 7], np.uint32), np.array([5, 9, 4])).tolist()
    [1, 2, 0]
    """
    if not len(times):
        return np.empty(0, np.int64)
    least = int(times.min())
    if int(times.max()) - least >= 1 << BITS:
        return np.lexsort((times, hashes))
    both = (hashes.astype(np.uint64) << np.uint64(BITS)) | (times - least).astype(np.uint64)
    return np.argsort(both, kind="stable" if merging else None)  # a stable sort of sorted runs is a merge


def probed(
    run_hashes: Hashes, run_times: Ints, hashes: Hashes, least: Ints, greatest: Ints
) -> Iterator[tuple[Places, Places]]:
    """All pairs of a row of the batch and a row of the run, as their places; many pairs come in several pieces.

    The batch has ``hashes``, and wants times from ``least``, which grows where the hash is the same, to ``greatest``.

    >>> run, hashes = (np.array([1, 1, 2], np.uint32), np.array([10, 20, 15])), np.array([1, 2], np.uint32)
    >>> [[p.tolist() for p in both] for both in probed(*run, hashes, np.array([5, 16]), np.array([20, 90]))]
    [[[0, 0], [0, 1]]]
    """
    start, count = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    total = _ranges(run_hashes, run_times, hashes, least, greatest, start, count)
    first = 0
    while total:
        piece = int(np.searchsorted(np.cumsum(count[first:]), MOST, "right")) if total > MOST else len(count)
        last = first + max(piece, 1)
        size = int(count[first:last].sum())
        rows, places = np.empty(size, np.uint32), np.empty(size, np.uint32)
        _filled(start[first:last], count[first:last], rows, places, first)
        if size:
            yield rows, places
        total, first = total - size, last


@compiled_when_called
def _ranges(
    run_hashes: Hashes, run_times: Ints, hashes: Hashes, least: Ints, greatest: Ints, start: Ints, count: Ints
) -> Any:
    """The first place and the number of places for each row of the batch; the sum of the numbers."""
    size, place, total = len(run_hashes), 0, 0
    for row in range(len(hashes)):
        wanted, low, high = hashes[row], least[row], greatest[row]
        after, step = place, 1  # gallop, then halve
        while after < size and (run_hashes[after] < wanted or (run_hashes[after] == wanted and run_times[after] < low)):
            place = after + 1
            after += step
            step *= 2
        after = min(after, size)
        while place < after:
            middle = (place + after) >> 1
            if run_hashes[middle] < wanted or (run_hashes[middle] == wanted and run_times[middle] < low):
                place = middle + 1
            else:
                after = middle
        end = place
        while end < size and run_hashes[end] == wanted and run_times[end] <= high:
            end += 1
        start[row] = place
        count[row] = end - place
        total += end - place
    return total


@compiled_when_called
def _filled(start: Ints, count: Ints, rows: Places, places: Places, first: int) -> None:
    at = 0
    for row in range(len(start)):
        for place in range(start[row], start[row] + count[row]):
            rows[at] = first + row
            places[at] = place
            at += 1
