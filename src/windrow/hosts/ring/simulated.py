"""A ring in virtual time: the operator's own code on simulated machines, for one node or a thousand.

Every node is a server that takes one message after another, and is busy for as long as its work takes. As in a ring
that runs without end, a round takes all rows that have come and are promised; what comes meanwhile waits for the
next one. When a node dies, what the round has done is lost, and all of it begins again with the state of the last one.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.hosts.ring.simulated_machines import Cables, Machines, Meter
from windrow.hosts.ring.simulated_outcome import CAME, COUNTED, FOUND, NODE, Come, Death, Outcome, Round
from windrow.operators.operator import Item, Side
from windrow.operators.ring.head import FLIGHT
from windrow.operators.ring.holder import Holder, Work
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Message
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.sliced_join import HEAD, Found, Sent
from windrow.operators.ring.way import RING, Way
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, State


class _Fed(Ring):
    """Takes rows and promises; a round is run by whoever asks for its rows."""

    def _round(self) -> list[Item]:
        return []

    def next_rows(self) -> dict[int, Batch]:
        """The rows that no earlier one can follow any more."""
        limit = min(promise.value for promise in self.promised)
        return self._released(limit) if limit > self.taken else {}

    def target(self, node: int, message: Message) -> int:
        return self._target(node, message)

    def holders(self) -> list[Holder]:
        return [node for node in self.nodes.values() if isinstance(node, Holder)]


class _DiedError(Exception):
    """A node has died."""


class Simulation:
    """``come``: what comes to the inputs, with the promises. ``deaths``: nodes that die; ``recovery``: seconds until
    all of them work again. ``watch``: is called after each piece of work. The same arguments give the same outcome.

    >>> from windrow.windows.multiway import Ranges
    >>> joining = Joining(Ranges((10, 10)), (("a",), ("b",)))
    >>> rows = [pl.DataFrame({"@t": [1], "a": ["x"]}), pl.DataFrame({"@t": [2], "b": ["y"]})]
    >>> come = [Come(0.5 * port, port, each) for port, each in enumerate(rows)]
    >>> come += [Come(1.0, port, Punctuation(20)) for port in (0, 1)]
    >>> outcome = Simulation(joining, Wishes(most=3, nodes=3), come).run()
    >>> outcome.rows(), outcome.latencies() > 0.5, len(outcome.rounds)
    ([('x', 'y', 2)], array([ True]), 1)
    """

    def __init__(
        self,
        joining: Joining,
        wishes: Wishes,
        come: Sequence[Come],
        machines: Machines | None = None,
        way: Way = RING,
        flight: int = FLIGHT,
        deaths: Sequence[Death] = (),
        recovery: float = 1.0,
        watch: Callable[[Simulation], None] | None = None,
        seed: int = 0,
    ) -> None:
        self.machines = machines or Machines()
        self.now = 0.0
        self.outcome = Outcome()
        self._columns = [f"{CAME}{stream}" for stream in range(joining.streams)]
        columns = tuple((*own, came) for own, came in zip(joining.columns, self._columns, strict=True))
        self._joining = replace(joining, columns=columns)
        self._wishes, self._way, self._flight = wishes, way, flight
        self._come = sorted(come, key=lambda each: each.at)
        self._deaths = deque(sorted(deaths))
        self._recovery, self._watch = recovery, watch
        self._next = 0  # of what comes
        self._saved: tuple[int, State] = 0, {}  # what had been taken in when the last round was over, and the state
        self._cables, self._meter = Cables(self.machines, seed), Meter(self.machines)
        self._events: list[tuple[float, int, int, Message | None, float]] = []
        self._number = 0
        self._found: list[Batch] = []  # in the round that is under way
        self._aside: list[Side] = []
        self._counted: list[Batch] = []
        nodes = wishes.most
        self.outcome.work = [Work() for _ in range(nodes)]
        self.outcome.busy, self.outcome.most = [0.0] * nodes, [0] * nodes
        self._start({})

    def _start(self, state: State) -> None:
        """All nodes, as they begin."""
        self.ring = _Fed(self._joining, self._wishes, self._flight, self._clock, self._way)
        if state:
            self.ring.restore(state)
        self.nodes = self.ring.holders()
        self._queues: list[deque[tuple[Message, float]]] = [deque() for _ in self.nodes]
        self._busy = [False] * len(self.nodes)
        self._rows = [sum(state.height for state in node.slices) for node in self.nodes]
        self._all = sum(self._rows)

    def _clock(self) -> float:
        """The time as the node that works now sees it."""
        return self.now + self._meter.seconds()

    # -- rounds ------------------------------------------------------------------------------------------------
    def run(self) -> Outcome:
        """Until all that comes has been taken."""
        while self._next < len(self._come):
            self.now = max(self.now, self._come[self._next].at)
            try:
                self._die()
                if rows := self._taken():
                    self._round(rows)
                self._save()
            except _DiedError:
                self._recover()
        self._log_work()
        self.outcome.found = pl.concat(self._counted) if self._counted else pl.DataFrame()
        self.outcome.sent, self.outcome.makespan = self._cables.sent, self.now
        return self.outcome

    def _taken(self) -> dict[int, Batch]:
        """Take in all that has come; returns the rows of the next round."""
        while self._next < len(self._come) and self._come[self._next].at <= self.now:
            at, port, item = self._come[self._next]
            self._next += 1
            if isinstance(item, Punctuation):
                self.ring.on_punctuation(port, item)
            else:
                rows = item.with_columns(pl.lit(at, pl.Float64).alias(self._columns[port]))
                self._aside += [each for each in self.ring.on_batch(port, rows) if isinstance(each, Side)]
        return self.ring.next_rows()

    def _round(self, rows: dict[int, Batch]) -> None:
        head, began = self.ring.head, self.now
        assert head is not None
        self._work(HEAD, head.begin(rows), 0.0)
        while self._events:
            self.now, _, node, message, cost = heapq.heappop(self._events)
            self._die()
            if message is None:
                self._busy[node] = False
            else:
                self._queues[node].append((message, cost))
            if not self._busy[node]:
                self._turn(node)
        if not head.done:
            raise InternalError("nothing is on its way in a round that is not over")
        live = sum(state.live for node in self.nodes for state in node.slices)
        count = sum(each.height for each in rows.values())
        self.outcome.rounds.append(Round(began, self.now, count, head.tuning.nodes, live))
        self._count()

    def _count(self) -> None:
        """From now on the results of the round are seen."""
        counted = pl.lit(self.now, pl.Float64).alias(COUNTED)
        self._counted += [each.with_columns(counted) for each in self._found]
        self._found = []

    def _turn(self, node: int) -> None:
        """The next piece of work of a node, if there is one: as in a host, messages come first."""
        head = self.ring.head
        assert head is not None
        if self._queues[node]:
            message, cost = self._queues[node].popleft()
            taker = head if node == HEAD else self.ring.nodes[node]
            self._work(node, taker.on_message(message), cost)
        elif node == HEAD and head.can_feed():
            self._work(node, head.feed(), 0.0)

    def _work(self, node: int, sent: Iterator[Sent], spent: float) -> None:
        """All of it is done at once, and each thing that it gives leaves when that part of the work has been done."""
        holder, meter = self.nodes[node], self._meter
        meter.start(holder, spent)
        for each in sent:
            if isinstance(each, Message):
                self._send(node, self.ring.target(node, each), each)
            elif isinstance(each, Found):
                self._found.append(self._stamped(each.rows, node))
            else:
                self._aside.append(each)
        took = meter.seconds()
        self.outcome.busy[node] += took
        self._busy[node] = True
        self._put(self.now + took, node, None, 0.0)
        self._hold(node, holder)
        if self._watch is not None:
            self._watch(self)

    def _send(self, node: int, to: int, message: Message) -> None:
        if to == node:  # as it is, without a way through the network
            self._put(self._clock(), to, message, 0.0)
            return
        size = self.machines.size(message)
        cost = self.machines.end(size)
        self._meter.spent += cost
        self._put(self._cables.arrival(node, to, self._clock(), size), to, message, cost)

    def _put(self, at: float, node: int, message: Message | None, cost: float) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, node, message, cost))

    def _stamped(self, rows: Batch, node: int) -> Batch:
        """Results with the times when they were found, and when the last of their rows came."""
        came = pl.max_horizontal(self._columns).alias(CAME)
        found = pl.lit(self._clock(), pl.Float64).alias(FOUND)
        return rows.with_columns(came, found, pl.lit(node, pl.Int64).alias(NODE)).drop(self._columns)

    # -- state -------------------------------------------------------------------------------------------------
    def _hold(self, node: int, holder: Holder) -> None:
        """Count the rows that are there."""
        rows = sum(state.height for state in holder.slices)
        self._all += rows - self._rows[node]
        self._rows[node] = rows
        outcome = self.outcome
        outcome.most[node] = max(outcome.most[node], rows)
        outcome.most_rows = max(outcome.most_rows, self._all)

    def copies(self) -> int:
        """How many rows too many there are now, if each is to belong to one node only."""
        found = 0
        for of in zip(*(node.slices for node in self.nodes), strict=True):
            numbers = np.concatenate([state.numbers[state.numbers >= state.start] for state in of])
            found += len(numbers) - len(np.unique(numbers))
        return found

    def snapshot(self) -> State:
        """Between two runs."""
        return self.ring.snapshot()

    def restore(self, state: State) -> None:
        """Continue from the state of another run, of as many nodes at the most."""
        self._start(state)
        self._saved = 0, state

    # -- deaths ------------------------------------------------------------------------------------------------
    def _die(self) -> None:
        if self._deaths and self._deaths[0].at <= self.now:
            raise _DiedError

    def _save(self) -> None:
        """The round counts; a state that nobody will need is not written."""
        self.outcome.sides += self._aside
        self._aside = []
        if self._deaths:
            self._saved = self._next, self.ring.snapshot()

    def _recover(self) -> None:
        """All nodes begin anew where the last round was over."""
        self.now = self._deaths.popleft().at + self._recovery
        while self._deaths and self._deaths[0].at <= self.now:  # who was not there cannot die
            self._deaths.popleft()
        self._log_work()
        self._cables.cut()
        self._events, self._found, self._aside = [], [], []
        self._next, state = self._saved
        self._start(state)
        self.outcome.recoveries += 1

    def _log_work(self) -> None:
        """What the nodes have done since they began."""
        for node, total in zip(self.nodes, self.outcome.work, strict=True):
            for each in fields(Work):
                setattr(total, each.name, getattr(total, each.name) + getattr(node.work, each.name))
