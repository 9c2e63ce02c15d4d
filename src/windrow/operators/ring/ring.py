"""Ring: the join of several streams whose state is spread over nodes by time (Wang and Rundensteiner)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import polars as pl

from windrow.errors import CheckpointError, InternalError
from windrow.operators.operator import Item, Wait
from windrow.operators.ring.head import FLIGHT
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.largest import without_large
from windrow.operators.ring.layout import Tuning, Wishes
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.sliced_join import HEAD, Found, Sent
from windrow.operators.ring.way import RING, Node, Way
from windrow.operators.state.late import on_time_of_side
from windrow.operators.state.parts import part_of, together
from windrow.operators.state.tied import tied_order
from windrow.operators.state.waiting import Waiting
from windrow.progress import END, START, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS, TIE

PROMISES, NODE = "promises", "node"
PROMISED = {"of": pl.Int64, "promised": pl.Int64, "reached": pl.Int64}
RESULTS = -1  # where inputs have numbers


class Links(Protocol):
    """Connects a node with the others. Messages of one node arrive in the order in which it has sent them."""

    node: int
    nodes: int

    def send(self, to: int, message: Message) -> None:
        """To another node, or to itself; returns before it has arrived."""

    def receive(self, wait: bool) -> Message | None:
        """The next message for this node; None if there is none now and it is not to wait."""


class Ring:
    """Input i on port i. Rows wait until all inputs have promised past them; then their order is known whatever order
    they came in, and they go round.

    Without links all nodes are here, and a round is over before ``on_punctuation`` returns. A host that has connected
    the node to others runs it with ``on_flush``, at the end of a micro-batch: the first node has all rows, and every
    node has the promises and gives the results that it finds. ``way``: how the join is spread over the nodes.

    >>> from windrow.windows.multiway import Ranges
    >>> ring = Ring(Joining(Ranges((10, 5)), (("a",), ("b",))), Wishes(most=2, nodes=2))
    >>> ring.on_batch(0, pl.DataFrame({"@t": [10, 4], "a": ["x", "w"]}))
    []
    >>> ring.on_batch(1, pl.DataFrame({"@t": [15, 2], "b": ["y", "v"]}))
    []
    >>> ring.on_punctuation(0, Punctuation(20)), [i for i in ring.on_punctuation(1, Punctuation(20))][0].rows()
    ([], [('w', 'v', 4)])
    """

    def __init__(
        self,
        joining: Joining,
        wishes: Wishes,
        flight: int = FLIGHT,
        clock: Callable[[], float] | None = None,
        way: Way = RING,
    ) -> None:
        self.joining, self.wishes, self.flight, self.clock, self.way = joining, wishes, flight, clock, way
        self.links: Links | None = None
        self.watch: Watch | None = None
        self.waiting = [Waiting() for _ in joining.columns]
        self.promised: list[Punctuation] = [Punctuation(START) for _ in joining.columns]
        self.given = START
        self.taken = START  # rows below it have gone round
        self._build(range(wishes.most))

    def _build(self, numbers: Sequence[int]) -> None:
        """The nodes that are here."""
        self.nodes: dict[int, Node] = {}
        for number in numbers:
            self.nodes[number] = self.way.node(self.joining, number, self.wishes.most, self.clock)
        tuning = Tuning(self.joining, self.wishes)
        self.head = self.way.first(self.nodes[HEAD], tuning, self.flight) if HEAD in self.nodes else None
        self._saved: Any = None
        self._kept: dict[int, str] = {}

    def connect(self, links: Links, watch: Watch | None = None, clock: Callable[[], float] | None = None) -> None:
        """Be one node of several, from now on. Its state is kept."""
        if links.nodes != self.wishes.most:
            raise InternalError(f"a ring of {self.wishes.most} nodes is connected with {links.nodes}")
        self.links, self.watch, self.clock = links, watch, clock
        if list(self.nodes) != [links.node]:
            if len(self.nodes) != self.wishes.most:
                raise CheckpointError(f"the state is that of node {list(self.nodes)}, not of node {links.node}")
            self._build([links.node])
        for node in self.nodes.values():
            node.prober.clock, node.prober.watch, node.ahead = clock, watch, True

    # -- rows and promises -------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        late = self.joining.late[port] if self.joining.late else "drop"
        rows, sides = on_time_of_side(batch, self.promised[port].value, late)
        rows, large = without_large(rows, self.wishes.largest)
        self.waiting[port].push(rows)
        return [*sides, *large]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised[port].value:
            return []
        self.promised[port] = promise
        return [] if self.links is not None else [*self._round(), *self._news()]

    def on_flush(self) -> list[Item]:
        return [] if self.links is None else [*self._round(), *self._news()]

    def _round(self) -> list[Item]:
        if self.links is not None:
            return [*self._turns()]
        limit = min(promise.value for promise in self.promised)
        if limit <= self.taken:
            return []
        rows = self._released(limit)
        return [*self._alone(rows)] if rows else []

    def _released(self, limit: int) -> dict[int, Batch]:
        """The rows that no earlier one can follow, in order; equal times by all columns, so that it is the same
        whatever order they came in.
        """
        self.taken = limit
        found = {}
        for port, waiting in enumerate(self.waiting):
            if (rows := waiting.take(limit)) is not None and rows.height:
                rows = rows.sort(PROGRESS, maintain_order=True)
                ties = [c for c in rows.columns if c.startswith(TIE)] or [c for c in rows.columns if c != PROGRESS]
                order = tied_order(rows, [PROGRESS], ties)
                found[port] = (rows if order is None else rows[order]).select(pl.exclude(f"^{TIE}.*$"))
        return found

    def _alone(self, rows: dict[int, Batch]) -> Iterator[Item]:
        """A round with all nodes here, each with a queue of what comes to it."""
        assert self.head is not None
        queues: list[deque[Message]] = [deque() for _ in self.nodes]

        def passed(node: int, sent: Iterator[Sent]) -> Iterator[Item]:
            for each in sent:
                if isinstance(each, Message):
                    queues[self._target(node, each)].append(each)
                else:
                    yield each.rows if isinstance(each, Found) else each

        yield from passed(HEAD, self.head.begin(rows))
        while not self.head.done:
            busy = False
            for node, queue in enumerate(queues):
                while queue:
                    busy, message = True, queue.popleft()
                    taker = self.head if node == HEAD else self.nodes[node]
                    yield from passed(node, taker.on_message(message))
            if not busy and self.head.can_feed():
                yield from passed(HEAD, self.head.feed())

    def _turns(self) -> Iterator[Item]:
        """A round as one node of several."""
        assert self.links is not None
        if self.head is not None:
            limit = min(promise.value for promise in self.promised)
            yield from self._sent(self.head.begin(self._released(limit) if limit > self.taken else {}))
            while not self.head.done:
                message = self.links.receive(wait=not self.head.can_feed())
                yield from self._sent(self.head.on_message(message) if message is not None else self.head.feed())
            return
        [node] = self.nodes.values()
        message = None
        while message is None or message.kind != Kind.DONE:
            message = self.links.receive(wait=True)
            assert message is not None
            yield from self._sent(node.on_message(message))

    def _target(self, node: int, message: Message) -> int:
        return (node + 1) % self.wishes.most if message.to is None else message.to

    def _sent(self, sent: Iterator[Sent]) -> Iterator[Item]:
        assert self.links is not None
        for each in sent:
            if isinstance(each, Message):
                self.links.send(self._target(self.links.node, each), each)
            else:
                yield each.rows if isinstance(each, Found) else each

    def _news(self) -> list[Item]:
        """What the promises of all inputs mean for a result that is still to come, if that is new: rows wait until all
        have promised past them, so the last row of such a result is not below the least promise.
        """
        moment, least = self.joining.moment, min(promise.value for promise in self.promised)
        value = self.joining.ranges.promised(moment, [least for _ in self.promised])
        if value != END:
            came = [p.value if p.value != END else START if p.reached is None else p.reached for p in self.promised]
            value = min(value, int(moment.of(came)))
        if value == START or value <= self.given:
            return []
        before, self.given = self.given, value
        if value != END:
            return [Punctuation(value)]
        return [*ended(before, moment.ends([promise.reached for promise in self.promised]))]

    def waits_for(self) -> list[Wait]:
        found = []
        firsts = [first for waiting in self.waiting if (first := waiting.first()) is not None]
        if not firsts:
            return []
        needed, count = min(firsts) + 1, sum(waiting.height for waiting in self.waiting)
        size = sum(waiting.state_bytes() for waiting in self.waiting)
        for port, promise in enumerate(self.promised):
            if promise.value < needed:
                found.append(Wait(port, needed, promise.value, "rows", count, size))
        return found

    # -- state -------------------------------------------------------------------------------------------------
    def _progress(self) -> Batch:
        own = [(port, promise.value, promise.reached) for port, promise in enumerate(self.promised)]
        rows = [*own, (RESULTS, self.given, None), (RESULTS - 1, self.taken, None)]
        return pl.DataFrame(rows, schema=PROMISED, orient="row")

    def _known(self, number: int) -> str:
        """What a node knows beside its rows."""
        node = self.nodes[number]
        known: dict[str, Any] = {"nodes": self.wishes.most, "node": node.known()}
        if number == HEAD and self.head is not None:
            known["head"] = self.head.known()
        return json.dumps(known)

    def snapshot(self) -> State:
        found: State = {PROMISES: self._progress()}
        found |= together({f"wait{port}": waiting.snapshot() for port, waiting in enumerate(self.waiting)})
        for number, node in self.nodes.items():
            found[f"{NODE}{number}"] = pl.DataFrame({"known": [self._known(number)]})
            found |= together({f"{NODE}{number}": node.snapshot()})
        return found

    def changes(self) -> Changes:
        found: Changes = together({f"wait{port}": waiting.changes() for port, waiting in enumerate(self.waiting)})
        progress = self._progress()
        if self._saved is None or not progress.equals(self._saved, null_equal=True):
            found[PROMISES], self._saved = progress, progress
        for number, node in self.nodes.items():
            if (known := self._known(number)) != self._kept.get(number):
                found[f"{NODE}{number}"] = pl.DataFrame({"known": [known]})
                self._kept[number] = known
            found |= together({f"{NODE}{number}": node.changes()})
        return found

    def restore(self, state: State) -> None:
        """Of all nodes, or of the one that the state has; a ring of another size is refused."""
        names = [name.removeprefix(NODE) for name in state if name.startswith(NODE) and "/" not in name]
        numbers = sorted(map(int, names))
        if numbers and numbers != list(self.nodes):
            if self.links is not None:
                raise CheckpointError(f"the state is that of nodes {numbers}, not of node {list(self.nodes)}")
            self._build(numbers)
        saved = {of: each for of, *each in state[PROMISES].rows()} if PROMISES in state else {}
        for port in range(len(self.promised)):
            value, reached = saved.get(port, (START, None))
            self.promised[port] = Punctuation(value, reached=reached)
        self.given = saved.get(RESULTS, (START, None))[0]
        self.taken = saved.get(RESULTS - 1, (START, None))[0]
        for port, waiting in enumerate(self.waiting):
            waiting.restore(part_of(state, f"wait{port}"), self.taken)
        for number in numbers:
            self._restore_node(number, state)
        self._saved = self._progress() if PROMISES in state else None

    def _restore_node(self, number: int, state: State) -> None:
        node, known = self.nodes[number], json.loads(state[f"{NODE}{number}"].item())
        if known["nodes"] != self.wishes.most:
            raise CheckpointError(
                f"the checkpoint is that of a ring of {known['nodes']} nodes at the most, and this one has "
                f"{self.wishes.most}: start with as many, or with a new checkpoint"
            )
        node.restore(part_of(state, f"{NODE}{number}"), known["node"])
        if number == HEAD and self.head is not None:
            self.head.restore(known["head"])
        self._kept[number] = json.dumps(known)

    def state_bytes(self) -> int:
        held = sum(node.state_bytes() for node in self.nodes.values())
        return held + sum(waiting.state_bytes() for waiting in self.waiting)
