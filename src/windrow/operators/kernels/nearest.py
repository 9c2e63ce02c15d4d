"""The nearest row of a sorted run: for each row of a batch, the last one up to a time, or the first one from it on.

A run is sorted by hash and time. Its hashes are spread evenly, so a table of where each range of them begins leaves a
short search for each row, and the batch need not be sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.operators.kernels.probe import BITS, Hashes
from windrow.windows.tuples import Ints

Spots = NDArray[np.int64]  # places in a run; -1 for none
OTHER = -2  # instead of a place: its row has the hash that is wanted, and another key


class Index(NamedTuple):
    """Where in a run the hashes of each range begin; ranges have 2 ** ``shift`` hashes."""

    starts: Spots
    shift: int


def indexed(hashes: Hashes) -> Index:
    """The index of a run.

    >>> indexed(np.array([1, 5], np.uint32)).starts.tolist()
    [0, 2, 2]
    """
    bits = max(1, len(hashes).bit_length() - 1)
    shift = BITS - bits
    firsts = (np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)).astype(np.uint32)
    starts = np.searchsorted(hashes, firsts, side="left")
    return Index(np.append(starts, len(hashes)).astype(np.int64), shift)


def spots(index: Index, run: tuple[Hashes, Ints], hashes: Hashes, times: Ints, back: bool, equal: bool) -> Spots:
    """The place of the nearest row with the same hash; one for each row of the batch.

    ``back``: the last one up to the time, else the first one from it on. ``equal``: whether it may have that time.

    >>> run = np.array([7, 7, 9], np.uint32), np.array([10, 20, 15])
    >>> given = np.array([7, 7, 8], np.uint32), np.array([19, 9, 15])
    >>> [spots(indexed(run[0]), run, *given, back, True).tolist() for back in (True, False)]
    [[0, -1, -1], [1, 0, -1]]
    """
    found = np.empty(len(hashes), np.int64)
    # The first row that is after the one wanted (back), or that is the one wanted.
    _kernel().firsts(index.starts, index.shift, *run, hashes, times, back == equal, found)
    if back:
        found -= 1
    return same_hash(run[0], hashes, found)


def _kernel() -> Any:
    from windrow.operators.kernels import nearest_kernel  # Numba takes a second to import

    return nearest_kernel


def same_hash(run: Hashes, hashes: Hashes, places: Spots) -> Spots:
    """The places that are in the run and have the hash that is wanted; -1 for the others."""
    inside = np.clip(places, 0, len(run) - 1)
    fits = (places >= 0) & (places < len(run)) & (run[inside] == hashes)
    return np.where(fits, places, -1)


def spots_of_integers(
    index: Index, run: tuple[Hashes, Ints], run_keys: Ints, keys: Ints, times: Ints, back: bool, equal: bool
) -> tuple[Spots, int]:
    """The same for rows whose key is one integer, with the keys compared, in one pass; and how many are OTHER.

    >>> from windrow.operators.kernels.key_hash import hashes
    >>> import polars as pl
    >>> keys = np.array([5, 5])
    >>> run = (hashes(pl.DataFrame({"k": keys}), ["k"]) >> np.uint64(32)).astype(np.uint32), np.array([10, 20])
    >>> spots_of_integers(indexed(run[0]), run, keys, np.array([5, 6]), np.array([15, 15]), True, True)
    (array([ 0, -1]), 0)
    """
    found = np.empty(len(keys), np.int64)
    given = keys, times, back, back == equal, found
    others = _kernel().of_integers(index.starts, index.shift, *run, run_keys, *given)
    return found, int(others)
