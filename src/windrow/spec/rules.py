"""Rules by which promises are made from what has arrived so far (Li 8.1), where the newest batch says too little.

A rule has two halves, so that it means the same in one process and on many. ``evidence`` is what a part of the stream
shows: small, and without an order among parts. ``promise`` adds evidence to what is remembered and says what follows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import DataError, ResultError
from windrow.progress import END, FARTHEST, START, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.spec.time import Bounds, physical, reach

NUMBER, COUNT, TOP, BUCKET, PART = "@number", "@count", "@top", "@bucket", "@part"


class Rule(ABC):
    """How a stream progresses. ``columns``: those of the source that it looks at, besides the progressing one."""

    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # the columns that name the groups it can promise for, if it can
    claims = False  # whether it is somebody's word, which should not go back, and not an estimate, which may

    @abstractmethod
    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        """What ``explain`` shows; ``span`` writes lengths of the attribute."""

    @abstractmethod
    def evidence(self, batch: Batch) -> Batch:
        """What a batch that is not empty shows."""

    @abstractmethod
    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        """What is remembered after some evidence, and what can be promised."""

    def groups(self, memory: State) -> list[Punctuation]:
        """What can be promised about single groups."""
        return []

    def check(self, in_order: bool) -> str | None:
        """Why the rule cannot be used; ``in_order``: whether rows are seen in the order in which they arrive."""
        return None


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


@dataclass(frozen=True)
class BySource(Rule):
    """Each source partition is at most ``slack`` behind itself; the slowest of at least ``count`` says how far all are.

    Each also promises for itself: a group that is in one partition is as far as that, whatever the others do.

    >>> rule = BySource("p", 0, 2)
    >>> memory, promised = rule.promise({}, rule.evidence(pl.DataFrame({"@t": [5], "p": ["a"]})))
    >>> promised, rule.promise(memory, rule.evidence(pl.DataFrame({"@t": [3], "p": ["b"]})))[1]
    (None, 3)
    """

    column: str
    slack: int
    count: int

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    @property
    def by(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return (
            f"promises {span(self.slack)} behind the greatest {attribute} of the slowest {self.column}, "
            f"as soon as {self.count} are there"
        )

    def evidence(self, batch: Batch) -> Batch:
        return batch.group_by(pl.col(self.column).alias(PART), maintain_order=True).agg(pl.col(PROGRESS).max())

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        both = pl.concat([memory["tops"], evidence]) if "tops" in memory else evidence
        tops = both.group_by(PART, maintain_order=True).agg(pl.col(PROGRESS).max())
        slowest = int(tops[PROGRESS].min()) - self.slack if tops.height >= self.count else None  # type: ignore[arg-type]
        return {"tops": tops}, slowest

    def groups(self, memory: State) -> list[Punctuation]:
        tops = memory["tops"].drop_nulls(PART)
        return [Punctuation(top - self.slack, (part,)) for part, top in tops.rows()]


@dataclass(frozen=True)
class Estimated(Rule):
    """Slack from the disorder that was seen: so large that a share of ``quantile`` of the rows would have been in time.

    Until ``enough`` rows are seen it is at least ``initial``. It grows at once and shrinks only when the estimate is
    well below it, so that it does not swing. Rows above the estimate are late: exactness is not promised, it is chosen.
    """

    quantile: float
    initial: int
    enough: int = 1000

    GROWTH = 1.05  # one bucket of lateness to the next: what is counted is rounded up, and what follows from it again
    BACK = 0.8  # of the slack in force: only below this it shrinks
    FORGET = 1_000_000  # rows after which all counts are halved, so that what is long ago counts less

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return (
            f"promises behind the greatest {attribute} by a slack estimated to cover {self.quantile:.10g} of the rows, "
            f"{span(self.initial)} at first"
        )

    def evidence(self, batch: Batch) -> Batch:
        top = int(batch[PROGRESS].max())  # type: ignore[arg-type]
        found, counts = np.unique(self._bucket(top - batch[PROGRESS].to_numpy()), return_counts=True)
        return pl.DataFrame({TOP: np.full(len(found), top), BUCKET: found, COUNT: counts.astype(np.int64)})

    def _bucket(self, lateness: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        late = np.maximum(lateness, 1).astype(np.float64)
        return np.where(lateness <= 0, 0, 1 + np.ceil(np.log(late) / math.log(self.GROWTH))).astype(np.int64)

    def _most(self, bucket: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The greatest lateness in a bucket; the greatest float below 2^63, if it is beyond."""
        most = np.minimum(np.ceil(self.GROWTH ** (bucket - 1.0)), 2.0 * FARTHEST - 1024)
        return np.where(bucket <= 0, 0, most).astype(np.int64)

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        greatest, slack = memory["now"].row(0) if "now" in memory else (START, self.initial)
        seen = memory.get("seen", pl.DataFrame(schema={BUCKET: pl.Int64, COUNT: pl.Int64}))
        if greatest > START and evidence.height:  # how far behind what was known before these rows came
            behind = self._most(evidence[BUCKET].to_numpy()) - (evidence[TOP].to_numpy() - greatest)
            news = pl.DataFrame({BUCKET: self._bucket(behind), COUNT: evidence[COUNT]})
            seen = pl.concat([seen, news]).group_by(BUCKET).agg(pl.col(COUNT).sum()).sort(BUCKET)
            if seen[COUNT].sum() > self.FORGET:
                seen = seen.with_columns(pl.col(COUNT) // 2).filter(pl.col(COUNT) > 0)
        if evidence.height:
            greatest = max(greatest, int(evidence[TOP].max()))  # type: ignore[arg-type]
        slack = self._slack(seen, slack)
        remembered = {"seen": seen, "now": pl.DataFrame({"greatest": [greatest], "slack": [slack]})}
        return remembered, greatest - slack if greatest > START else None

    def _slack(self, seen: Batch, before: int) -> int:
        total = int(seen[COUNT].sum())
        if not total:
            return before
        covered = seen[COUNT].cum_sum().search_sorted(math.ceil(self.quantile * total))
        found = int(self._most(seen[BUCKET].to_numpy()[[min(int(covered), seen.height - 1)]])[0])
        if total < self.enough:
            return max(found, before)
        return found if found > before or found < self.BACK * before else before


@dataclass(frozen=True)
class Seen:
    """What a user's function is told: of the newest rows, and of all."""

    rows: int
    least: Any
    greatest: Any
    all_rows: int
    all_greatest: Any
    promised: Any


@dataclass(frozen=True)
class ByFunction(Rule):
    """Whatever a user's function says, as a value of the progressing attribute; None promises nothing new."""

    function: Callable[[Seen], Any] = field(compare=False)
    name: str
    dtype: pl.DataType
    claims = True

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return f"promises what the function {self.name} says"

    def evidence(self, batch: Batch) -> Batch:
        at = batch[PROGRESS]
        return pl.DataFrame({COUNT: [batch.height], "least": [at.min()], "greatest": [at.max()]})

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        rows, greatest, promised = memory["now"].row(0) if "now" in memory else (0, START, START)
        if not evidence.height:
            return memory, None
        count, least, newest = int(evidence[COUNT].sum()), evidence["least"].min(), evidence["greatest"].max()
        rows, greatest = rows + count, max(greatest, int(newest))  # type: ignore[arg-type]
        told = Seen(count, self._value(least), self._value(newest), rows, self._value(greatest), self._value(promised))
        said = self._said(told)
        promised = max(promised, START if said is None else said)
        return {"now": pl.DataFrame({"rows": [rows], "greatest": [greatest], "promised": [promised]})}, said

    def _value(self, at: Any) -> Any:
        return None if at == START else Bounds(self.dtype).column("t", np.array([at]))[0]

    def _said(self, told: Seen) -> int | None:
        try:
            said = self.function(told)
        except Exception as error:
            raise ResultError(
                f"the function {self.name} that makes promises failed on {told}: {type(error).__name__}: {error}"
            ) from error
        if said is None:
            return None
        if not self._fits(said):
            raise ResultError(
                f"the function {self.name} that makes promises gave {said!r}: it must give a value of type "
                f"{self.dtype}, or None"
            )
        at = said if isinstance(said, int) else pl.DataFrame({"t": [said]}).select(self._physical(pl.col("t"))).item()
        if abs(at) >= reach(self.dtype)[0]:
            raise ResultError(f"the function {self.name} that makes promises gave {said!r}: it is out of range")
        return int(at)

    def _physical(self, column: pl.Expr) -> pl.Expr:
        return physical(column.cast(self.dtype), self.dtype)

    def _fits(self, said: Any) -> bool:
        if self.dtype.is_integer():
            return isinstance(said, int) and not isinstance(said, bool)
        return isinstance(said, datetime) if isinstance(self.dtype, pl.Datetime) else type(said) is date
