"""Which physical algorithms a window may be forced to use, and what ``memory`` and ``flush`` need."""

from __future__ import annotations

from windrow.logical.nodes import Shape
from windrow.planner import ALGORITHMS
from windrow.planner.in_order import IOP
from windrow.planner.windows import BY_TUPLE, TWO_LEVEL
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

USING, MEMORY = "using", "memory"
KINDS: dict[type[Shape], str] = {
    Landmark: "landmark windows",
    Session: "session windows",
    Partitioned: "windows of rows with PA, or partition_by=,",
    SlideByTuple: "slide-by-tuple windows",
}


def refusal(window: Shape, using: str | None, memory: int | None, flush: str | None = None) -> tuple[str, str] | None:
    """Which option has no effect on a window, and why.

    >>> refusal(Session(5), None, 1000)
    ('memory', 'session windows have only one algorithm, so memory cannot choose between several: leave it out')
    """
    if using is not None and not isinstance(using, str):
        return USING, f"using={using!r} is not the name of an algorithm"
    sliding = isinstance(window, (Sliding, RowSliding))
    kind = KINDS.get(type(window), "these windows")
    possible = ALGORITHMS if sliding else tuple(BY_TUPLE) if isinstance(window, SlideByTuple) else ()
    possible += () if isinstance(window, Partitioned) else (IOP,)
    if using is not None and using not in possible:
        if not possible:
            return USING, f"{kind} have only one algorithm: leave out {using!r}"
        what = "window aggregation" if sliding else kind
        return USING, f"unknown algorithm {using!r} for {what}; available: {', '.join(possible)}"
    if memory is not None and not sliding:
        return MEMORY, f"{kind} have only one algorithm, so memory cannot choose between several: leave it out"
    if memory is not None and using not in (None, TWO_LEVEL):
        return MEMORY, f"memory chooses the algorithm, and using={using!r} forces one: leave out one of them"
    if flush is not None and using != TWO_LEVEL:
        return "flush", f"flush={flush!r} applies to the table of using={TWO_LEVEL!r}; other algorithms have none"
    return None
