"""LimitedJoin: a window join that may take only so many rows, or hold only so many (Kang et al., 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.operators.joins.shedding import Share, Shedder
from windrow.operators.joins.shortened import Shortened
from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.kernels.key_hash import hashes
from windrow.operators.operator import Item, Side, Wait
from windrow.operators.state.parts import part_of, together
from windrow.operators.state.runs import Runs
from windrow.progress import END, START, Punctuation
from windrow.spec.allocation import split
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.joining import SEED, Limits, stretch_length
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Side as PairSide
from windrow.windows.tuples import Bools, Ints

JOIN, PROMISES, STRETCHES = "join", "promises", "stretches"
SIDES: tuple[PairSide, PairSide] = (0, 1)
Two = tuple[int, int]


class LimitedJoin:
    """Rows wait until both sides have promised past the stretch of progress that they are in. Then all rows of the
    stretch are known, and so what is shed does not depend on the order of arrival, on batches, or on restarts.

    ``limits.max_rate``: of the rows of a stretch as many as the limit allows are joined, those with the smallest hashes
    of ``seed`` and row. ``limits.max_state``: after each stretch the windows of both sides hold no more rows than that,
    the newest ones. A row that comes still meets all of its own stretch. ``rows_of``: of each side the columns that
    make a row. ``unit``: the smallest units of progress in the one that the rate is about.

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
        windows = _held_for(join, 0), _held_for(join, 1)
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
        missed = near - sum(min(s.kept(h), s.whole) for s, h in zip(shares, held, strict=True))
        found = [x for side in SIDES if (rows := kept[side]) is not None for x in self.join.on_batch(side, rows)]
        self.window.rest()
        reports = [("shed", shed), ("near", near), ("missed", missed)]
        return [*found, *(Side(kind, count) for kind, count in reports if count)]  # type: ignore[arg-type]

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
    def _shorten(self, numbers: Ints, shares: Sequence[Share], kept: Sequence[Batch | None]) -> list[Two]:
        """Let the oldest rows go wherever there are too many; how many rows there were before each stretch."""
        if self.limits.max_state is None:
            return [share.held for share in shares]
        times = [self._times(side, kept[side]) for side in SIDES]
        oldest, before, held = self.window.oldest, list[Two](), list[Two]()
        for number, share in zip(numbers.tolist(), shares, strict=True):
            start, end = number * self.length, (number + 1) * self.length
            oldest = self._since(oldest, start)
            before.append(oldest)
            held.append(self._met(share, oldest, start, _between(times, oldest, start)))
            oldest = self._since(oldest, end)
            have = _between(times, oldest, end)
            most = split(self.limits.max_state, share.memory, have)
            oldest = self._newest(times, oldest, end, have, (int(most[0]), int(most[1])))
        starts = numbers * self.length
        self.window.move(starts, np.array(before, np.int64), oldest, int(starts[-1]) + self.length)
        return held

    def _met(self, share: Share, oldest: Two, start: int, there: Two) -> Two:
        """What a stretch finds in the windows, counted like what it would have found; exactly where rows had to go."""
        whole = self._since((START, START), start)
        a, b = (min(h, n) if o > w else h for h, n, o, w in zip(share.held, there, oldest, whole, strict=True))
        return a, b

    def _since(self, oldest: Two, promised: int) -> Two:
        """What is still in the windows when no more will come below a time."""
        first = [int(self.window.window.first_kept(side, promised)) for side in SIDES]
        return max(oldest[0], first[0]), max(oldest[1], first[1])

    def _newest(self, times: Sequence[Ints], oldest: Two, end: int, have: Two, most: Two) -> Two:
        """The least times such that each side keeps no more rows than it may; rows with equal times leave together."""
        found = list(oldest)
        for side in SIDES:
            if have[side] > most[side]:
                last = int(np.searchsorted(times[side], end)) - most[side] - 1  # the newest one that leaves
                found[side] = int(times[side][last]) + 1
        return found[0], found[1]

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


def _held_for(join: WindowJoin, side: PairSide) -> int:
    """How long a row of a side is held: until its last partner comes."""
    return max(0, int(join.window.partners(side, 0)[1]) + 1)


def _stretches(rows: Batch | None, length: int) -> Ints:
    return np.empty(0, np.int64) if rows is None else np.asarray(rows[PROGRESS].to_numpy() // length)


def _between(times: Sequence[Ints], first: Two, end: int) -> Two:
    """How many of the times of each side are from the first up to before the end."""
    a, b = (max(0, int(np.searchsorted(t, end) - np.searchsorted(t, f))) for t, f in zip(times, first, strict=True))
    return a, b
