"""Lateness, in one place: which rows are late, what each policy does with them, and how they are counted.

A row is late for a window when the window is released. To decide that, every window type numbers its windows in the
order in which promises release them; a row is in the windows [first, last), and those below ``closed`` are released.

| policy | a late row |
|---|---|
| drop | is counted and left out |
| error | stops the query |
| side | left as a row at the gate, which counted it; here it is only left out |
| revise | changes its released windows while they are kept, and is counted as late and as revised; then as drop |

With consistent slack a late row counts in none of its windows; with generous slack in those that are still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from windrow.aggregates import ROWS
from windrow.errors import LateError
from windrow.operators.operator import Item, Side
from windrow.spec.batches import Batch
from windrow.spec.names import HOME, PROGRESS, WINDOW_END, WINDOW_START
from windrow.spec.options import Options
from windrow.spec.time import Bounds
from windrow.windows.numbers import Numbered
from windrow.windows.tuples import UNBOUNDED, Bools, Ints

WINDOWS, LATE_BY, LATE_ROWS = "windows", "late_by", "rows"  # of a record: windows missed, how late, how many rows
TIMES = "@times"  # how many equal rows a row stands for, where they were put together


@dataclass(frozen=True)
class Spans:
    """The numbers of the windows of each row, [first, last), and how far the group of each row is released."""

    first: Ints
    last: Ints
    closed: Ints | np.int64

    def late(self) -> Bools:
        """Which rows have a released window. A row in no window is never late."""
        return np.asarray((self.first < self.closed) & (self.first < self.last))

    def first_open(self) -> Ints:
        """The first window of each row that is not released; at least ``last`` where there is none."""
        return np.maximum(self.first, self.closed)

    def of(self, chosen: Bools) -> Spans:
        """The same for some of the rows."""
        closed = self.closed[chosen] if isinstance(self.closed, np.ndarray) else self.closed
        return Spans(self.first[chosen], self.last[chosen], closed)


class Lateness:
    """The late policy of one query. ``kept``: how many released windows can still be revised."""

    def __init__(self, window: Numbered, options: Options, bounds: Bounds, keys: Sequence[str] = (), kept: int = 0):
        self.window = window
        self.policy = options.late
        self.generous = options.generous
        self.bounds = bounds
        self.keys = tuple(keys)
        self.kept = kept if options.late == "revise" else 0

    def late_for(self, spans: Spans) -> Bools:
        """Which rows come after a window of theirs was released."""
        return spans.late()

    def open_for(self, spans: Spans) -> Bools:
        """Which rows still count, in a window that is open or can be revised."""
        final = spans.closed - self.kept  # no window with a smaller number can have another result
        return np.asarray(spans.last > final if self.generous else spans.first >= final)

    def missed(self, spans: Spans) -> Ints:
        """How many windows each late row misses: all of its own with consistent slack, the released ones with generous
        slack or where windows go on without end.
        """
        released = self.generous | (spans.last == UNBOUNDED)
        return self.window.missed_array(spans.first, np.where(released, spans.last.clip(max=spans.closed), spans.last))

    def sift(self, batch: Batch, spans: Spans) -> tuple[Batch, list[Item]]:
        """The rows (or partials) that still count, and what is counted of the late ones; raises LateError."""
        late = self.late_for(spans)
        if not late.any():
            return batch, []
        still = self.open_for(spans)
        kept = batch.filter(pl.Series(still))
        if self.policy == "side":  # the gate counted them
            return kept, []
        if self.policy != "revise":
            return kept, self._counted(batch, spans, late)
        items = self._counted(batch, spans, late & ~still)
        extra = _rows_in(batch.filter(pl.Series(late & still)))
        return kept, [*items, Side("late", extra), Side("revised", extra)] if extra else items

    def _counted(self, batch: Batch, spans: Spans, gone: Bools) -> list[Item]:
        """A record of the late rows, those of the same group and windows together."""
        if not gone.any():
            return []
        spans = spans.of(gone)
        starts, ends = self.window.bounds_array(spans.first)
        bounds = self.bounds.columns(starts, ends)
        late = batch.filter(pl.Series(gone))
        count = _rows_in(late)
        if self.policy == "error":
            raise LateError(self._refusal(late, bounds, count))
        records = late.select(
            *self.keys,
            *bounds,
            pl.Series(WINDOWS, self.missed(spans), dtype=pl.Int64),
            pl.lit(None, pl.Int64).alias(LATE_BY),
            (pl.col(ROWS) if ROWS in late.columns else pl.lit(1, pl.Int64)).alias(LATE_ROWS),
        )
        if ROWS not in late.columns:
            records = records.group_by(pl.exclude(LATE_ROWS), maintain_order=True).agg(pl.col(LATE_ROWS).sum())
        return [Side("late", count, records)]

    def _refusal(self, late: Batch, bounds: list[pl.Series], count: int) -> str:
        group = {k: late[k][0] for k in self.keys}
        where = f" of {group}" if group else ""
        start, end = (column[0] for column in bounds)
        window = f"[{start}, {end})" if start is not None else f"that ends at {end}"
        return (
            f"{count} late rows, the first{where} in the released window {window}. Under the policy 'error' "
            "they stop the query: give the source more slack, or choose drop, side or revise"
        )

    def aside(self, rows: Batch, spans: Spans, late_by: Ints) -> Side:
        """Late rows that leave by the side: a record of each, with all of its columns and how late it is."""
        starts, ends = self.window.bounds_array(spans.first)
        records = rows.with_columns(
            *self.bounds.columns(starts, ends),
            pl.Series(WINDOWS, self.missed(spans), dtype=pl.Int64),
            pl.Series(LATE_BY, late_by, dtype=pl.Int64),
            pl.lit(1, pl.Int64).alias(LATE_ROWS),
        )
        return Side("late", rows.height, records)


def late_schema(columns: dict[str, pl.DataType], bound: pl.DataType) -> dict[str, pl.DataType]:
    """The columns of late records: what is known of the rows, their first window, and how much was missed."""
    found = {**columns, WINDOW_START: bound, WINDOW_END: bound}
    return {**found, WINDOWS: pl.Int64(), LATE_BY: pl.Int64(), LATE_ROWS: pl.Int64()}


def on_time(batch: Batch, promised: int | pl.Series, policy: str) -> tuple[Batch, list[Item]]:
    """For operators that keep rows and no windows: the rows that keep the promise, and a record of each of the others.

    A row below the promise is never taken; ``promised`` may be one value for each row. The policy is "drop" or "error".

    >>> rows, [side] = on_time(pl.DataFrame({"@t": [4, 6], "x": [1, 2]}), 5, "drop")
    >>> rows["x"].to_list(), side.rows.rows()
    ([2], [(1, 1, 1)])
    """
    late = batch[PROGRESS] < promised
    if not late.any():
        return batch, []
    rows = batch.filter(late)
    by = (promised.filter(late) if isinstance(promised, pl.Series) else promised) - rows[PROGRESS]
    together = TIMES in batch.columns
    times, count = (pl.col(TIMES), int(rows[TIMES].sum())) if together else (pl.lit(1, pl.Int64), rows.height)
    if policy == "error":
        first = {name: value for name, value in rows.row(0, named=True).items() if not name.startswith("@")}
        raise LateError(
            f"{count} rows came after a promise that no more would come below {by[0] + rows[PROGRESS][0]}, the first "
            f"is {by[0]} late{f': {first}' if first else ''}. Give the source more "
            "slack, or choose the policy drop"
        )
    known = rows.select(pl.exclude("^@.*$"), by.alias(LATE_BY), times.alias(LATE_ROWS))
    return batch.filter(~late), [Side("late", count, known)]


def on_time_of_side(batch: Batch, promised: int | pl.Series, policy: str) -> tuple[Batch, list[Item]]:
    """The rows of one side of a join that keep a promise about it. A row that is copied to several shards is counted as
    late at home only. The policy "side" shows late rows, "drop" says how many and how late they are.
    """
    copied = batch.filter(~batch[HOME] & (batch[PROGRESS] >= promised)) if HOME in batch.columns else None
    if copied is not None:
        promised = promised.filter(batch[HOME]) if isinstance(promised, pl.Series) else promised
        batch = batch.filter(HOME)
    rows, late = on_time(batch, promised, "error" if policy == "error" else "drop")
    if policy == "drop":
        late = [replace(s, rows=s.rows.select(LATE_BY, LATE_ROWS)) for s in late if isinstance(s, Side)]
    return (rows if copied is None else pl.concat([rows, copied]).drop(HOME)), late


def _rows_in(batch: Batch) -> int:
    """How many rows some rows or partials stand for."""
    return int(batch[ROWS].sum()) if ROWS in batch.columns else batch.height
