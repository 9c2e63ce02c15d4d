"""SlicedJoin: one node of the ring, a join over the slices of all streams that it holds (Wang, Def. 1, Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.operators.operator import Side
from windrow.operators.ring.holder import Holder
from windrow.operators.ring.joining import PLACE, Joining, number_of, read_tag, tag, time_of
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.picking import renamed
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.slices import NUMBER, TIME, Slice
from windrow.operators.ring.trains import (
    BUILD,
    EDGES,
    FEW,
    HEAD,
    MOVED,
    ORDER,
    PROBE,
    SEEN,
    Found,
    Gone,
    Layout,
    Marks,
    Sent,
)
from windrow.progress import END
from windrow.spec.batches import Batch, State
from windrow.windows.tuples import Ints

__all__ = ["BUILD", "EDGES", "HEAD", "MOVED", "ORDER", "PROBE", "SEEN", "Found", "Layout", "Sent", "SlicedJoin"]


class SlicedJoin(Holder):
    """A node holds abutting slices of the state: rows enter at the head as the copies that build, and move on towards
    the tail when rows that probe make them too old for their node. ``on_message`` gives what goes on to the next node,
    in order, as soon as it is known: a row is passed on before it probes, so that nodes work side by side.

    Rows that follow each other in the order of all streams travel together, as a train. Each has marks of its own, so
    that it meets exactly the state as of its time, whatever has come to the node since: that is PSP-I, Figure 5. Rows
    that a later train has made too old stay until the END of all trains that can meet them.
    """

    def __init__(
        self,
        joining: Joining,
        node: int,
        nodes: int,
        clock: Callable[[], float] | None = None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(joining, node, nodes, clock, watch)
        self.layout = Layout(1, *2 * (tuple((None,) for _ in joining.columns),), ())
        self.active: dict[int, Marks] = {}
        self.finished: list[int] = []  # at the head: trains whose last END has come back
        self._ready: dict[int, Gone] = {}  # by stream, rows that are likely to leave next

    # -- messages ----------------------------------------------------------------------------------------------
    def on_message(self, message: Message) -> Iterator[Sent]:
        """What goes to the next node, and results."""
        match message.kind:
            case Kind.SETUP:
                self.layout = Layout.read(message.values)
                sent: Iterator[Sent] = iter(() if self.last else (message,))
            case Kind.TRAIN:
                sent = self._train(message)
            case Kind.PARTIALS:
                sent = self._partials(message)
            case Kind.MOVE:
                sent = iter((self._moved(message),))
            case Kind.DONE:
                reports = [*message.values.get("nodes", ()), self.report()]
                sent = iter((replace(message, values={**message.values, "nodes": reports}),))
            case _:
                raise InternalError(f"a node of the ring cannot take {message.kind.name}")
        for each in sent:
            yield each  # nobody waits while it is counted
            if isinstance(each, Message):
                self.work.sent += 1
                self.work.bytes += each.size() if each.kind != Kind.DONE else 0

    @property
    def last(self) -> bool:
        """Whether the next node is the head."""
        return self.node == self.nodes - 1

    # -- input rows --------------------------------------------------------------------------------------------
    def _train(self, message: Message) -> Iterator[Sent]:
        """Steps 1 and 2 of Figure 3, for rows that follow each other."""
        frames, streams = message.frames, range(self.joining.streams)
        for stream in streams:
            if (build := frames.get(name := f"{BUILD}{stream}")) is not None:
                self._take(stream, build, message.ints.get(name))
        high, seen, order = (message.ints[name] for name in (EDGES, SEEN, ORDER))
        low, gone = np.empty_like(high), list[Gone]()
        for stream in streams:
            low[:, stream], needed = self._limits(stream, high[:, stream], seen[:, stream], order[:, 0])
            if (left := self._purged(stream, int(low[-1, stream]), needed)) is not None:
                gone.append(left)
        self.active[message.train] = Marks(low, high, order[:, 1])
        probes = {name: payload for name, payload in frames.items() if name.startswith(PROBE)}
        if not self.last:
            builds = {f"{BUILD}{each.stream}": each for each in gone}
            ints = {EDGES: low, SEEN: seen, ORDER: order, **{name: each.known for name, each in builds.items()}}
            sent = {**probes, **{name: each.rows for name, each in builds.items()}}
            yield Message(Kind.TRAIN, message.train, frames=sent, ints=ints)
        self.most = max(self.most, sum(state.height for state in self.slices))
        self._forget()
        parts = self._probed(message.train, 0, probes)
        yield from self._closed(message.train, 1, parts) if self.node == HEAD else parts
        if self.ahead:
            self._prepare(gone)

    def _take(self, stream: int, rows: Payload, known: Ints | None) -> None:
        """Rows that enter the slice. ``known``: their numbers and times, so that they need not be read at once."""
        before = self.slices[stream].height
        if known is None:
            self.slices[stream].append(rows.frame)
        elif known.shape[1]:
            self.slices[stream].take(rows, *known)
        self.work.inserted += self.slices[stream].height - before

    def _limits(self, stream: int, high: Ints, seen: Ints, times: Ints) -> tuple[Ints | int, int]:
        """Where the slice ends for each row of a train; and the first row that any of them can still meet anywhere."""
        if len(high) == 1:
            return self._limit(stream, int(high[0]), int(seen[0]), int(times[0]))
        state = self.slices[stream]
        length = self.joining.ranges.lengths[stream]
        window = seen - length if self.joining.ranges.counts(stream) else self._younger(state, times, length)
        low = window
        if (most := self._bound(self.layout.counts, stream)) is not None:
            low = np.maximum(low, high - most)
        if (age := self._bound(self.layout.ages, stream)) is not None:
            low = np.maximum(low, self._younger(state, times, age))
        low = np.maximum.accumulate(np.minimum(np.maximum(low, state.start), high))
        return low, int(window[0])

    def _limit(self, stream: int, high: int, seen: int, time: int) -> tuple[int, int]:
        """The same of a single row, in a third of the time."""
        state, length = self.slices[stream], self.joining.ranges.lengths[stream]
        window = seen - length if self.joining.ranges.counts(stream) else state.younger(time - length)
        low = max(window, state.start)
        if (most := self._bound(self.layout.counts, stream)) is not None:
            low = max(low, high - most)
        if (age := self._bound(self.layout.ages, stream)) is not None:
            low = max(low, state.younger(time - age))
        return min(low, high), window

    def _bound(self, bounds: Sequence[Sequence[int | None]], stream: int) -> int | None:
        """A bound of the slice; a node that is not in use has none: what it still holds leaves with its window."""
        own = bounds[stream]
        return own[self.node] if self.node < len(own) else None

    def _younger(self, state: Slice, times: Ints, age: int) -> Ints:
        """The first row that is younger than ``age`` when each of the times has come."""
        at = state.times.searchsorted(times - age, side="right")
        if not state.height:
            return np.full(len(at), END)
        if at[-1] < state.height:  # times do not decrease
            return state.numbers[at]
        return np.where(at < state.height, state.numbers.take(at, mode="clip"), END)

    def _purged(self, stream: int, low: int, needed: int) -> Gone | None:
        """The rows that belong to the next node from now on, without those that no row to come can meet."""
        state = self.slices[stream]
        begin, state.start = state.start, max(state.start, low)
        if self.last:
            return None
        first, last = (int(state.numbers.searchsorted(each)) for each in (max(begin, needed), state.start))
        if first >= last:
            return None
        self.work.purged += last - first
        ready = self._ready.pop(stream, None)
        if ready is not None and ready.known.shape[1] == last - first and ready.known[0, 0] == state.numbers[first]:
            return ready
        return self._gone(stream, first, last)

    def _gone(self, stream: int, first: int, last: int) -> Gone:
        """The rows of a slice at some places."""
        state = self.slices[stream]
        assert state.frame is not None
        known = np.array([state.numbers[first:last], state.times[first:last]])
        return Gone(stream, Payload(state.frame.slice(first, last - first)), known)

    def _prepare(self, gone: Sequence[Gone]) -> None:
        """Write a few rows that are likely to leave with the next train: as many of a stream as have left with this
        one. The next node waits for no train as long as for this.
        """
        for stream, count in ((each.stream, each.known.shape[1]) for each in gone):
            first = int(self.slices[stream].numbers.searchsorted(self.slices[stream].start))
            if count <= FEW and first + count <= self.slices[stream].height:
                self._ready[stream] = self._gone(stream, first, first + count)
                self._ready[stream].rows.written()

    def _forget(self) -> None:
        """Delete what no train on its way can meet."""
        first = next(iter(self.active.values()), None)
        for stream, state in enumerate(self.slices):
            state.forget(state.start if first is None else min(state.start, int(first.low[0, stream])))

    # -- probes ------------------------------------------------------------------------------------------------
    def _partials(self, message: Message) -> Iterator[Sent]:
        """Step 3 of Figure 3."""
        home = message.sender == self.node
        if not home:
            yield message
        if message.level == self.joining.streams - 1:  # no rows: the last END, behind all that the train has to probe
            del self.active[message.train]
            self._forget()
            if home:
                self.finished.append(message.train)
            return
        parts = self._probed(message.train, message.level, message.frames)
        yield from self._closed(message.train, message.level + 1, parts) if home and message.end else parts

    def _closed(self, train: int, level: int, parts: Iterator[Sent]) -> Iterator[Sent]:
        """The head marks the last of what it found as END; if that is nothing, or all results, the END has no rows."""
        held: Message | None = None
        for part in parts:
            if isinstance(part, Message):
                if held is not None:
                    yield held
                held = part
            else:
                yield part
        yield Message(Kind.PARTIALS, train, self.node, level, end=True) if held is None else replace(held, end=True)

    def _probed(self, train: int, level: int, frames: Mapping[str, Payload]) -> Iterator[Sent]:
        """What rows of a train, alone or with rows of other streams, find in the next slice of their order."""
        marks, whole = self.active[train], level + 1 == self.joining.streams - 1
        for name, payload in frames.items():
            if level:
                origin, members = read_tag(name)
                place = payload.frame[PLACE].to_numpy()
            else:
                origin = int(name.removeprefix(PROBE))
                members, place = frozenset([origin]), np.flatnonzero(marks.of == origin)
            target = next(n for n in self.layout.orders[origin] if n not in members)
            state = self.slices[target]
            numbers = marks.low[place, target], marks.high[place, target]
            low, high = (state.places(each) for each in numbers)
            if not np.array_equal(high - low, numbers[1] - numbers[0]):
                raise InternalError(
                    f"node {self.node} does not hold the rows of stream {target} that a probe is to meet"
                )
            if not (low < high).any():
                continue
            rows = payload.frame if level else probe_frame(payload.frame, origin, place)
            before = self.prober.pairs, self.prober.seconds
            for part in self.prober.beside(rows, members, target, state, low, high):
                if isinstance(part, Side):
                    yield part
                elif whole:
                    yield Found(train, self.result(part))
                else:
                    named = {tag(origin, [*members, target]): Payload(part)}
                    yield Message(Kind.PARTIALS, train, self.node, level + 1, frames=named)
            self.work.pairs += self.prober.pairs - before[0]
            self.work.seconds += self.prober.seconds - before[1]

    def restore(self, state: State, known: Mapping[str, Any]) -> None:
        super().restore(state, known)
        self._ready.clear()

    # -- state on the move -------------------------------------------------------------------------------------
    def _moved(self, message: Message) -> Message:
        """Aggressive relocation: take the rows between the cuts of this node, and send on those that are not."""
        frames: dict[str, Payload] = {}
        for stream, cuts in enumerate(message.values["cuts"]):  # by node the first row of its slice, from the head on
            before = self.slices[stream]
            first = int(cuts[min(self.node, len(cuts) - 1)])
            stop = before.stop if self.node == HEAD else int(cuts[min(self.node, len(cuts)) - 1])
            given = message.frames.get(f"{MOVED}{stream}")
            mine = [f for f in (before.frame, None if given is None else given.frame) if f is not None and f.height]
            after = self.slices[stream] = before.emptied(first, stop)
            if not mine:
                continue
            rows = pl.concat(mine).sort(NUMBER)
            own = pl.col(NUMBER).is_between(first, stop, closed="left")
            after.append(rows.filter(own))
            after.stop = stop
            if (rest := rows.filter(~own)).height:
                frames[f"{MOVED}{stream}"] = Payload(rest)
        return replace(message, frames=frames)


def probe_frame(rows: Batch, stream: int, places: Ints) -> Batch:
    """Input rows as rows that probe: with their places in the train."""
    columns = renamed(rows.get_columns(), {NUMBER: number_of(stream), TIME: time_of(stream)})
    return pl.DataFrame([*columns, pl.Series(PLACE, places, dtype=pl.Int64)])
