"""ATR, aligned tuple routing: one stream is cut into segments, and the others follow it (Gu, Yu and Wang)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.operators.operator import Side
from windrow.operators.ring.alignment import Alignment, Segments, master_of, usual_length
from windrow.operators.ring.diffusion import Diffusion, beginning, seen_frame
from windrow.operators.ring.head import FLIGHT, train_size
from windrow.operators.ring.joining import PLACE, Joining
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Kind, Message, payloads
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.rounds import Part
from windrow.operators.ring.sliced_join import BUILD, SEEN, Found, Layout, Sent, probe_frame
from windrow.operators.ring.spread import Spread
from windrow.progress import START
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints

STREAM = "@s"  # of each row of a train


class AlignedJoin(Spread):
    """A whole join, over the segments of the master that are here and the rows of the others that can meet them.

    A row of another stream meets the master first: so all that is found has a row of the master, which only this node
    has, and nothing is tried, or found, at two nodes.
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
        self.alignment = Alignment(joining.ranges, 0, Segments())
        self.orders: list[tuple[int, ...]] = []

    def taken(self, message: Message) -> Iterator[Sent]:
        if message.kind == Kind.SETUP:
            self.alignment = Alignment.read(self.joining.ranges, message.values)
            self.orders = [tuple(order) for order in message.values["orders"]]
        elif message.kind == Kind.TRAIN:
            yield from self._train(message)
        else:
            raise InternalError(f"a node of an aligned join cannot take {message.kind.name}")

    def _train(self, message: Message) -> Iterator[Sent]:
        self.expire(message.values["seen"], message.values["time"])
        if not message.frames:
            return
        known, streams = message.frames[SEEN].frame, range(self.joining.streams)
        of, times = known[STREAM].to_numpy(), known[PROGRESS].to_numpy()
        own = {n: message.frames[f"{BUILD}{n}"].frame for n in streams if f"{BUILD}{n}" in message.frames}
        for stream, rows in own.items():
            self.insert(stream, rows)
        seen = [known[str(n)].to_numpy() for n in streams]
        low = [self.since(n, seen[n], times) for n in streams]
        high = [self.slices[n].places(seen[n]) for n in streams]
        for stream, rows in own.items():
            probes = probe_frame(rows, stream, np.flatnonzero(of == stream))
            yield from self._probed(message.train, self.orders[stream], frozenset([stream]), probes, low, high)
        yield self.ended(message.train)

    def _probed(
        self,
        train: int,
        order: Sequence[int],
        members: frozenset[int],
        rows: Batch,
        low: Sequence[Ints],
        high: Sequence[Ints],
    ) -> Iterator[Sent]:
        """All results of rows, stream by stream in their order."""
        target, *later = order
        at = rows[PLACE].to_numpy()
        for part in self.prober.beside(rows, members, target, self.slices[target], low[target][at], high[target][at]):
            if isinstance(part, Side):
                yield part
            elif later:
                yield from self._probed(train, later, members | {target}, part, low, high)
            else:
                yield Found(train, self.result(part))

    def report(self) -> dict[str, Any]:
        """``live``: rows that are not copies."""
        live = [self.alignment.at_home(self.node, self.nodes, state.times, state.numbers) for state in self.slices]
        return {**super().report(), "live": live}


class Aligning(Diffusion[AlignedJoin]):
    """Sends each train to the nodes that its rows are for. They do not wait for each other."""

    def __init__(self, node: AlignedJoin, tuning: Tuning, flight: int = FLIGHT) -> None:
        super().__init__(node, tuning, flight)
        self.alignment: Alignment | None = None
        self._furthest = START  # where segments have been promised to nodes
        self._trains: deque[tuple[int, int]] = deque()
        self._way: dict[int, tuple[int, int]] = {}  # of each train on its way: its rows, and nodes that have it
        self._next = 0
        self._holding: dict[int, int] = {}  # nodes, and the time of the last row that they have got in this round

    def prepared(self, layout: Layout) -> Iterator[Sent]:
        count = len(self.round)
        size = train_size(count, layout.nodes, self.flight)
        self._trains = deque((at, min(at + size, count)) for at in range(0, count, size))
        self._next, self._holding = 0, {}
        if count:
            self.alignment = self._aligned(layout.nodes)
        if self.alignment is None:  # no row has come yet
            return
        orders = [_first(self.alignment.master, order) for order in layout.orders]
        values = {**self.alignment.values(), "orders": orders}
        for node in reversed(range(self.node.nodes)):
            yield from self.sent(node, Message(Kind.SETUP, values=values))

    def _aligned(self, nodes: int) -> Alignment:
        """As before, but for what the number of nodes, and the length that is asked for, change."""
        ranges = self.node.joining.ranges
        length = self.tuning.wishes.segment or usual_length(ranges)
        before = self.alignment
        if before is None:
            before = Alignment(ranges, master_of(ranges, [frame.height for frame in self.round.frames]), Segments())
        first = self.round.part(0, 1)
        place = before.place(first.times, first.seen[:, before.master])
        needed = int(place[0]) - max(ranges.lengths)
        segments = before.segments.changed(length, nodes, max(self._furthest, int(place[0])) + 1, needed)
        return Alignment(ranges, before.master, segments)

    # -- trains ------------------------------------------------------------------------------------------------
    def left(self) -> bool:
        return bool(self._trains)

    def room(self) -> bool:
        first, last = self._trains[0]
        return not self._way or sum(rows for rows, _ in self._way.values()) + last - first <= self.flight

    def busy(self) -> bool:
        return bool(self._way)

    def fed(self) -> Iterator[Sent]:
        first, last = self._trains.popleft()
        part = self.round.part(first, last)
        goes = self._nodes(part)
        to = [int(node) for node in np.flatnonzero(goes.any(axis=0))]
        self._next += 1
        self._way[self._next] = last - first, len(to)
        values = beginning(part)
        for node in reversed(to):
            frames = _frames(part, goes[:, node])
            yield from self.sent(node, Message(Kind.TRAIN, self._next, frames=payloads(frames), values=values))
        yield from self._emptied(to, part)

    def _nodes(self, part: Part) -> Bools:
        """Which nodes each row goes to."""
        assert self.alignment is not None
        found = np.zeros((len(part.of), self.node.nodes), np.bool_)
        for stream in part.rows:
            mine = part.of == stream
            times, numbers = part.times[mine], part.seen[mine, stream]
            found[mine] = self.alignment.nodes(stream, times, numbers, self.node.nodes)
            reach = self.alignment.reach(stream, times, numbers)
            if reach is not None:
                self._furthest = max(self._furthest, int(reach[1][-1]))
        return found

    def _emptied(self, to: Sequence[int], part: Part) -> Iterator[Sent]:
        """Nodes that get nothing now, and only hold what is too old, are told so."""
        self._holding |= dict.fromkeys(to, int(part.times[-1]))
        now, longest = int(part.times[0]), max(self.node.joining.ranges.lengths)
        for node in [n for n, last in self._holding.items() if last + longest <= now]:
            del self._holding[node]
            yield from self.sent(node, Message(Kind.TRAIN, self._next, values=beginning(part)))

    def ended(self, message: Message) -> None:
        rows, nodes = self._way.pop(message.train)
        if nodes > 1:
            self._way[message.train] = rows, nodes - 1

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Any]:
        known = {**super().known(), "furthest": self._furthest}
        return known if self.alignment is None else {**known, "alignment": self.alignment.values()}

    def restore(self, known: Mapping[str, Any]) -> None:
        super().restore(known)
        self._furthest = int(known["furthest"])
        if "alignment" in known:
            self.alignment = Alignment.read(self.node.joining.ranges, known["alignment"])


def _first(master: int, order: Sequence[int]) -> list[int]:
    """The order with the master before all others."""
    return [*(n for n in order if n == master), *(n for n in order if n != master)]


def _frames(part: Part, goes: Bools) -> dict[str, Batch]:
    """Some rows of a train, for a node."""
    found = {}
    for stream, rows in part.rows.items():
        mine = goes[part.of == stream]
        if mine.any():
            found[f"{BUILD}{stream}"] = rows if mine.all() else rows.filter(pl.Series(mine))
    found[SEEN] = seen_frame(part).with_columns(pl.Series(STREAM, part.of)).filter(pl.Series(goes))
    return found
