"""RowSlack: promises by how many rows a row can be overtaken by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.errors import DataError
from windrow.progress import END, START
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.spec.rules.rule import COUNT, Rule

NUMBER = "@number"


@dataclass(frozen=True)
class RowSlack(Rule):
    """No row comes more than ``rows`` rows after one with a greater value: what lies further back is settled.

    ``number``: the column that numbers the rows by arrival; without one it is the order in which they are pushed. It
    is rows that are counted: numbers may be missing, as in a Kafka topic that is compacted. A number that comes twice
    among the last ``rows`` rows is an error.

    >>> rule = RowSlack(1)
    >>> memory, promised = rule.promise({}, rule.evidence(pl.DataFrame({"@t": [5, 9, 7]})))
    >>> promised                                       # 9 and what precedes it; 7 could still be overtaken
    9
    """

    rows: int
    number: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.number is None else (self.number,)

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        by = f" by {self.number}" if self.number is not None else ""
        return f"promises the greatest {attribute} of all rows but the last {self.rows}{by}"

    def check(self, in_order: bool) -> str | None:
        if self.number is not None or in_order:
            return None
        return "slack in rows needs to know in which order rows arrive: name the column that numbers them, row_num=.."

    def evidence(self, batch: Batch) -> Batch:
        """Steps, whose count is 0, and the numbers of the last rows as ranges, which have no progress value."""
        number = pl.col(self.number) if self.number is not None else pl.int_range(pl.len())
        seen = batch.select(number.cast(pl.Int64, strict=False).alias(NUMBER), PROGRESS).drop_nulls()
        first = pl.DataFrame({NUMBER: seen[NUMBER], COUNT: np.ones(seen.height, np.int64)})
        ranges = self._last(first)
        steps = self._steps(seen, ranges).with_columns(pl.lit(0, pl.Int64).alias(COUNT))
        return pl.concat([steps, ranges.select(NUMBER, pl.lit(None, pl.Int64).alias(PROGRESS), COUNT)])

    def _last(self, ranges: Batch) -> Batch:
        """Ranges of numbers put together, and of them what the last rows have: all that can tell what is settled."""
        ranges = ranges.sort(NUMBER)
        first, count = ranges[NUMBER].to_numpy(), ranges[COUNT].to_numpy()
        end = first + count
        if (twice := first[1:] < end[:-1]).any():
            raise DataError(
                f"the row number {self.number}={first[1:][twice][0]} came twice, and slack in rows counts rows by it: "
                "it must number all rows of the stream, as the offsets of a Kafka topic with one partition do"
            )
        heads = np.flatnonzero(np.append(True, first[1:] != end[:-1])) if len(first) else first
        first, count = first[heads], np.add.reduceat(count, heads) if len(heads) else count
        over = np.clip(
            np.cumsum(count[::-1])[::-1] - max(self.rows, 1), 0, count
        )  # of each range, what is too far back
        kept = count > over
        return pl.DataFrame({NUMBER: (first + over)[kept], COUNT: (count - over)[kept]})

    def _settled(self, ranges: Batch) -> int:
        """Rows with numbers below this have enough rows behind them."""
        if not self.rows:
            return END
        enough = ranges.height and int(ranges[COUNT].sum()) >= self.rows
        return int(ranges[NUMBER][0]) if enough else START

    def _steps(self, seen: Batch, ranges: Batch) -> Batch:
        """Only rows that raise the maximum can matter, and one of those that are settled whatever else comes."""
        seen = seen.sort(NUMBER)
        rising = seen[PROGRESS].cum_max().shift(1)
        steps = seen.filter(rising.is_null() | (seen[PROGRESS] > rising))
        settled = pl.col(NUMBER) < self._settled(ranges)
        return pl.concat([steps.filter(settled).tail(1), steps.filter(~settled)])

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        before = int(memory["rows"][COUNT][0]) if "rows" in memory else 0  # the next number, where rows have none
        moved = evidence.with_columns(pl.col(NUMBER) + (before if self.number is None else 0))
        steps, ranges = moved.filter(pl.col(COUNT) == 0).drop(COUNT), moved.filter(pl.col(COUNT) > 0).drop(PROGRESS)
        if "steps" in memory:
            steps = pl.concat([memory["steps"], steps])
            ranges = pl.concat([memory["ranges"] if "ranges" in memory else self._assumed(memory["steps"]), ranges])
        ranges = self._last(ranges)
        steps = self._steps(steps, ranges)
        settled = steps.filter(pl.col(NUMBER) < self._settled(ranges))
        upto = int(ranges[NUMBER][-1] + ranges[COUNT][-1]) if ranges.height and self.number is None else before
        remembered = {"steps": steps, "ranges": ranges, "rows": pl.DataFrame({COUNT: [upto]})}
        return remembered, int(settled[PROGRESS].max()) if settled.height else None  # type: ignore[arg-type]

    def _assumed(self, steps: Batch) -> Batch:
        """The numbers of the last rows in the state of a version that took it for granted that none is missing."""
        last = steps[NUMBER].max()
        first = [int(last) - self.rows + 1] if last is not None else []  # type: ignore[arg-type]
        return pl.DataFrame(
            {NUMBER: first, COUNT: [self.rows] * len(first)}, schema={NUMBER: pl.Int64, COUNT: pl.Int64}
        )
