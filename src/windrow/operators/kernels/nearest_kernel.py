"""The compiled half of ``nearest``: one search for each row of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.operators.kernels.compiled import compiled
from windrow.operators.kernels.key_hash import mix
from windrow.operators.kernels.nearest import OTHER

mixed = compiled(mix)


@compiled
def firsts(starts: Any, shift: int, hashes: Any, times: Any, wanted: Any, at: Any, after: bool, found: Any) -> None:
    """The first place with a greater hash, or the same hash and a time from the given one on (``after``: beyond it)."""
    for row in range(len(wanted)):
        bucket = np.int64(wanted[row] >> np.uint32(shift))
        found[row] = _first(hashes, times, wanted[row], at[row], after, starts[bucket], starts[bucket + 1])


@compiled
def of_integers(
    starts: Any,
    shift: int,
    hashes: Any,
    times: Any,
    keys: Any,
    given: Any,
    at: Any,
    back: bool,
    after: bool,
    found: Any,
) -> Any:
    """The place of the nearest row whose key is the given integer; how many have the hash of another one.

    Rows of a key mostly come in order: the search begins where the last one of the same bucket ended.
    """
    others, cursors = 0, starts.copy()
    for row in range(len(given)):
        wanted = np.uint32(mixed(mixed(np.uint64(given[row]))) >> np.uint64(32))  # as ``hashes_of`` has it
        bucket = np.int64(wanted >> np.uint32(shift))
        low, high = starts[bucket], starts[bucket + 1]
        near = cursors[bucket]
        for place in range(near, min(near + 2, high)):
            if _before(hashes[place], times[place], wanted, at[row], after):
                low = place + 1
            else:
                high = place
                break
        low = _first(hashes, times, wanted, at[row], after, low, high)
        cursors[bucket] = max(low - 1, starts[bucket])
        place = low - 1 if back else low
        if place < 0 or place >= len(hashes) or hashes[place] != wanted:
            found[row] = -1
        elif keys[place] != given[row]:
            found[row] = OTHER
            others += 1
        else:
            found[row] = place
    return others


@compiled
def _first(hashes: Any, times: Any, wanted: Any, time: int, after: bool, low: int, high: int) -> int:
    while low < high:
        middle = (low + high) >> 1
        if _before(hashes[middle], times[middle], wanted, time, after):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _before(hash: int, at: int, wanted: Any, time: int, after: bool) -> bool:
    return hash < wanted or (hash == wanted and (at < time or (after and at == time)))
