"""Response times of joins in order, in virtual time: one server, given service times, operators that really run.

Times are microseconds. A row waits in the queue of its stream until the algorithm takes it: Filter-Order takes what
arrived first, Sync-Filter the earlier of the two heads, and only if there are two. To join it takes ``cost`` for each
row of the other stream that is in the window. The head of a queue is promised as soon as it is the head, so that both
see the same: Sync-Filter has to look at both heads, and Filter-Order may then let go what has waited for this one. A
row is complete when it has been joined and both streams have promised its time, as its results are then out, in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from windrow.operators import InOrderJoin, WindowJoin
from windrow.operators.operator import Item
from windrow.progress import START, Punctuation
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Side, Within

Mode = Literal["sync-filter", "filter-order", "adaptive"]
MODES: tuple[Mode, ...] = ("sync-filter", "filter-order", "adaptive")
MICROS = 1_000_000
WINDOW = 60 * MICROS
ALPHA = 0.3
KEYS = 100  # a row of the fast stream finds 0.6 partners at one row of the slow one a second
COLUMNS = ("slow", "fast")  # the numbers of the rows of a pair


class Row(NamedTuple):
    """A row arrives at ``at`` on a stream, 0 for the slow one, and was stamped with ``time``."""

    at: int
    port: Side
    time: int
    number: int
    key: int


@dataclass
class Played:
    """When each row was complete, by its number; what was held; and the pairs as they came out."""

    complete: dict[int, int] = field(default_factory=dict)
    compared: dict[int, int] = field(default_factory=dict)  # rows of the other stream that a row was compared with
    filtered: dict[int, bool] = field(default_factory=dict)  # whether Filter-Order took it
    pairs: list[tuple[int, int, int]] = field(default_factory=list)  # of numbers, and their later time
    out: list[int] = field(default_factory=list)  # when each pair came out
    hold_rows: int = 0
    hold_bytes: int = 0
    queue_rows: int = 0

    @property
    def ordered(self) -> bool:
        """Whether no pair came out before an earlier one."""
        return all(a[2] <= b[2] for a, b in pairwise(self.pairs))

    def before(self, time: int) -> list[tuple[int, int, int]]:
        """The pairs below a time, sorted."""
        return sorted(pair for pair in self.pairs if pair[2] < time)


class Server:
    """Takes rows one after another. Without an operator only times are kept, for one algorithm."""

    def __init__(
        self, mode: Mode, cost: int, operator: InOrderJoin | None = None, *, window: int = WINDOW, printed: bool = False
    ) -> None:
        self.mode, self.cost, self.operator, self.window = mode, cost, operator, window
        self.printed = printed  # as steps 2 to 6 are printed: the trigger moves when a row has been joined
        self.found = Played()
        self._queues: tuple[deque[Row], deque[Row]] = deque(), deque()
        self._joined: tuple[list[int], list[int]] = [], []  # times of the rows that were joined
        self._promised = [START, START]
        self._waiting: list[tuple[int, int]] = []  # rows that were joined, and wait for a promise

    def play(self, rows: Sequence[Row]) -> Played:
        """All rows, in the order of arrival."""
        coming, now = deque(rows), 0
        serving: Side | None = None
        end = 0
        while True:
            if serving is None and (serving := self._next()) is not None:
                end = now + self.cost * self._compared(self._queues[serving][0])
            if coming and (serving is None or coming[0].at <= end):
                now = max(now, coming[0].at)
                self._arrived(coming.popleft(), now)
            elif serving is not None:
                now = end
                self._done(serving, now)
                serving = None
            else:
                return self.found

    def _filtering(self) -> bool:
        return self.mode == "filter-order" if self.operator is None else self.operator.filtering

    def _next(self) -> Side | None:
        heads = [queue[0] for queue in self._queues if queue]
        if not heads:
            return None
        if self._filtering():
            return min(heads).port
        return min(heads, key=lambda row: row.time).port if len(heads) == 2 else None

    def _compared(self, row: Row) -> int:
        """How many rows of the other window it meets, and by which algorithm."""
        times = self._joined[1 - row.port]
        count = bisect_left(times, row.time + self.window) - bisect_right(times, row.time - self.window)
        self.found.compared[row.number], self.found.filtered[row.number] = count, self._filtering()
        return count

    def _arrived(self, row: Row, now: int) -> None:
        queue = self._queues[row.port]
        queue.append(row)
        self.found.queue_rows = max(self.found.queue_rows, sum(map(len, self._queues)))
        if len(queue) == 1 and not self.printed:
            self._promise(row.port, row.time, now)

    def _done(self, port: Side, now: int) -> None:
        queue = self._queues[port]
        row = queue.popleft()
        insort(self._joined[port], row.time)
        heappush(self._waiting, (row.time, row.number))
        if self.operator is not None:
            self._take(self.operator.on_batch(port, frame(row)), now)
        self._promise(port, row.time if self.printed or not queue else queue[0].time, now)

    def _promise(self, port: Side, time: int, now: int) -> None:
        self._promised[port] = time
        if self.operator is not None:
            self._take(self.operator.on_punctuation(port, Punctuation(time)), now)
        trigger = min(self._promised)
        while self._waiting and self._waiting[0][0] <= trigger:
            self.found.complete[heappop(self._waiting)[1]] = now

    def _take(self, items: Iterable[Item], now: int) -> None:
        assert self.operator is not None
        found = self.found
        for item in items:
            if isinstance(item, pl.DataFrame):
                found.pairs += item.select(*COLUMNS, PROGRESS).rows()
                found.out += [now] * item.height
        found.hold_rows = max(found.hold_rows, self.operator.hold_rows())
        found.hold_bytes = max(found.hold_bytes, self.operator.hold_bytes())


def frame(row: Row) -> pl.DataFrame:
    """As an operator takes it."""
    return pl.DataFrame({"k": [row.key], PROGRESS: [row.time], COLUMNS[row.port]: [row.number]})


def join(mode: Mode, cost: float = 0.0, window: int = WINDOW) -> InOrderJoin:
    """Windows are half open: rows exactly a window apart are no pair. In the paper they are one."""
    types: list[dict[str, pl.DataType]] = [{name: pl.Int64()} for name in COLUMNS]
    inner = WindowJoin(["k"], Within(1 - window, window - 1), (types[0], types[1]), on="later")
    return InOrderJoin(inner, mode, alpha=ALPHA, cost=cost)


def played(mode: Mode, rows: Sequence[Row], cost: int) -> Played:
    """With the operator, which knows what a comparison costs."""
    return Server(mode, cost, join(mode, float(cost))).play(rows)


def meant(rows: Iterable[Row], end: int, window: int = WINDOW) -> list[tuple[int, int, int]]:
    """The pairs below a time, by the definition."""
    frames = [pl.DataFrame(rows, schema=list(Row._fields), orient="row").filter(pl.col("port") == p) for p in (0, 1)]
    pairs = frames[0].join(frames[1], on="key").filter((pl.col("time") - pl.col("time_right")).abs() < window)
    later = pl.max_horizontal("time", "time_right").alias("later")
    return sorted(pairs.select("number", "number_right", later).filter(pl.col("later") < end).rows())


def sound(found: Played, rows: Sequence[Row], expected: Sequence[tuple[int, int, int]], end: int) -> bool:
    """Whether the pairs are those that are expected, in order, each out at the moment its later row is complete."""
    times = {row.number: row.time for row in rows}
    later = [max(pair[:2], key=lambda number: times[number]) for pair in found.pairs]
    when = all(found.complete.get(number) == at for number, at in zip(later, found.out, strict=True))
    return found.ordered and when and found.before(end) == list(expected)


# -- streams -----------------------------------------------------------------------------------------------------------
def arrivals(slow: float, fast: float, end: int, seed: int = 1) -> list[Row]:
    """Two streams with exponential times between rows, stamped on arrival. Each goes on until the first row of the slow
    one after the end, so that all that came before the end can be complete.
    """
    rng = np.random.default_rng(seed)
    first = _until(rng, slow, end)
    return merged(first, _until(rng, fast, first[-1]), seed)


def steady(slow: float, n: int, end: int) -> list[Row]:
    """The streams of Eqs. 2 to 5: n rows for each one of the slow stream, the first with it."""
    gap = round(MICROS / slow)
    first = list(range(gap, end + 2 * gap, gap))
    return merged(first, [at + 1 + k * gap // n for at in first for k in range(n)], seed=1)


def merged(slow: Sequence[int], fast: Sequence[int], seed: int) -> list[Row]:
    """Both streams in the order of arrival."""
    both = sorted([(at, port) for port, times in ((0, slow), (1, fast)) for at in times])
    keys = np.random.default_rng(seed).integers(0, KEYS, len(both)).tolist()
    return [Row(at, 1 if port else 0, at, i, key) for i, ((at, port), key) in enumerate(zip(both, keys, strict=True))]


def _until(rng: np.random.Generator, rate: float, end: int) -> list[int]:
    """Up to the first row after the end."""
    found: list[int] = []
    while not found or found[-1] <= end:
        found.append((found[-1] if found else 0) + max(1, round(rng.exponential(MICROS / rate))))
    return found


def response_ms(rows: Iterable[Row], found: Played, end: int, *, fast: bool = False, start: int = WINDOW) -> float:
    """The mean over the rows from ``start``, when the windows are full, to ``end``; of the fast stream, or of both."""
    meant = [row for row in rows if start <= row.at < end and (row.port or not fast)]
    return round(sum(found.complete[row.number] - row.at for row in meant) / len(meant) / 1000, 3)


def share_filtered(rows: Iterable[Row], found: Played, end: int) -> float:
    """Of these rows, how many Filter-Order has taken."""
    meant = [found.filtered[row.number] for row in rows if WINDOW <= row.at < end]
    return round(sum(meant) / len(meant), 4)
