"""SlicedJoin: one node of the ring, a join over the slices of all streams that it holds (Wang, Def. 1, Figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.operators.operator import Side
from windrow.operators.ring.holder import Holder
from windrow.operators.ring.joining import PLACE, Joining, number_of, read_tag, tag, time_of
from windrow.operators.ring.messages import Kind, Message, Payload, payloads
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.slices import NUMBER, TIME, Slice
from windrow.progress import END
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Ints

HEAD = 0
EDGES, SEEN, BUILD, PROBE, MOVED = "edges", "seen", "build ", "probe ", "moved "


@dataclass(frozen=True)
class Found:
    """Results, and the train whose rows were the last of them."""

    train: int
    rows: Batch


Sent = Message | Found | Side


@dataclass(frozen=True)
class Layout:
    """How the state is spread. By stream and node: how many rows a slice may have (``counts``), how old they may be
    (``ages``); None where only the window ends it. ``orders``: by stream, how its rows probe the others.
    """

    nodes: int
    counts: tuple[tuple[int | None, ...], ...]
    ages: tuple[tuple[int | None, ...], ...]
    orders: tuple[tuple[int, ...], ...]

    def values(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "counts": self.counts, "ages": self.ages, "orders": self.orders}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Layout:
        """What ``values`` gives, after a way through JSON.

        >>> one = Layout(1, ((None,),), ((None,),), ((1, 0),))
        >>> Layout.read(one.values()) == one
        True
        """
        counts, ages, orders = (tuple(map(tuple, values[name])) for name in ("counts", "ages", "orders"))
        return cls(int(values["nodes"]), counts, ages, orders)


@dataclass(frozen=True)
class Marks:
    """The StateStart and StateEnd of the rows of a train: which rows of each slice they meet, by number."""

    low: Ints  # rows of the train x streams
    high: Ints


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
            if isinstance(each, Message):
                self.work.sent += 1
                self.work.bytes += each.size() if each.kind != Kind.DONE else 0
            yield each

    @property
    def last(self) -> bool:
        """Whether the next node is the head."""
        return self.node == self.nodes - 1

    # -- input rows --------------------------------------------------------------------------------------------
    def _train(self, message: Message) -> Iterator[Sent]:
        """Steps 1 and 2 of Figure 3, for rows that follow each other."""
        frames, streams = message.frames, range(self.joining.streams)
        for stream in streams:
            if (build := frames.get(f"{BUILD}{stream}")) is not None:
                self.slices[stream].append(build.frame)
                self.work.inserted += build.frame.height
        high = frames[EDGES].frame.to_numpy()
        times = frames[SEEN].frame[PROGRESS].to_numpy()
        seen = frames[SEEN].frame.select(pl.exclude(PROGRESS)).to_numpy()
        limits = [self._limits(stream, high[:, stream], seen[:, stream], times) for stream in streams]
        low = np.stack([low for low, _ in limits], axis=1)
        self.active[message.train] = Marks(low, high)
        self.most = max(self.most, sum(state.height for state in self.slices))
        gone = {f"{BUILD}{n}": rows for n in streams if (rows := self._purged(n, low[-1, n], limits[n][1])) is not None}
        if not self.last:
            probes = {name: payload for name, payload in frames.items() if not name.startswith(BUILD)}
            probes[EDGES] = Payload(pl.DataFrame(low, schema=[str(n) for n in streams], orient="row"))
            yield replace(message, frames={**probes, **payloads(gone)})
        self._forget()
        parts = self._probed(message.train, 0, {n: p for n, p in frames.items() if n.startswith(PROBE)})
        yield from self._closed(message.train, 1, parts) if self.node == HEAD else parts

    def _limits(self, stream: int, high: Ints, seen: Ints, times: Ints) -> tuple[Ints, int]:
        """Where the slice ends for each row of a train; and the first row that any of them can still meet anywhere."""
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

    def _bound(self, bounds: Sequence[Sequence[int | None]], stream: int) -> int | None:
        """A bound of the slice; a node that is not in use has none: what it still holds leaves with its window."""
        own = bounds[stream]
        return own[self.node] if self.node < len(own) else None

    def _younger(self, state: Slice, times: Ints, age: int) -> Ints:
        """The first row that is younger than ``age`` when each of the times has come."""
        at = np.searchsorted(state.times, times - age, side="right")
        return np.asarray(np.append(state.numbers, END)[at])

    def _purged(self, stream: int, low: int, needed: int) -> Batch | None:
        """The rows that belong to the next node from now on, without those that no row to come can meet."""
        state = self.slices[stream]
        begin, state.start = state.start, max(state.start, int(low))
        gone = None if self.last else state.between(max(begin, needed), state.start)
        self.work.purged += 0 if gone is None else gone.height
        return gone

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
        yield replace(held or Message(Kind.PARTIALS, train, self.node, level), end=True)

    def _probed(self, train: int, level: int, frames: Mapping[str, Payload]) -> Iterator[Sent]:
        """What rows of a train, alone or with rows of other streams, find in the next slice of their order."""
        marks, whole = self.active[train], level + 1 == self.joining.streams - 1
        for name, payload in frames.items():
            rows = payload.frame
            if name.startswith(PROBE):
                origin = int(name.removeprefix(PROBE))
                members = frozenset([origin])
            else:
                origin, members = read_tag(name)
            if not rows.height:
                continue
            target = next(n for n in self.layout.orders[origin] if n not in members)
            place, state = rows[PLACE].to_numpy(), self.slices[target]
            numbers = marks.low[place, target], marks.high[place, target]
            low, high = (state.places(each) for each in numbers)
            if not np.array_equal(high - low, numbers[1] - numbers[0]):
                raise InternalError(
                    f"node {self.node} does not hold the rows of stream {target} that a probe is to meet"
                )
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
    renamed = rows.rename({NUMBER: number_of(stream), TIME: time_of(stream)})
    return renamed.with_columns(pl.Series(PLACE, places, dtype=pl.Int32))
