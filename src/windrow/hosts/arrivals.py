"""Rows as they arrive in this process: each batch gets the time of a clock, and each row its number."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime

import polars as pl

from windrow.errors import QueryError
from windrow.logical.arrival import TYPES
from windrow.spec.names import ARRIVAL_TS, POSITION

STATE = "@arrivals"  # the name of their frame in a snapshot
CLOCK = ""  # the row of that frame with the last stamp; the others have the names of sources
Clock = Callable[[], datetime]


def wall_clock() -> datetime:
    return datetime.now(UTC)


class Arrivals:
    """The stamps of a run. They never decrease, whatever the clock does, also after a restore.

    >>> hours = iter([9, 11, 10])
    >>> arrivals = Arrivals(lambda: datetime(2024, 1, 1, next(hours), tzinfo=UTC))
    >>> rows = pl.DataFrame({"x": ["a", "b"]})
    >>> [arrivals.stamped("s", rows, ["arrival_ts"])["arrival_ts"][0].hour for _ in range(3)]
    [9, 11, 11]
    >>> [arrivals.stamped("s", rows, ["row_num"])["row_num"].to_list() for _ in range(2)]
    [[0, 1], [2, 3]]
    """

    def __init__(self, clock: Clock | None = None) -> None:
        if clock is not None and not callable(clock):
            raise QueryError(f"clock={clock!r} must be a function that returns a datetime")
        self.clock = wall_clock if clock is None else clock
        self.last: int | None = None  # the last stamp, in microseconds
        self.counts: dict[str, int] = {}  # by source, the number of the next row

    def stamped(self, source: str, frame: pl.DataFrame, stamps: Collection[str]) -> pl.DataFrame:
        """The rows of a batch with the attributes of arrival that a query wants."""
        found: list[pl.Expr] = []
        if ARRIVAL_TS in stamps:
            at = self.now()
            found.append(pl.lit(at, pl.Int64).cast(TYPES[ARRIVAL_TS]).alias(ARRIVAL_TS))
        if POSITION in stamps:
            first = self.counts.get(source, 0)
            self.counts[source] = first + frame.height
            found.append(pl.int_range(first, first + frame.height, dtype=pl.Int64).alias(POSITION))
        return frame.with_columns(found)

    def skip(self, source: str, rows: int) -> None:
        """Rows that no query wants the numbers of now: those after them have the same numbers as if one did."""
        self.counts[source] = self.counts.get(source, 0) + rows

    def now(self) -> int:
        """What time it is: no row arrives before it from now on."""
        return self.passed(_micros(self.clock()))

    def passed(self, at: int) -> int:
        """No later stamp is before this one."""
        self.last = at if self.last is None else max(self.last, at)
        return self.last

    def snapshot(self) -> dict[str, pl.DataFrame]:
        """Nothing, as long as no row was stamped."""
        last = {} if self.last is None else {CLOCK: self.last}
        found = {**last, **self.counts}
        return {STATE: pl.DataFrame({"of": list(found), "value": list(found.values())})} if found else {}

    def restore(self, state: pl.DataFrame | None) -> None:
        found: dict[str, int] = {} if state is None else dict(state.iter_rows())
        self.last = found.pop(CLOCK, None)
        self.counts = found


def _micros(now: datetime) -> int:
    if not isinstance(now, datetime):
        raise QueryError(f"the clock of a run must return a datetime, not {now!r}")
    zoned = now.replace(tzinfo=UTC) if now.tzinfo is None else now
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
