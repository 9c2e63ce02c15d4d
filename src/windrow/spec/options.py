"""What a query wants of its windows besides their shape: late rows, early results, empty windows, a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Policy = Literal["drop", "error", "side", "revise"]
POLICIES: tuple[Policy, ...] = ("drop", "error", "side", "revise")


@dataclass(frozen=True)
class Options:
    """Lengths are in the unit of the windowing attribute.

    ``generous``: a late row still counts in those of its windows that are open (the thesis's generous slack); else it
    is dropped from all of them (consistent slack). ``keep``: how long after its end a window can be revised.
    ``empty``: a group has a result in every window from its first on. ``partial``: windows that begin before the
    origin, so that they can never be full, have results. ``early``: results of open windows, each time the stream has
    advanced by so much. ``zone``: windows follow the wall clock of this time zone.
    """

    late: Policy = "drop"
    generous: bool = False
    keep: int | None = None
    empty: bool = False
    partial: bool = True
    early: int | None = None
    zone: str | None = None

    @property
    def versioned(self) -> bool:
        """Whether a window can have several results."""
        return self.late == "revise" or self.early is not None


PLAIN = Options()
