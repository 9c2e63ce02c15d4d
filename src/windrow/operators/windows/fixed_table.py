"""FixedTable: the low level of two-level aggregation, a table of fixed size that evicts on collision (Li 8.3.3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.aggregates.parts import Fold, Moments, Part
from windrow.errors import CheckpointError, ResultError
from windrow.operators.kernels.key_words import MOST_KEYS, KeyWords, encodable
from windrow.operators.operator import Item, Wait
from windrow.operators.state.limits import clipped
from windrow.operators.windows.bucket import on_window_ids
from windrow.operators.windows.entries import Entries
from windrow.operators.windows.panes import pane_length
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.flush import Flush
from windrow.spec.names import PANE, PROGRESS, SLOT
from windrow.windows import Sliding
from windrow.windows.tuples import Ints

TABLE, MARKS = "table", "marks"
MEMORY = 4 << 20  # bytes of the table by default: it fits in the cache of a core
WORD = 8
FEW = 1024  # texts that may be numbered however small the table is
SIGN = np.int64(-(1 << 63))


def refusal(aggregates: Partials, keys: Mapping[str, pl.DataType]) -> str:
    """Why a table cannot hold these groups or aggregates; empty if it can."""
    for aggregate in aggregates.aggregates:
        if any(_ops(part) is None for part in aggregate.parts()):
            return (
                f"the state of {aggregate.function!r} is not numbers that are added or compared, which is all that "
                "a table of fixed size can hold: use 'paned'"
            )
    for key, dtype in keys.items():
        if not encodable(dtype):
            return f"the key {key!r} of type {dtype} does not fit into a table of fixed size: use 'paned'"
    return f"more than {MOST_KEYS} keys do not fit into a table of fixed size: use 'paned'" * (len(keys) > MOST_KEYS)


def slots_for(memory: int, keys: int, aggregates: Partials) -> int:
    """How many entries of a query fit into some bytes; at least one."""
    words = 1 + (keys + 1 if keys else 0) + len(aggregates.columns)
    return max(1, memory // (WORD * words))


class FixedTable:
    """Stands in front of Paned instead of Panes: rows in, partials of panes and groups out, when they leave the
    table. A group can have several partials of a pane, which Paned merges.

    ``slots``: entries of the table. ``drains``: ``on_flush`` empties it, as a task must that remembers nothing.
    """

    def __init__(
        self,
        windowing: Windowing[Sliding],
        slots: int | None = None,
        flush: Flush | None = None,
        drains: bool = False,
    ) -> None:
        window, keys, aggregates = windowing.window, windowing.keys, windowing.aggregates
        self.window = window
        self.keys = keys
        self.aggregates = aggregates
        self.pane = pane_length(window, windowing.options)
        self.flush = flush if flush is not None else Flush()
        self.drains = drains
        # Entries of a slide grow old together, as a promise closes them together; in order, each pane by itself.
        self.step = window.slide // self.pane
        self.grain = 1 if self.flush.ordered else self.step
        self.columns = {c: t for part in aggregates.parts for c, t in zip(part.columns, part.dtypes, strict=True)}
        self.ops = [op for part in aggregates.parts for op in _ops(part) or ()]
        self.each = [e for part in aggregates.parts for e in _each(part)]
        self.words = KeyWords(keys)
        self.slots = slots_for(MEMORY, len(self.keys), aggregates) if slots is None else slots
        self.promised = self.passed_on = START  # window ids: what is promised to the table, and what it has promised
        self.entries = Entries(self.slots, self.words.width, self.ops, self.grain, self.flush)
        self._changed = False
        self._stored: set[str] = set()

    # -- rows ------------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        values = batch[PROGRESS].to_numpy()
        if self.window.slide > self.window.range:  # rows in the gaps are in no window
            first, last = self.window.wids_array(values)
            batch, values = batch.filter(pl.Series(first < last)), values[first < last]
        if not batch.height:
            return []
        self._changed = True
        self.words.learn(batch.schema)
        panes = (values - self.window.origin) // self.pane
        self._check_order(panes)
        rows = self._rows(panes, batch.with_columns(self.each))
        left = self._partials(self.entries.put(rows, self._age(self.passed_on)))
        if self.words.many() > max(FEW, 2 * self.slots):
            self.words.prune(self.entries.cells[self.entries.occupied(), 1:])
        return [*left, *self._news()]

    def _check_order(self, panes: Ints) -> None:
        if self.flush.ordered and ((panes[1:] < panes[:-1]).any() or panes[0] < self.entries.now):
            raise ResultError("a table that keeps the order got a row of an earlier pane: it needs rows in order")

    def _rows(self, panes: Ints, frame: Batch) -> Ints:
        """The words of some partials."""
        first = 1 + self.words.width
        rows = np.empty((len(panes), first + len(self.columns)), np.int64)
        rows[:, 0] = panes
        self.words.encode(frame, rows[:, 1:first])
        for i, column in enumerate(self.columns):
            rows[:, first + i] = _word(frame[column])
        return rows

    def _partials(self, rows: Ints) -> list[Item]:
        """Partials as Panes emits them, from words."""
        return [self._frame(rows)] if len(rows) else []

    def _frame(self, rows: Ints) -> Batch:
        first = 1 + self.words.width
        columns = [_number(c, rows[:, first + i], t) for i, (c, t) in enumerate(self.columns.items())]
        return pl.DataFrame([pl.Series(PANE, rows[:, 0].copy()), *self.words.decode(rows[:, 1:first]), *columns])

    # -- promises --------------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        closed = on_window_ids(self.window, promise).value
        if promise.group is not None or closed <= self.promised:
            return []
        self._changed = True
        self.promised = closed
        left = self.entries.all() if closed == END else self.entries.turn(self._age(closed))
        return [*self._partials(left), *self._news()]

    def _news(self) -> list[Item]:
        """The promise so far, as far as it holds with what is still in the table."""
        if self.passed_on == self.promised:
            return []
        oldest = self.entries.oldest()
        true = self.promised if oldest is None else min(self.promised, oldest * self.grain // self.step)
        if true <= self.passed_on:
            return []
        self.passed_on = true
        return [Punctuation(true)]

    def _age(self, wid: int) -> int:
        return clipped(clipped(wid) * self.step) // self.grain

    def on_flush(self) -> list[Item]:
        if not self.drains or not self.entries.resident:
            return []
        self._changed = True
        return [*self._partials(self.entries.all()), *self._news()]

    def waits_for(self) -> list[Wait]:
        """The promise that makes the oldest entries leave."""
        oldest, now = self.entries.oldest(), self.entries.now
        if oldest is None:
            return []
        last = oldest + self.entries.late
        if self.flush.ordered and oldest < now:  # any new pane drives them out
            last = now
        elif self.entries.late < 0:
            last = END
        promise = END if last == END else self.window.end(last * self.grain // self.step)
        since = self.promised if self.promised in (START, END) else self.window.end(self.promised - 1)
        return [Wait(0, promise, since, "partials", self.entries.resident, self.state_bytes())]

    # -- state -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        entries, kernel = self.entries, self.entries.kernel
        marks = {"promised": self.promised, "passed_on": self.passed_on, "slots": self.slots, "now": entries.now}
        marks |= {"place": int(entries.marks[kernel.PLACE]), "since": int(entries.marks[kernel.SINCE])}
        found = {MARKS: pl.DataFrame({k: [v] for k, v in marks.items()})}
        if entries.resident:
            slots = entries.occupied()
            found[TABLE] = self._frame(entries.cells[slots]).with_columns(pl.Series(SLOT, slots))
            found |= self.words.snapshot()
        return found

    def changes(self) -> Changes:
        """The whole table, if it changed: it has a fixed size."""
        if not self._changed:
            return {}
        current = self.snapshot()
        found: Changes = dict.fromkeys(self._stored - set(current))
        self._changed, self._stored = False, set(current)
        return {**current, **found}

    def restore(self, state: State) -> None:
        self.entries.clear()
        self.words = KeyWords(self.keys)
        self.promised = self.passed_on = START
        self._changed, self._stored = False, set(state)
        if MARKS not in state:
            return
        marks = state[MARKS].row(0, named=True)
        if marks["slots"] != self.slots:
            raise CheckpointError(
                f"this snapshot is of a table of {marks['slots']:,} entries, but this one has {self.slots:,}: "
                "use the same memory as before"
            )
        self.promised, self.passed_on = marks["promised"], marks["passed_on"]
        frame = state.get(TABLE, pl.DataFrame(schema={SLOT: pl.Int64, PANE: pl.Int64}))
        rows = self.entries.cells[:0]
        if frame.height:
            self.words.learn(frame.schema)
            self.words.restore(state)
            rows = self._rows(frame[PANE].to_numpy(), frame)
        self.entries.place(frame[SLOT].to_numpy(), rows, marks["now"], marks["place"], marks["since"])

    def state_bytes(self) -> int:
        return self.entries.state_bytes() + self.words.state_bytes()


# -- partials as words -------------------------------------------------------------------------------------------------
def _ops(part: Part) -> list[int] | None:
    """How the kernel merges the columns of a part; None if it cannot."""
    from windrow.operators.kernels import table_kernel as kernel

    if isinstance(part, Moments):
        return [kernel.MOMENTS] * 3
    if not isinstance(part, Fold) or part.single is None or part.dtype in (pl.Int128, pl.UInt128, pl.Boolean):
        return None
    real = part.dtype.is_float()
    found = {
        "sum": kernel.ADD_FLOAT if real else kernel.ADD,
        "min": kernel.LEAST_FLOAT if real else kernel.LEAST,
        "max": kernel.MOST_FLOAT if real else kernel.MOST,
    }
    return [found[part.how]]


def _each(part: Part) -> list[pl.Expr]:
    assert isinstance(part, (Fold, Moments))
    return part.each() or []


def _word(column: pl.Series) -> Ints:
    """The numbers of a state column as 64-bit integers in the same order; floats as their bits."""
    if column.dtype.is_float():
        return column.cast(pl.Float64).to_numpy().view(np.int64)
    if column.dtype == pl.UInt64:
        return column.to_numpy().view(np.int64) ^ SIGN
    return column.cast(pl.Int64).to_numpy()


def _number(name: str, words: Ints, dtype: pl.DataType) -> pl.Series:
    """The state column of some words."""
    words = np.ascontiguousarray(words)
    if dtype.is_float():
        return pl.Series(name, words.view(np.float64)).cast(dtype)
    if dtype == pl.UInt64:
        return pl.Series(name, (words ^ SIGN).view(np.uint64))
    return pl.Series(name, words).cast(dtype)
