"""What a query can ask of a join that is spread over nodes (Wang and Rundensteiner; Gu, Yu, Wang)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from windrow.spec.lengths import Length

RINGS = ("ring", "atr", "ctr")  # state in slices of time, or copies of it by segment, or at several nodes
SMOOTHING, RELOCATION, OBJECTIVES = ("count", "time"), ("passive", "aggressive"), ("latency", "output")
FLIGHT = 2048
COPIES = 2  # of a segment, as in the paper


@dataclass(frozen=True)
class RingOptions:
    """How a join is spread over nodes. Whatever is chosen, its results are the same.

    ``smoothing``: slices of as many rows ("count") or of as much time ("time"). ``relocation``: when the number of
    nodes changes, state moves as it grows old ("passive") or at once ("aggressive"). ``objective``: what the number of
    nodes is chosen for, if it is not given: the least "latency" or the most "output". ``flight``: how many rows may be
    on their way at once; 1 is the basic scheme without interleaving. ``segment``: how long the segments of
    ``using="atr"`` and "ctr" are. ``copies``: of each segment of "ctr".

    >>> RingOptions(smoothing="time").flight
    2048
    """

    smoothing: Literal["count", "time"] = "count"
    relocation: Literal["passive", "aggressive"] = "passive"
    objective: Literal["latency", "output"] = "latency"
    flight: int = FLIGHT
    segment: Length | None = None
    copies: int = COPIES

    def refusal(self) -> str | None:
        """Why there is no such join, if there is none.

        >>> RingOptions(flight=0).refusal()
        'flight=0 must be a whole number, 1 or more: it is how many rows may be on their way at once'
        """
        for name, known in (("smoothing", SMOOTHING), ("relocation", RELOCATION), ("objective", OBJECTIVES)):
            if (given := getattr(self, name)) not in known:
                return f"{name}={given!r} must be {' or '.join(repr(each) for each in known)}"
        says = {
            "flight": "how many rows may be on their way at once",
            "segment": "the length of a segment, in units of progress",
            "copies": "how many nodes have a segment",
        }
        for name, what in says.items():
            value = getattr(self, name)
            if not ((isinstance(value, int) and not isinstance(value, bool) and value >= 1) or value is None):
                return f"{name}={value!r} must be a whole number, 1 or more: it is {what}"
        return None
