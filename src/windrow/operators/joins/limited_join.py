"""LimitedJoin: a window join that may take only so many rows, or hold only so many (Kang et al., 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.operators.joins.shedding import Share, Shedder
from windrow.operators.joins.shortened import Shortened
from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.kernels.key_hash import hashes
from windrow.operators.kernels.newest import kept as newest
from windrow.operators.operator import Item, Side, Wait
from windrow.operators.state.parts import part_of, together
from windrow.operators.state.runs import Runs
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.joining import SEED, SIDES, Limits, held_for, stretch_length
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints

JOIN, PROMISES, STRETCHES = "join", "promises", "stretches"
Held = tuple[float | None, float | None]


class LimitedJoin:
    """Rows wait until both sides have promised past the stretch of progress that they are in. Then all rows of the
    stretch are known, and so what is shed does not depend on the order of arrival, on batches, or on restarts.

    ``limits.max_rate``: of the rows of a stretch as many as the limit allows are joined, those with the smallest hashes
    of ``seed`` and row. ``limits.max_state``: the windows of both sides together hold no more rows than that, the
    newest ones. Rows come in the order of time; one meets what is held when it comes, and the rows of its own time.
    ``rows_of``: of each side the columns that make a row. ``unit``: the smallest units of progress in the one that the
    rate is about.

    >>> from windrow.windows.pairing import Within
    >>> join = WindowJoin(["k"], Within(-9, 9), ({"a": pl.Int64()}, {"b": pl.Int64()}))
    >>> limited = LimitedJoin(join, Limits(max_rate=0.4), (["a"], ["b"]))
    >>> for port, name in enumerate("ab"):
    ...     assert limited.on_batch(port, pl.DataFrame({"k": [1, 1, 1], "@t": [5, 5, 5], name: [1, 2, 3]})) == []
    >>> found = [x for port in (0, 1) for x in limited.on_punctuation(port, Punctuation(10))]
    >>> sum(x.height for x in found if isinstance(x, pl.DataFrame)), [x.count for x in found if isinstance(x, Side)]
    (4, [4, 2, 9, 5])
    """

    def __init__(
        self, join: WindowJoin, limits: Limits, rows_of: tuple[Sequence[str], Sequence[str]], unit: int = 1
    ) -> None:
        self.join = join
        self.limits = limits
        self.rows_of = rows_of
        rate = None if limits.max_rate is None else limits.max_rate / unit
        windows = held_for(join.window)
        self.length = stretch_length(windows, rate)
        self.shedder = Shedder(Limits(rate, limits.max_state, limits.policy, limits.seed), windows, self.length)
        self.window = Shortened(join.window)
        join.window = self.window
        self.waiting = (Runs(), Runs())
        self.promised = [Punctuation(START), Punctuation(START)]
        self.joined = START  # all stretches before it
        self._saved = self._progress()

    # -- rows and promises -------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        rows, late = self.join.on_time(SIDES[port], batch, self.promised[port].value)
        self.waiting[port].push(rows)
        return late

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised[port].value:
            return []
        self.promised[port] = promise
        ready = min(each.value for each in self.promised)
        end = ready if ready in (START, END) else ready // self.length * self.length
        if end <= self.joined:
            return []
        self.joined = end
        found = self._join(end)
        for side in SIDES:
            found += self.join.on_punctuation(side, self.promised[side] if end == END else Punctuation(end))
        return found

    def _join(self, end: int) -> list[Item]:
        """All rows below a time, of which some are shed."""
        due = [waiting.take(end) for waiting in self.waiting]
        if all(rows is None for rows in due):
            return []
        stretches = [_stretches(rows, self.length) for rows in due]
        numbers = np.unique(np.concatenate(stretches))
        seen = np.stack(
            [np.searchsorted(each, numbers, "right") - np.searchsorted(each, numbers) for each in stretches]
        )
        shares = self.shedder.shares(numbers.tolist(), [(a, b) for a, b in seen.T.tolist()])
        kept: list[Batch | None] = []
        for side, rows in enumerate(due):
            most = np.array([share.rows[side] for share in shares])
            if rows is not None and (most < seen[side]).any():
                rows = rows.filter(pl.Series(self._picked(side, rows, np.searchsorted(numbers, stretches[side]), most)))
            kept.append(rows)
        held = self._shorten(numbers, shares, kept)
        shed = sum(rows.height for rows in due if rows is not None) - sum(r.height for r in kept if r is not None)
        near = sum(share.whole for share in shares)
        missed = near - sum(share.kept(rows) for share, rows in zip(shares, held, strict=True))
        items = [x for side in SIDES if (rows := kept[side]) is not None for x in self.join.on_batch(side, rows)]
        self.window.rest()
        reports = [("shed", shed), ("near", near), ("missed", missed)]
        return [*items, *(Side(kind, count) for kind, count in reports if count)]  # type: ignore[arg-type]

    def _picked(self, side: int, rows: Batch, places: Ints, most: Ints) -> Bools:
        """Of the rows of each stretch as many as it may have, those with the smallest hashes."""
        columns = [SEED, *self.join.keys, PROGRESS, *self.rows_of[side]]
        found = hashes(rows.with_columns(pl.lit(self.limits.seed).alias(SEED)), columns)
        order = np.lexsort((found, places))
        first = np.searchsorted(places, np.arange(len(most)))  # rows are in order
        picked = np.zeros(rows.height, np.bool_)
        picked[order] = np.arange(rows.height) - first[places] < most[places]
        return picked

    # -- memory ------------------------------------------------------------------------------------------------
    def _shorten(self, numbers: Ints, shares: Sequence[Share], kept: Sequence[Batch | None]) -> list[Held]:
        """Let the oldest rows go wherever there are too many; how many rows each stretch then meets, on average."""
        came = [rows[PROGRESS].to_numpy() for rows in kept if rows is not None and rows.height]
        if self.limits.max_state is None or not came:
            return [(None, None) for _ in shares]
        times = self._times(0, kept[0]), self._times(1, kept[1])
        moments = np.unique(np.concatenate(came))
        places = np.searchsorted(numbers, moments // self.length)
        memory = np.array([share.memory for share in shares])[places]
        first = np.stack([self.window.window.first_kept(side, moments) for side in SIDES], axis=1)
        oldest, held, gone = newest(times, moments, first, memory, self.limits.max_state, self.window.oldest)
        self.window.move(moments, oldest, gone, int(moments[-1]) + 1)
        return self._met(places, len(shares), oldest > first, held)

    def _met(self, places: Ints, count: int, gone: Bools, held: Ints) -> list[Held]:
        """Of each stretch the rows that are held of each side, on average, where some of its window had to go."""
        met = np.full((count, 2), np.nan)
        for side in SIDES:
            rows = np.bincount(places, weights=held[:, side], minlength=count)
            with np.errstate(invalid="ignore"):
                average = rows / np.bincount(places, minlength=count)
            some = np.bincount(places, weights=gone[:, side], minlength=count) > 0
            met[some, side] = average[some]
        return [tuple(None if np.isnan(n) else float(n) for n in row) for row in met]  # type: ignore[misc]

    def _times(self, side: int, rows: Batch | None) -> Ints:
        """Of the rows that are held, and of those that come."""
        held = self.join.sides[side].rows
        parts = [run.times[run.here(held.limit)] for run in held.runs.values()]
        parts += [] if rows is None else [rows[PROGRESS].to_numpy()]
        return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    # -- the rest of the interface -----------------------------------------------------------------------------
    def on_flush(self) -> list[Item]:
        return self.join.on_flush()

    def waits_for(self) -> list[Wait]:
        """Of each side that has not promised past the first stretch that waits, or past one that lets a row leave."""
        found: dict[int, Wait] = {}
        first = min((t for waiting in self.waiting if (t := waiting.first()) is not None), default=None)
        needs: list[tuple[int, int]] = [] if first is None else [(0, first), (1, first)]
        needs += [(wait.port, wait.promise - 1) for wait in self.join.waits_for()]
        rows = sum(waiting.height for waiting in self.waiting) + sum(kept.rows.count for kept in self.join.sides)
        for port, value in sorted(needs, reverse=True):  # so that the smallest is the last
            promise = (value // self.length + 1) * self.length
            if (since := self.promised[port].value) < promise:
                found[port] = Wait(port, promise, since, "rows", rows, self.state_bytes())
        return [found[port] for port in sorted(found)]

    def _progress(self) -> list[tuple[int, int | None, int]]:
        both = zip(self.promised, self.window.oldest, strict=True)
        return [(promise.value, promise.reached, oldest) for promise, oldest in both]

    def _frame(self) -> Batch:
        schema = {"promised": pl.Int64, "reached": pl.Int64, "oldest": pl.Int64, "joined": pl.Int64}
        return pl.DataFrame([(*row, self.joined) for row in self._progress()], schema=schema, orient="row")

    def snapshot(self) -> State:
        waiting = {str(side): runs.snapshot() for side, runs in enumerate(self.waiting)}
        own = {PROMISES: self._frame(), STRETCHES: self.shedder.snapshot()}
        return {**own, **together({JOIN: self.join.snapshot(), **waiting})}

    def changes(self) -> Changes:
        waiting = {str(side): runs.changes() for side, runs in enumerate(self.waiting)}
        found: Changes = together({JOIN: self.join.changes(), **waiting})
        if (now := self._progress()) != self._saved:
            found |= {PROMISES: self._frame(), STRETCHES: self.shedder.snapshot()}
            self._saved = now
        return found

    def restore(self, state: State) -> None:
        saved = state[PROMISES].rows() if PROMISES in state else [(START, None, START, START)] * 2
        self.promised = [Punctuation(value, reached=reached) for value, reached, _, _ in saved]
        self.window.oldest = saved[0][2], saved[1][2]
        self.window.rest()
        self.joined = saved[0][3]
        self.shedder.restore(state.get(STRETCHES))
        self.join.restore(part_of(state, JOIN))
        for side, runs in enumerate(self.waiting):
            runs.restore(part_of(state, str(side)))
            runs.free(self.joined)  # a stored run can still have rows that had left by then
        self._saved = self._progress()

    def state_bytes(self) -> int:
        return self.join.state_bytes() + sum(runs.state_bytes() for runs in self.waiting)


def _stretches(rows: Batch | None, length: int) -> Ints:
    return np.empty(0, np.int64) if rows is None else np.asarray(rows[PROGRESS].to_numpy() // length)
