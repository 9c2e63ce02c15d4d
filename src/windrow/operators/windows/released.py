"""What the window aggregates share: which windows are out already, which rows are late, what results look like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Failed, Partials
from windrow.errors import InternalError, LateError, ResultError
from windrow.operators.operator import Item, Side
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.levels import NOBODY, Levels, Named
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK
from windrow.spec.options import PLAIN, Options
from windrow.spec.time import Bounds
from windrow.windows.tuples import Ints

WINDOW_START, WINDOW_END = "window_start", "window_end"
WINDOWS, LATE_BY, LATE_ROWS = (
    "windows",
    "late_by",
    "rows",
)  # of a late record: how many windows, how late, how many rows
MOST_AT_ONCE = 20_000_000  # results of one promise where windows need no rows to have one
LIMIT = 13 << 59  # START and END times a window's step leave 64 bits; no value less its origin is beyond this


def clipped(value: int) -> int:
    """The value, or the nearest one that still leaves room for arithmetic in 64 bits."""
    return max(-LIMIT, min(LIMIT, value))


def check_amount(results: int, what: str) -> None:
    """Refuse a promise so far ahead that windows without rows of their own would fill the memory."""
    if results > MOST_AT_ONCE:
        raise ResultError(
            f"{what}: one promise passes {results:,} results, more than {MOST_AT_ONCE:,}. A progress value or marker "
            "is far in the future (to end a stream, do not promise the end of time), or SLIDE is too small"
        )


def late_schema(columns: dict[str, pl.DataType], bound: pl.DataType) -> dict[str, pl.DataType]:
    """The columns of late records: what is known of the rows, their first window, and how much was missed."""
    found = {**columns, WINDOW_START: bound, WINDOW_END: bound}
    return {**found, WINDOWS: pl.Int64(), LATE_BY: pl.Int64(), LATE_ROWS: pl.Int64()}


@contextmanager
def locating(describe: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[None]:
    """Turns the failure of a user's function into an error that names the aggregate, the group and the window."""
    try:
        yield
    except Failed as failure:
        raise ResultError(f"{failure}, at {describe(failure.at)}") from failure.cause


class Released:
    """State of a window aggregate: partials in chunks, and ``closed``: how far windows are released.

    A row is late when a window it belongs to is released; what happens then is the query's late policy. ``stores``
    are further chunked tables; ``marks`` further integers that must survive a restart. ``by``: the keys that promises
    about single groups name; such a group is released as far as it is promised itself.
    """

    chunk_by: ClassVar[str]  # the column that, besides the keys, tells partials apart

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
        by: Named = NOBODY,
    ) -> None:
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.bounds = Bounds(dtype, options.zone)
        self.options = options
        self.marks: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._saved: dict[str, int] = {}
        self.remember(value=START)
        of = (self.chunk_by, *keys)
        self.chunks = Chunks(lambda f: self._combined(f, (CHUNK, *of) if CHUNK in f.columns else of), together=True)
        self.levels = Levels(by)  # of the groups that promises can be about
        self.stores: dict[str, Chunks] = {"": self.chunks, **self.levels.stores()}

    # -- progress ------------------------------------------------------------------------------------------------
    @property
    def closed(self) -> int:
        return self.marks["value"]

    @closed.setter
    def closed(self, value: int) -> None:
        self.marks["value"] = value

    def news_in(self, promise: Punctuation) -> bool:
        """Whether a promise closes anything new."""
        return promise.group is None and promise.value > self.closed

    def advance(self, promise: Punctuation) -> bool:
        """Note a promise; false if it closes nothing new."""
        if not self.news_in(promise):
            return False
        self.closed = min(promise.value, END)
        return True

    def on_flush(self) -> list[Item]:
        """What promises about single groups have closed, and what follows from them for the results of each."""
        news = self.levels.news(self.closed)
        if news is None:
            return []
        told = self.levels.unmatched(news, self._held())
        return [*told, *self.release_groups(news), *self.promises_of(news)]

    def _held(self) -> list[Batch]:
        """Whatever is remembered of rows."""
        own = self.levels.stores()
        stores = [store for prefix, store in self.stores.items() if prefix not in own]
        return [frame for store in stores for stack in store.stacks.values() for frame in stack]

    def release_groups(self, news: Batch) -> list[Item]:
        """The results of some groups, each from where it stood (``@from``) to where it is now (``@closed``)."""
        raise InternalError(f"{type(self).__name__} cannot release single groups")

    def promises_of(self, news: Batch) -> list[Item]:
        """What is promised about the results of these groups."""
        return [promise.mapped(self.promised_end) for promise in self.levels.promises(news)]

    def promised_end(self, closed: int) -> int:
        """The end of the first window that is still open where everything up to ``closed`` is released."""
        return self.bounds.value(closed)

    def closed_of(self, frame: Batch, low: int | None = None) -> Ints:
        """How far the group of each row is released: as far as everyone, or ``low``, at least."""
        return self.levels.of(frame, self.closed if low is None else low).to_numpy()

    # -- merging -------------------------------------------------------------------------------------------------
    def place(self, at: dict[str, Any]) -> dict[str, Any]:
        """Where a failure happened, in a user's words: the group, and the window if it is known."""
        return {k: v for k, v in at.items() if not k.startswith("@")}

    def _combined(self, frame: Batch, by: Sequence[str]) -> Batch:
        with locating(self.place):
            return self.aggregates.combine(frame, by)

    # -- what comes out ------------------------------------------------------------------------------------------
    def lowered(self, frame: Batch, starts: Ints | None, ends: Ints) -> Batch:
        """Keys, window bounds and aggregates from states with a window each; no ``starts``: there is no start."""
        begin = self.bounds.column(WINDOW_START, ends if starts is None else starts)
        if starts is None:
            begin = pl.Series(WINDOW_START, [None] * len(ends), dtype=self.bounds.dtype)
        frame = frame.with_columns(begin, self.bounds.column(WINDOW_END, ends))
        with locating(self.place):
            return self.aggregates.lower(frame, [*self.keys, WINDOW_START, WINDOW_END])

    def late(self, partials: Batch, starts: Ints | None, ends: Ints, windows: Ints) -> list[Item]:
        """The items for late partials, each of which missed ``windows`` windows, the first of them as given."""
        count = int(partials[ROWS].sum())
        begin = self.bounds.column(WINDOW_START, ends if starts is None else starts)
        end = self.bounds.column(WINDOW_END, ends)
        if self.options.late == "error":
            group = {k: partials[k][0] for k in self.keys}
            where = f" of {group}" if group else ""
            raise LateError(
                f"{count} late rows, the first{where} in the released window [{begin[0]}, {end[0]}). Under the policy "
                "'error' they stop the query: give the source more slack, or choose drop, side or revise"
            )
        records = partials.select(
            *self.keys,
            begin if starts is not None else pl.lit(None, self.bounds.dtype).alias(WINDOW_START),
            end,
            pl.Series(WINDOWS, windows, dtype=pl.Int64),
            pl.lit(None, pl.Int64).alias(LATE_BY),
            pl.col(ROWS).alias(LATE_ROWS),
        )
        return [Side("late", count, records)]

    # -- state ---------------------------------------------------------------------------------------------------
    def remember(self, **marks: int) -> None:
        """Have further marks, with what they are at first."""
        for known in (self.marks, self._first, self._saved):
            known.update(marks)

    def _marks(self) -> Batch:
        return pl.DataFrame({name: [value] for name, value in self.marks.items()})

    def snapshot(self) -> State:
        found: State = {"closed": self._marks()}
        for prefix, store in self.stores.items():
            found.update({f"{prefix}{name}": frame for name, frame in store.snapshot().items()})
        return found

    def changes(self) -> Changes:
        found: Changes = {}
        for prefix, store in self.stores.items():
            found.update({f"{prefix}{name}": frame for name, frame in store.changes().items()})
        if self.marks != self._saved:
            found["closed"] = self._marks()
            self._saved = dict(self.marks)
        return found

    def restore(self, state: State) -> None:
        chunks = dict(state)
        marks = chunks.pop("closed", None)
        self.marks = dict(self._first)
        if marks is not None:
            self.marks.update({name: int(marks[name][0]) for name in self.marks if name in marks.columns})
        self._saved = dict(self.marks)
        for prefix, store in sorted(self.stores.items(), reverse=True):
            own = {name: chunks.pop(name) for name in list(chunks) if name.startswith(prefix)}
            store.restore({name.removeprefix(prefix): frame for name, frame in own.items()})

    def state_bytes(self) -> int:
        return sum(store.state_bytes() for store in self.stores.values())


def numbered(frame: Batch, keys: Sequence[str], name: str = "@group") -> Batch:
    """A number per distinct value of some columns, NULL among them."""
    if not keys:
        return frame.with_columns(pl.lit(0, pl.UInt32).alias(name))
    # Not by a join: Polars finds no partner for NaN in a frame of one row.
    rows = frame.select(keys).with_row_index("@row")
    alike = rows.select(pl.col("@row").min().over(*keys)).to_series().to_numpy()  # the first row with the same values
    number = np.cumsum(alike == np.arange(len(alike))) - 1
    return frame.with_columns(pl.Series(name, number[alike], dtype=pl.UInt32))


def spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Every value of the ranges [first, last), and the number of the range that it is from."""
    count = np.maximum(last - first, 0)
    source = np.repeat(np.arange(len(count)), count)
    return np.repeat(first, count) + np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count), source
