"""CTR, coordinated tuple routing: segments have copies, and each new one a route along them (Gu, Yu and Wang)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.operators.operator import Side
from windrow.operators.ring.diffusion import Diffusion, beginning, seen_frame
from windrow.operators.ring.head import FLIGHT, train_size
from windrow.operators.ring.joining import PLACE, Joining, read_tag, tag
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Kind, Message, Payload, payloads
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.rounds import Part
from windrow.operators.ring.routing import FIRST, HOP, LAST, NODE, Routing
from windrow.operators.ring.sliced_join import BUILD, PROBE, SEEN, Found, Layout, Sent, probe_frame
from windrow.operators.ring.spread import Spread
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Ints

WAY = "way"  # the frame with the route
ORDER = "order"


class CoordinatedJoin(Spread):
    """Holds copies of some segments. Rows that come to it with their route probe those that the route gives to it, and
    what they find goes on to the nodes of the next hop. A node ends a hop when all nodes of the one before have.
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
        self._ends: dict[tuple[int, int], int] = {}  # of a train and a level, that have come
        self._early: list[Message] = []  # came before rows that it is to meet

    def taken(self, message: Message) -> Iterator[Sent]:
        if message.kind == Kind.TRAIN:
            self._stored(message)
            early, self._early = self._early, []
            for each in early:
                yield from self._partials(each)
        elif message.kind == Kind.PARTIALS:
            yield from self._partials(message)
        else:
            raise InternalError(f"a node of a coordinated join cannot take {message.kind.name}")

    def _stored(self, message: Message) -> None:
        self.expire(message.values["seen"], message.values["time"])
        for name, payload in message.frames.items():
            self.insert(int(name.removeprefix(BUILD)), payload.frame)

    # -- hops --------------------------------------------------------------------------------------------------
    def _partials(self, message: Message) -> Iterator[Sent]:
        """One hop of rows, or the end of those from one node."""
        route, hop = message.frames[WAY].frame, message.level
        target = int(message.values[ORDER][hop])
        own = (route[HOP].to_numpy() == hop) & (route[NODE].to_numpy() == self.node)
        runs = [*zip(route[FIRST].to_numpy()[own].tolist(), route[LAST].to_numpy()[own].tolist(), strict=True)]
        if self.slices[target].stop < max(last for _, last in runs):
            self._early.append(message)
            return
        for name, payload in message.frames.items():
            if name not in (WAY, SEEN) and payload.frame.height:
                yield from self._probed(message, name, payload.frame, target, runs)
        if message.end:
            yield from self._ended_hop(message, route)

    def _probed(
        self, message: Message, name: str, rows: Batch, target: int, runs: list[tuple[int, int]]
    ) -> Iterator[Sent]:
        if name.startswith(PROBE):
            origin = int(name.removeprefix(PROBE))
            members = frozenset([origin])
        else:
            origin, members = read_tag(name)
        rows, low, high = self._meets(rows, message.frames[SEEN].frame, target, runs)
        whole = len(members) + 1 == self.joining.streams
        to = self._next(message.frames[WAY].frame, message.level)
        for part in self.prober.beside(rows, members, target, self.slices[target], low, high):
            if isinstance(part, Side):
                yield part
            elif whole:
                yield Found(message.train, self.result(part))
            else:
                frames = {tag(origin, [*members, target]): Payload(part)}
                yield from self._passed(message, to, frames, end=False)

    def _meets(self, rows: Batch, seen: Batch, target: int, runs: list[tuple[int, int]]) -> tuple[Batch, Ints, Ints]:
        """Rows, one time for each run of the state that they meet here, and where they do."""
        state = self.slices[target]
        place, before = rows[PLACE].to_numpy(), seen[str(target)].to_numpy()
        low = self.since(target, before, seen[PROGRESS].to_numpy())[place]
        high = state.places(before)[place]
        numbers = np.array(runs)
        edges = state.places(numbers)
        if (np.diff(edges) != np.diff(np.maximum(numbers, state.start))).any():
            raise InternalError(f"node {self.node} does not hold the rows of stream {target} that its route names")
        lows = np.maximum(low[:, np.newaxis], edges[:, 0])
        highs = np.minimum(high[:, np.newaxis], edges[:, 1])
        if len(runs) == 1:
            return rows, lows[:, 0], highs[:, 0]
        mine, run = np.nonzero(highs > lows)
        return rows[mine], lows[mine, run], highs[mine, run]

    def _ended_hop(self, message: Message, route: Batch) -> Iterator[Sent]:
        """What the last node of a hop has sent is here: this one has nothing more to send, either."""
        key = message.train, message.level
        self._ends[key] = self._ends.get(key, 0) + 1
        if self._ends[key] < max(1, len(_nodes(route, message.level - 1))):
            return
        del self._ends[key]
        if to := self._next(route, message.level):
            yield from self._passed(message, to, {}, end=True)
        else:
            yield self.ended(message.train)

    def _next(self, route: Batch, hop: int) -> list[int]:
        """The nodes of the next hop, this one last: what goes to others goes first."""
        return sorted(_nodes(route, hop + 1), key=lambda node: (node == self.node, node))

    def _passed(self, message: Message, to: Sequence[int], frames: Mapping[str, Payload], end: bool) -> Iterator[Sent]:
        """On to the next hop, with all that is known of the route."""
        known = {name: message.frames[name] for name in ((WAY, SEEN) if frames else (WAY,))}
        for node in to:
            each = replace(
                message, sender=self.node, level=message.level + 1, end=end, frames={**known, **frames}, to=node
            )
            if node == self.node:
                yield from self._partials(each)
            else:
                yield each


class Coordinating(Diffusion[CoordinatedJoin]):
    """Stores the rows of a stretch of time, each stream's as a segment, and then sends these one after another on their
    routes: the next one goes when the last hop of the one before has ended.
    """

    def __init__(self, node: CoordinatedJoin, tuning: Tuning, flight: int = FLIGHT) -> None:
        super().__init__(node, tuning, flight)
        self.routing = Routing(node.joining.ranges, node.nodes)
        self._layout: Layout | None = None
        self._stretches: deque[tuple[int, int]] = deque()
        self._part: Part | None = None
        self._streams: deque[int] = deque()  # whose segments of this stretch are still to go
        self._awaited = 0  # nodes of the last hop
        self._next = 0

    def prepared(self, layout: Layout) -> Iterator[Sent]:
        self._layout, self._next = layout, 0
        self._stretches = deque(self._cut(layout.nodes))
        if self._stretches:
            self.routing.rest()
        return iter(())

    def _cut(self, nodes: int) -> Iterator[tuple[int, int]]:
        """Stretches of the length that is asked for; if none is, of as many rows as a train of the ring."""
        count, length = len(self.round), self.tuning.wishes.segment
        size, edges = train_size(count, nodes, self.flight), [0, count]
        if length is not None:
            size = self.flight
            edges = [0, *(np.flatnonzero(np.diff(self.round.times // length)) + 1).tolist(), count]
        for low, high in pairwise(edges):
            yield from ((at, min(at + size, high)) for at in range(low, high, size))

    # -- segments ----------------------------------------------------------------------------------------------
    def left(self) -> bool:
        return bool(self._stretches or self._streams)

    def room(self) -> bool:
        return not self._awaited

    def busy(self) -> bool:
        return bool(self._awaited)

    def fed(self) -> Iterator[Sent]:
        """The next segment on its route, after all rows that it can meet are stored."""
        assert self._layout is not None
        if not self._streams:
            yield from self._store(*self._stretches.popleft(), self._layout.nodes)
        assert self._part is not None
        stream = self._streams.popleft()
        order = self._layout.orders[stream]
        route = self.routing.route(self._part, stream, order)
        first = _nodes(route, 0)
        if not first:
            return
        self._awaited = len(_nodes(route, int(route[HOP].max())))  # type: ignore[arg-type]
        mine = self._part.of == stream
        rows = probe_frame(self._part.rows[stream], stream, np.arange(int(mine.sum())))
        frames = {f"{PROBE}{stream}": rows, SEEN: seen_frame(self._part).filter(pl.Series(mine)), WAY: route}
        message = Message(Kind.PARTIALS, self._next, end=True, frames=payloads(frames), values={ORDER: list(order)})
        for node in first:
            yield from self.sent(node, message)

    def _store(self, first: int, last: int, nodes: int) -> Iterator[Sent]:
        part = self._part = self.round.part(first, last)
        self._streams = deque(part.rows)
        self._next += 1
        values = beginning(part)
        self.routing.expire(**values)
        stored = self.routing.store(part, min(self.tuning.wishes.copies, nodes), nodes)
        builds = payloads({f"{BUILD}{stream}": rows for stream, rows in part.rows.items()})
        for node, streams in stored.items():
            frames = {name: builds[name] for name in (f"{BUILD}{stream}" for stream in streams)}
            yield from self.sent(node, Message(Kind.TRAIN, self._next, frames=frames, values=values))

    def ended(self, message: Message) -> None:
        self._awaited -= 1

    def finished(self) -> Sequence[Mapping[str, Any]]:
        if reached := self.reached():
            self.routing.expire(**reached)
        live = [self.routing.live(), *([0] * len(self.counts) for _ in self.reports[1:])]
        return [{**report, "live": rows} for report, rows in zip(self.reports, live, strict=True)]

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Any]:
        return {**super().known(), "routing": self.routing.saved()}

    def restore(self, known: Mapping[str, Any]) -> None:
        super().restore(known)
        self.routing.restore(known["routing"])


def _nodes(route: Batch, hop: int) -> list[int]:
    """The nodes of a hop."""
    return sorted(set(route[NODE].to_numpy()[route[HOP].to_numpy() == hop].tolist()))
