"""Which rows a join has to forget so that both of its windows together hold no more than a limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.operators.kernels.compiled import compiled_when_called
from windrow.windows.tuples import Ints

Floats = NDArray[np.float64]


@compiled_when_called
def newest(
    left: Ints,
    right: Ints,
    moments: Ints,
    first: Ints,
    shares: Floats,
    limit: int,
    gone: Ints,
    oldest: Ints,
    held: Ints,
) -> None:
    """At each moment, the least time of each side that is still held when its rows come, and how many rows that is.

    ``left``, ``right``: the sorted times of all rows. ``moments``: sorted, all times at which rows come. ``first``: for
    each moment and side the least time that its window reaches back to. ``shares``: of each moment, how the sides share
    the limit if there are too many then; what one cannot use the other has. The newest rows stay, and those with equal
    times leave together. ``gone``: below it rows of each side have left, before and after. ``oldest`` and ``held`` are
    filled in.
    """
    low, high, most = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    for at in range(len(moments)):
        for side in range(2):
            times = left if side == 0 else right
            while high[side] < len(times) and times[high[side]] < moments[at]:
                high[side] += 1
            while low[side] < high[side] and times[low[side]] < max(first[at, side], gone[side]):
                low[side] += 1
            oldest[at, side], held[at, side] = gone[side], high[side] - low[side]
            while high[side] < len(times) and times[high[side]] == moments[at]:
                high[side] += 1
        have = high - low
        if have[0] + have[1] <= limit:
            continue
        whole = shares[at, 0] + shares[at, 1]
        own = min(limit * (shares[at, 0] / whole if whole > 0 else 0.5), have[0])
        most[1] = int(min(limit - own, have[1]))
        most[0] = min(limit - most[1], have[0])
        for side in range(2):
            if have[side] > most[side]:
                times = left if side == 0 else right
                gone[side] = times[high[side] - most[side] - 1] + 1


def kept(
    times: tuple[Ints, Ints], moments: Ints, first: Ints, shares: Floats, limit: int, since: tuple[int, int]
) -> tuple[Ints, Ints, tuple[int, int]]:
    """``oldest`` and ``held`` of ``newest``, and below which times rows have left in the end.

    >>> lefts, rights, at = np.array([1, 2, 2, 3]), np.array([3]), np.array([1, 2, 3])
    >>> shares, first = np.ones((3, 2)), np.full((3, 2), -9)
    >>> oldest, held, gone = kept((lefts, rights), at, first, shares, 2, (0, 0))
    >>> oldest.tolist(), held.tolist(), gone
    ([[0, 0], [0, 0], [2, 0]], [[0, 0], [1, 0], [2, 0]], (3, 0))
    """
    oldest, held = np.empty((len(moments), 2), np.int64), np.empty((len(moments), 2), np.int64)
    gone = np.array(since, np.int64)
    newest(*times, moments, first, shares, limit, gone, oldest, held)
    return oldest, held, (int(gone[0]), int(gone[1]))
