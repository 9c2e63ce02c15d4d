"""A slice: the rows of one stream that one node holds, in the order of the stream."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.errors import InternalError
from windrow.operators.ring.messages import NEWEST, Payload
from windrow.progress import END
from windrow.spec.batches import Batch, Changes, State
from windrow.windows.tuples import Ints

NUMBER, TIME = "@n", "@t"  # the place of a row in its stream, and its progress value
MANY = 32  # pieces of a frame, from which on the last ones are put together


class Slice:
    """Rows are added at the young end and leave at the old one. Their numbers do not decrease, and are those that all
    nodes mean when they say which rows a probe meets.

    ``start`` is the first row that belongs to the node now; older ones may still be there for rows that probe them.

    >>> rows = Slice()
    >>> rows.append(pl.DataFrame({"@n": [3, 4, 5], "@t": [10, 10, 12]}))
    >>> rows.start = 4
    >>> rows.height, rows.live, [int(at) for at in rows.places(np.array([4, 5]))]
    (3, 2, [1, 2])
    """

    def __init__(self) -> None:
        self._frame: Batch | None = None
        self._taken: list[Payload] = []  # rows that nobody has looked at yet
        self.numbers: Ints = np.empty(0, np.int64)
        self.times: Ints = np.empty(0, np.int64)
        self.start = 0
        self.stop = 0  # the number of the youngest row that has been here, and one
        self._cut = 0  # rows that have left since the frame was made anew
        self._stored: list[tuple[int, int]] = []  # numbers of the first and the last row of each stored run
        self._names: set[str] = set()

    @property
    def height(self) -> int:
        """Rows that are here, whether they still belong to the node or not."""
        return len(self.numbers)

    @property
    def live(self) -> int:
        """Rows that belong to the node."""
        return self.height - int(np.searchsorted(self.numbers, self.start))

    @property
    def frame(self) -> Batch | None:
        """The rows; None if there are none."""
        if self._taken:
            rows = [payload.frame for payload in self._taken]
            self._taken.clear()
            frame = rows[0] if len(rows) == 1 else pl.concat(rows, rechunk=False)
            self._frame = frame if self._frame is None else self._frame.vstack(frame)
            if self._frame.n_chunks() > MANY:
                self._frame = _in_fewer(self._frame)
        return self._frame

    def append(self, rows: Batch) -> None:
        """Take rows that are younger than all that have been here."""
        if rows.height:
            self.take(Payload(rows), rows.get_column(NUMBER).to_numpy(), rows.get_column(TIME).to_numpy())

    def take(self, rows: Payload, numbers: Ints, times: Ints) -> None:
        """The same of rows that need not be read before somebody asks for them; their numbers and times are known."""
        first = int(numbers[0])
        if first < self.stop:
            raise InternalError(f"row {first} came to a slice that has had all rows before {self.stop}")
        if not self.height:
            self._frame, self.numbers, self.times = None, np.array(numbers), np.array(times)
        else:
            self.numbers, self.times = np.concatenate([self.numbers, numbers]), np.concatenate([self.times, times])
        self._taken.append(rows)
        if len(self._taken) > MANY:
            _ = self.frame  # as one
        self.stop = int(numbers[-1]) + 1

    def places(self, numbers: Ints) -> NDArray[np.int64]:
        """Where the rows with these numbers are, or would be."""
        return self.numbers.searchsorted(numbers)

    def younger(self, time: int) -> int:
        """The first row that is younger than a time; END if none is."""
        at = int(self.times.searchsorted(time, side="right"))
        return int(self.numbers[at]) if at < len(self.numbers) else END

    def between(self, first: int, last: int) -> Batch | None:
        """The rows with numbers in [first, last)."""
        low, high = (int(self.numbers.searchsorted(each)) for each in (first, last))
        frame = self.frame if high > low else None
        return None if frame is None else frame.slice(low, high - low)

    def emptied(self, start: int, stop: int) -> Slice:
        """The slice without rows, for those with numbers in [start, stop)."""
        other = Slice()
        other.start, other.stop = start, min(start, stop)
        other._names = self._names  # what is stored of it must be deleted
        return other

    def forget(self, before: int) -> None:
        """Let go of the rows before a number."""
        if not len(self.numbers) or self.numbers[0] >= before:
            return
        count = int(self.numbers.searchsorted(before))
        if (frame := self.frame) is not None:
            self.numbers, self.times = self.numbers[count:], self.times[count:]
            self._frame = frame.slice(count) if self.height else None
            self._cut += count

    def _renew(self) -> None:
        """A view keeps all that it was cut from, and so does a copy of views of blobs: between two rounds, when nobody
        may come for long, it must not.
        """
        if (frame := self.frame) is not None and self._cut > self.height:
            out = io.BytesIO()
            frame.write_ipc_stream(out, compat_level=NEWEST)
            out.seek(0)
            self._frame = pl.read_ipc_stream(out)
        self._cut = 0

    # -- state -------------------------------------------------------------------------------------------------
    def _runs(self) -> list[tuple[int, int]]:
        """The numbers of the rows in each run as it is to be stored: what is new is one more run, merged with those
        before it that are less than twice as large, so that a row is written O(log n) times.
        """
        self.forget(self.start)
        self._renew()
        if not self.height:
            return []
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        runs = [run for run in self._stored if run[1] >= first and run[1] <= last]
        begin = runs[-1][1] + 1 if runs else first
        if begin > last:
            return runs
        while runs and self._count(runs[-1][0], begin) < 2 * self._count(begin, last + 1):
            begin = runs.pop()[0]
        return [*runs, (max(begin, first), last)]

    def _count(self, first: int, last: int) -> int:
        low, high = self.places(np.array([first, last]))
        return int(high - low)

    def snapshot(self) -> State:
        self.forget(self.start)
        frame = self.frame
        return {} if frame is None else {str(int(self.numbers[0])): frame}

    def changes(self) -> Changes:
        runs = self._runs()
        named = {str(first): (first, last) for first, last in runs}
        old = set(self._stored)
        found: Changes = {
            name: self.between(first, last + 1) for name, (first, last) in named.items() if (first, last) not in old
        }
        found |= dict.fromkeys(self._names - named.keys())
        self._stored, self._names = runs, set(named)
        return found

    def restore(self, state: State, start: int, stop: int) -> None:
        """The stored runs; those before ``start`` had left."""
        self.__init__()  # type: ignore[misc]
        for name in sorted(state, key=int):
            rows = state[name]
            self.append(rows)
            self._stored.append((int(rows[NUMBER][0]), int(rows[NUMBER][-1])))
        self._names = set(state)
        self.start, self.stop = start, stop
        self.forget(start)

    def state_bytes(self) -> int:
        frame = self.frame
        return 0 if frame is None else int(frame.estimated_size())


def _in_fewer(frame: Batch) -> Batch:
    """The frame with its last pieces in one: with those before them that are less than twice as large, so that a row is
    copied O(log n) times.
    """
    sizes = frame[NUMBER].chunk_lengths()
    rows = sizes.pop()
    while sizes and sizes[-1] <= 2 * rows:
        rows += sizes.pop()
    last = frame.tail(rows).rechunk()
    return frame.head(-rows).vstack(last) if sizes else last
