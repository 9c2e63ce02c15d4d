"""What a running query counts: declared once, for both hosts, the command line and the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Counter(Enum):
    """A counter, and what it counts. Its name in lower case is what users see."""

    ROWS_IN = "rows that were read"
    ROWS_BAD = "bad rows; they are in the side output with the reason"
    ROWS_LATE = "late rows that were dropped or set aside"
    ROWS_REVISED = "late rows that changed a released result"
    ROWS_JOINED = "rows of a join that found a partner"
    ROWS_FREED = "rows of a join that left without a partner"
    ROWS_SHED = "rows of a join that its limits left out"
    PAIRS_NEAR = "pairs of rows near enough to be joined, estimated, of joins with limits"
    PAIRS_MISSED = "of these pairs, estimated, those with a row that its limits left out"
    ROWS_COPIED = "copies of rows of a join that lie near a border of time slices"
    ROWS_OUT = "rows of the result"
    STATE_BYTES = "bytes of state after the last micro-batch"
    FILES_BAD = "files that cannot be read"
    ROWS_LOST = "messages that were gone before they were read, at most"
    ROWS_SENT = "rows and partials that went through the exchange"
    PROMISES_SENT = "promises that went through the exchange"
    PROMISES_IGNORED = "promises of a source that promise less than an earlier one"
    PROMISES_UNMATCHED = "promises about a group of which no row is held"

    @property
    def label(self) -> str:
        """The name that users see."""
        return self.name.lower()

    @property
    def number(self) -> int:
        """Its place in the exchange."""
        return list(Counter).index(self)


# The counter of each kind of side output.
OF_SIDES = {
    "bad": Counter.ROWS_BAD,
    "late": Counter.ROWS_LATE,
    "revised": Counter.ROWS_REVISED,
    "joined": Counter.ROWS_JOINED,
    "freed": Counter.ROWS_FREED,
    "shed": Counter.ROWS_SHED,
    "near": Counter.PAIRS_NEAR,
    "missed": Counter.PAIRS_MISSED,
    "ignored": Counter.PROMISES_IGNORED,
    "unmatched": Counter.PROMISES_UNMATCHED,
}
ON_SPARK = {
    Counter.STATE_BYTES,
    Counter.ROWS_COPIED,
    Counter.ROWS_SENT,
    Counter.PROMISES_SENT,
}  # one process has no exchange
NAMES = tuple(counter.label for counter in Counter)


def recall(counts: Mapping[str, int]) -> float:
    """The share of the pairs that joins with limits have found, estimated from what they counted; 1 without limits.

    >>> recall({"pairs_near": 200, "pairs_missed": 50})
    0.75
    """
    near = counts["pairs_near"]
    return 1 - counts["pairs_missed"] / near if near else 1.0
