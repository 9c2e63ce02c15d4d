"""The choice of an algorithm: the fastest one that can run the query and fits into memory; the cost of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from windrow.planner.choose.costs.aggregation import MEMORY, TIME
from windrow.planner.choose.statistics import Workload

CLOSE = 1.1  # times that differ by less are the same: the one with less memory wins
SAFE = "paned"  # its cost hardly grows with RANGE / SLIDE, or with the rows of a group
FAR = 2.0  # but with the panes of a SLIDE, of which RANGE and SLIDE without a large common divisor make many


@dataclass(frozen=True)
class Option:
    """One algorithm: microseconds per window, bytes of state, and why it cannot be used, if so."""

    name: str
    micros: float
    bytes: float
    refused: str = ""


@dataclass(frozen=True)
class Choice:
    """What was chosen, why, and all options, cheapest first."""

    name: str
    reason: str
    options: tuple[Option, ...] = ()
    workload: Workload | None = None

    @property
    def lasting(self) -> bool:
        """Whether a query that is restarted must go on with it: no other algorithm can read its state."""
        return True

    @property
    def runner_up(self) -> Option | None:
        """The best of the others."""
        return next((o for o in self.options if o.name != self.name and not o.refused), None)

    def lines(self) -> Iterator[str]:
        """For ``explain``."""
        yield f"algorithm {self.name}: {self.reason}"
        if self.workload is not None:
            yield f"  {self.workload.says}"
        for option in self.options:
            cost = f"{option.micros:,.1f} us a window, {option.bytes / 1024:,.1f} KiB of state"
            role = "chosen" if option.name == self.name else "next best" if option == self.runner_up else "possible"
            yield f"  {option.name}: {cost}; {option.refused or role}"


def choose(
    workload: Workload, refused: Mapping[str, str], forced: str | None = None, memory: int | None = None
) -> Choice:
    """The cheapest option. ``refused``: algorithms that cannot run this query, with the reason.

    >>> skewed = Workload(1000, 100, 60, 1, 60.0, 24, 40, 30, "assumed")
    >>> choose(skewed, {}).name, choose(skewed, {"paned": "no"}).name, choose(skewed, {}, memory=200_000).name
    ('paned', 'wid', 'adaptpaned')
    """
    options = tuple(
        sorted(
            (Option(n, TIME[n](workload) / 1000, MEMORY[n](workload), refused.get(n, "")) for n in TIME),
            key=lambda o: (bool(o.refused), o.micros),
        )
    )
    if forced is not None:
        return Choice(forced, "as asked for", options, workload)
    able = [o for o in options if not o.refused]
    if len(able) == 1:
        why = "; ".join(dict.fromkeys(o.refused for o in options if o.refused))
        return Choice(able[0].name, f"the only one that can: {why}", options, workload)
    fitting = [o for o in able if memory is None or o.bytes <= memory]
    if not fitting:
        least = min(able, key=lambda o: (o.bytes, o.micros))
        return Choice(least.name, f"none fits into {memory:,} bytes, this one has the least state", options, workload)
    if workload.basis == "assumed" and any(o.name == SAFE and o.micros <= FAR * fitting[0].micros for o in fitting):
        return Choice(SAFE, "nothing is known of the stream, and it is never far from the fastest", options, workload)
    near = [o for o in fitting if o.micros <= fitting[0].micros * CLOSE]
    best = min(near, key=lambda o: o.bytes)
    reason = "the fastest" if memory is None else f"the fastest with at most {memory:,} bytes of state"
    reason += " by the cost model" + (", with the least state among equally fast ones" if len(near) > 1 else "")
    return Choice(best.name, reason, options, workload)
