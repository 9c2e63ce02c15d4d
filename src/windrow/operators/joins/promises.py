"""What the promises of both sides of a join say about its results (Li 7.1, 7.2)."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from windrow.progress import END, START, Box
from windrow.windows.pairing import Pairing, Side


class Promised(NamedTuple):
    """The strongest true promises about a result that is still to come, one for each time that a query can choose.

    ``left``, ``right``: the time of the row of that side, of results that have one. ``later``, ``earlier``: the
    greatest and the least time of its rows. ``first``: the time of the left row, or of the right one where there is
    none. ``boxes``: promises about both times together.
    """

    left: int
    right: int
    later: int
    earlier: int
    first: int
    boxes: tuple[Box, ...]


def joint(window: Pairing, left: int, right: int, unmatched: Collection[Side] = ()) -> Promised:
    """The promises of a join whose sides have promised ``left`` and ``right``.

    ``unmatched``: the sides whose rows come out without a partner. Such a row comes out when the other side has
    promised past its last partner: one that is still to come is not below what that promise keeps.

    A pair to come has a left or a right row to come, so none has a left time below ``left`` *and* a right time below
    ``right``: that is the last of ``boxes``. It does not depend on the window, and so covers pairs before the promises
    on one time do; these are the other two.

    >>> from windrow.windows.pairing import Within
    >>> joint(Within(-2, 2), 2, 1)[:5]
    (-1, 0, 1, -1, -1)
    >>> joint(Within(-2, 2), 2, 1).boxes[-1]
    (2, 1)
    """
    first_right, first_left = _partner(window, 0, left), _partner(window, 1, right)
    on_left, on_right = min(left, first_left), min(right, first_right)
    alone = [(on_left, on_right)[side] for side in unmatched]
    return Promised(
        on_left,
        on_right,
        min(max(left, first_right), max(right, first_left), *alone),
        min(on_left, on_right),
        min(on_left, on_right) if 1 in unmatched else on_left,
        ((on_left, END), (END, on_right), (left, right)),
    )


def _partner(window: Pairing, side: Side, promised: int) -> int:
    """The least time of a partner of a row of ``side`` that is still to come."""
    return promised if promised in (START, END) else int(window.partners(side, promised)[0])
