"""Window joins by window ids (Li 5.2.2, Eqs. 5.19 to 5.22): two tuples join if they share a pair of matching extents.

``widjoin`` is the definition, ``match_left`` and ``match_right`` say the same from the view of one tuple. Extents of
a sliding-window join advance with every unit; those of a tumbling-window join are its windows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from windrow.windows.pairing import Pairing, SameWindow, Within
from windrow.windows.sliding import Sliding
from windrow.windows.tuples import Tuple

Extents = tuple[Sliding, Sliding]  # those of the left and those of the right stream
Ids = Iterable[Hashable]
Predicate = Callable[[Tuple, Tuple], bool]


def sliding_extents(left: int, right: int) -> Extents:
    """``L [RANGE left], R [RANGE right]``: window w holds the tuples of the last RANGE units, ``w`` itself included.

    >>> left, right = sliding_extents(3, 2)
    >>> list(left.wids(Tuple(10))), list(right.wids(Tuple(12))), list(right.wids(Tuple(13)))
    ([10, 11, 12], [12, 13], [13, 14])
    """
    return Sliding(left, 1), Sliding(right, 1)


def tumbling_extents(length: int, origin: int = 0) -> Extents:
    """``[RANGE TUMBLING length]``: the windows of both sides are the same."""
    return Sliding(length, length, origin), Sliding(length, length, origin)


def extents_of(window: Pairing) -> Extents | None:
    """The extents that make the same pairs; None for a band that does not hold 0, which no window ids describe."""
    match window:
        case SameWindow(length, origin):
            return tumbling_extents(length, origin)
        case Within(low, high) if low <= 0 <= high:
            return sliding_extents(high + 1, 1 - low)
    return None


def widjoin(left: Ids, right: Ids) -> set[tuple[Hashable, Hashable]]:
    """The pairs of window extents that are joined: those with the same id (Eq. 5.20).

    >>> sorted(widjoin(range(0, 4), range(2, 6)))
    [(2, 2), (3, 3)]
    """
    other = set(right)
    return {(w, w) for w in left if w in other}


def match_left(left: Tuple, extents: Extents) -> range:
    """The extents of the right stream that a left tuple is joined with (Eq. 5.21): those with the ids of its own.

    >>> match_left(Tuple(10), sliding_extents(3, 2))
    range(10, 13)
    """
    return extents[0].wids(left)


def match_right(right: Tuple, extents: Extents) -> range:
    """The extents of the left stream that a right tuple is joined with (Eq. 5.22)."""
    return extents[1].wids(right)


def matched(left: Tuple, right: Tuple, extents: Extents) -> bool:
    """Whether two tuples are joined: the right one is in an extent that the left one matches. No id is enumerated.

    >>> [r for r in range(5, 20) if matched(Tuple(10), Tuple(r), sliding_extents(3, 2))]
    [9, 10, 11, 12]
    """
    ids, others = match_left(left, extents), extents[1].wids(right)
    return max(ids.start, others.start) < min(ids.stop, others.stop)


def result(
    left: Sequence[Tuple], right: Sequence[Tuple], extents: Extents, predicate: Predicate | None = None
) -> set[tuple[Tuple, Tuple]]:
    """The union over ``widjoin`` of the joins of two extents (Eq. 5.19): a pair in several of them counts once."""
    ids = [window.windows(tuples) for window, tuples in zip(extents, (left, right), strict=True)]
    return {
        (a, b)
        for i, j in widjoin(*ids)
        for a in extents[0].extent(i, left)
        for b in extents[1].extent(j, right)
        if predicate is None or predicate(a, b)
    }
