"""The windows of a join as a list that is scanned, or as a hash table: what Kang et al. compare, one tuple at a time.

A window is arrays of hashes and times in the order of arrival. A hash table over it has a chain of places per bucket:
``heads`` and ``tails`` per bucket, and ``following`` per place; -1 is none. A new place goes to the end of its chain,
so that a bucket is in the order of arrival and what expires is at its front.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.operators.kernels.compiled import compiled_when_called
from windrow.operators.kernels.probe import Hashes, Places
from windrow.windows.tuples import Bools, Ints

Links = NDArray[np.int64]
NONE = -1
ROW, PLACE, TOUCHED = 0, 1, 2  # where a probe goes on, and how many tuples it has looked at so far
BEGIN = -2  # as a place: at the front of the window, or of the bucket
LOOPS, HASH = 0, 1


def beginning() -> Ints:
    """Where a probe begins."""
    return np.array([0, BEGIN, 0])


@compiled_when_called
def scanned(
    hashes: Hashes,
    times: Ints,
    first: int,
    last: int,
    wanted: Hashes,
    least: Ints,
    greatest: Ints,
    at: Ints,
    rows: Places,
    places: Places,
) -> Any:
    """Nested loops: each row of a batch against the places of a window from ``first`` to before ``last``.

    Pairs are written to ``rows`` and ``places`` until these are full, or all is done; their number is returned, and
    ``at`` is where the next call goes on: past the last row if nothing is left.
    """
    found, row, place, touched = 0, at[ROW], at[PLACE], at[TOUCHED]
    while row < len(wanted):
        hash_, low, high = wanted[row], least[row], greatest[row]
        if place == BEGIN:
            place = first
        start = place
        while place < last and found < len(rows):
            if hashes[place] == hash_ and low <= times[place] <= high:
                rows[found] = row
                places[found] = place
                found += 1
            place += 1
        touched += place - start
        if place < last:
            break
        row += 1
        place = BEGIN
    at[ROW], at[PLACE], at[TOUCHED] = row, place, touched
    return found


@compiled_when_called
def chased(
    hashes: Hashes,
    times: Ints,
    limit: int,
    heads: Links,
    tails: Links,
    following: Links,
    wanted: Hashes,
    least: Ints,
    greatest: Ints,
    at: Ints,
    rows: Places,
    places: Places,
) -> Any:
    """The same with a hash table: each row against the places in its bucket. What is below ``limit`` leaves the front
    of a bucket when a row comes there.
    """
    found, row, place, touched = 0, at[ROW], at[PLACE], at[TOUCHED]
    mask = len(heads) - 1
    while row < len(wanted):
        hash_, low, high = wanted[row], least[row], greatest[row]
        if place == BEGIN:
            bucket = hash_ & mask
            place = heads[bucket]
            if place != NONE and times[place] < limit:
                while place != NONE and times[place] < limit:
                    touched += 1
                    place = following[place]
                heads[bucket] = place
                if place == NONE:
                    tails[bucket] = NONE
        while place != NONE and found < len(rows):
            touched += 1
            if hashes[place] == hash_ and low <= times[place] <= high:
                rows[found] = row
                places[found] = place
                found += 1
            place = following[place]
        if place != NONE:
            break
        row += 1
        place = BEGIN
    at[ROW], at[PLACE], at[TOUCHED] = row, place, touched
    return found


@compiled_when_called
def chained(hashes: Hashes, order: Links, heads: Links, tails: Links, following: Links) -> None:
    """Put places of a window, in the order given, to the ends of their buckets."""
    mask = len(heads) - 1
    for place in order:
        bucket = hashes[place] & mask
        following[place] = NONE
        if heads[bucket] == NONE:
            heads[bucket] = place
        else:
            following[tails[bucket]] = place
        tails[bucket] = place


@compiled_when_called
def unchained(
    hashes: Hashes, times: Ints, limit: int, first: int, last: int, heads: Links, tails: Links, following: Links
) -> Any:
    """Take what has expired off the fronts of the buckets; the first place of the window that has not is returned.

    Places behind one that has not expired stay until it goes: no probe finds them.
    """
    mask = len(heads) - 1
    while first < last and times[first] < limit:
        bucket = hashes[first] & mask
        place = heads[bucket]
        while place != NONE and times[place] < limit:
            place = following[place]
        heads[bucket] = place
        if place == NONE:
            tails[bucket] = NONE
        first += 1
    return first


@compiled_when_called
def past(times: Ints, limit: int, first: int, last: int) -> Any:
    """The first place of a window, from ``first`` on, that has not expired."""
    while first < last and times[first] < limit:
        first += 1
    return first


@compiled_when_called
def moving_window_join(
    sides: NDArray[np.int8],
    times: Ints,
    hashes: Hashes,
    lengths: Ints,
    kinds: Ints,
    buckets: Ints,
    probing: Bools,
    newest_first: bool,
    lazy: bool,
) -> Any:
    """A whole join of two streams in order, as Kang et al. measure it: each tuple probes the window of the other
    stream, goes into its own, and what has expired there leaves. Nothing but the algorithm is in the time it takes.

    ``sides``: 0 or 1 of each tuple; a tuple is held for the length of its side. ``kinds``: of the window of each side,
    LOOPS or HASH. ``buckets``: the size of each table, a power of two. ``probing``: whether tuples of a side probe at
    all; a one-way join has one that does not, and then the other side keeps no window. ``newest_first``: buckets as in
    2002, where what expires is at their end and a bucket is read to find it. ``lazy``: what has expired leaves when it
    is met by a probe. Returns the number of pairs, of tuples touched, and the greatest number that both windows held.
    """
    size = len(times)
    held_times = np.empty((2, size), np.int64)
    held_hashes = np.empty((2, size), np.uint32)
    following = np.full((2, size), NONE)
    most_buckets = max(buckets[0], buckets[1])
    heads, tails = np.full((2, most_buckets), NONE), np.full((2, most_buckets), NONE)
    first, last, held = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    pairs, touched, most = 0, 0, 0
    for row in range(size):
        side = sides[row]
        other = 1 - side
        now, hash_ = times[row], hashes[row]
        oldest = now - lengths[other]  # tuples above it can be partners
        if probing[side]:
            if kinds[other] == LOOPS:
                if lazy:
                    low, high = first[other], last[other]
                    while low < high:
                        middle = (low + high) >> 1
                        touched += 1
                        if held_times[other, middle] <= oldest:
                            low = middle + 1
                        else:
                            high = middle
                    held[other] -= low - first[other]
                    first[other] = low
                for place in range(first[other], last[other]):
                    if held_hashes[other, place] == hash_ and held_times[other, place] > oldest:
                        pairs += 1
                touched += last[other] - first[other]
            else:
                bucket = hash_ & (buckets[other] - 1)
                place, before = heads[other, bucket], NONE
                while place != NONE:
                    touched += 1
                    if held_times[other, place] > oldest:
                        if held_hashes[other, place] == hash_:
                            pairs += 1
                        before = place
                        place = following[other, place]
                    elif not lazy:
                        place = following[other, place]
                    elif newest_first:  # all that follow are older
                        if before == NONE:
                            heads[other, bucket] = NONE
                        else:
                            following[other, before] = NONE
                        while place != NONE:
                            held[other] -= 1
                            place = following[other, place]
                    else:
                        held[other] -= 1
                        place = following[other, place]
                        heads[other, bucket] = place
                        if place == NONE:
                            tails[other, bucket] = NONE
        if not probing[other]:  # nobody will look for this tuple
            continue
        place = last[side]
        held_times[side, place], held_hashes[side, place] = now, hash_
        last[side] += 1
        held[side] += 1
        touched += 1
        if kinds[side] == HASH:
            bucket = hash_ & (buckets[side] - 1)
            if newest_first:
                following[side, place] = heads[side, bucket]
                heads[side, bucket] = place
            else:
                following[side, place] = NONE
                if heads[side, bucket] == NONE:
                    heads[side, bucket] = place
                else:
                    following[side, tails[side, bucket]] = place
                tails[side, bucket] = place
        gone = now - lengths[side]
        while not lazy and first[side] < last[side] and held_times[side, first[side]] <= gone:
            expired = first[side]
            first[side] += 1
            held[side] -= 1
            touched += 1
            if kinds[side] == LOOPS:
                continue
            bucket = held_hashes[side, expired] & (buckets[side] - 1)
            if newest_first:
                place, before = heads[side, bucket], NONE
                while place != expired:
                    touched += 1
                    before = place
                    place = following[side, place]
                if before == NONE:
                    heads[side, bucket] = following[side, expired]
                else:
                    following[side, before] = following[side, expired]
            else:
                heads[side, bucket] = following[side, expired]
                if heads[side, bucket] == NONE:
                    tails[side, bucket] = NONE
        most = max(most, held[0] + held[1])
    return pairs, touched, most
