"""A graph of operators that is itself an operator, so that a host knows one type."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from windrow.errors import GraphError
from windrow.graph.arcs import Arcs
from windrow.graph.cycle import Output
from windrow.graph.states import Node
from windrow.graph.strategies import DFS, Strategy
from windrow.graph.topology import Topology
from windrow.operators.operator import Item, Wait
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, Changes, State


class Graph(Topology):
    """Operators and the buffers between them. It may be changed between any two steps.

    ``feed`` runs until nothing can run, so between two calls all state is in the operators; ``put``, ``step`` and
    ``run`` drive it step by step, and then snapshots include what is in the buffers.

    >>> import polars as pl
    >>> from windrow.operators import Punctuate, Select
    >>> g = Graph()
    >>> keep = g.add("keep", Select(pl.col("@t") > 1))
    >>> mark = g.add("mark", Punctuate(0), after=[keep])
    >>> g.input(keep)
    0
    >>> [x if isinstance(x, Punctuation) else x.rows() for x in g.on_batch(0, pl.DataFrame({"@t": [1, 4]}))]
    [[(4,)], Punctuation(value=4, group=None)]
    >>> print(g.table())
    state  pred  succ  transition
    keep   -     mark  DFS-Source
    mark   keep  -     DFS-Sink
    """

    def __init__(self, strategy: Strategy = DFS) -> None:
        super().__init__(strategy)
        self._arcs = Arcs()

    # -- running -----------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [item for _, item in self.feed(port, batch)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [item for _, item in self.feed(port, promise)]

    def on_flush(self) -> list[Item]:
        return [item for _, item in self.flush()]

    def put(self, port: int, item: Item) -> None:
        """Give an item to an input without running anything."""
        buffer = self._input(port)
        if not buffer.readers:
            raise GraphError(f"input {port} feeds nothing any more: what it fed has been removed")
        if self._sources:
            item = self._arriving(port, item)
        self._sequence += 1
        buffer.put(item, self._sequence)
        if self.memory is not None:
            self.memory.arrived(item)

    def _arriving(self, port: int, item: Item) -> Item:
        """Something has arrived, so sources may be asked again; rows get their times if they are internal."""
        self._asked_anew()
        if (mine := self._sources.get(port)) is None:
            return item
        if isinstance(item, Punctuation) and item.group is None:
            mine.promised = max(mine.promised, item.value)
        return mine.timestamps.stamp(item) if isinstance(item, pl.DataFrame) else item

    def _asked_anew(self) -> None:
        for source in self._sources.values():
            source.tried = -1

    def feed(self, port: int, item: Item) -> list[Output]:
        """Like ``on_batch`` and ``on_punctuation``; says which node each item came out of."""
        self.put(port, item)
        return self.run()

    def step(self) -> list[Output] | None:
        """Run one operator on one unit; None if none can run."""
        out: list[Output] = []
        return out if self._run(out, 1) else None

    def run(self, steps: int | None = None) -> list[Output]:
        """Run until nothing can run, or so many steps. Time may have passed, so sources may be asked for it again."""
        self._asked_anew()
        out: list[Output] = []
        self._run(out, steps)
        return out

    def steps(self, most: int) -> int:
        """Run up to so many steps, and let go of what comes out; returns how many there were. For measurements."""
        return self._run([], most)

    def flush(self) -> list[Output]:
        """Flushes every operator, inputs first, so that what one puts out has reached the next before its turn."""
        out: list[Output] = []
        self._run(out)
        for number in self._sorted():
            # A handler of errors may have removed it.
            if number in self._nodes and self._flush(self._nodes[number], out):
                self._run(out)
        return out

    def _flush(self, node: Node, out: list[Output]) -> bool:
        """Returns whether others may have something to do now."""
        try:
            produced = node.operator.on_flush()
        except Exception as error:
            if self.on_error is None or not self.on_error(node.number, error):
                raise
            return True
        if produced:
            self._deliver(self._made()[node.number], node, produced, out)
        return bool(produced)

    # -- state -------------------------------------------------------------------------------------------------
    def waits_for(self) -> list[Wait]:
        """What each operator waits for, under the name of its node."""
        found = [(node.name, wait) for node in self.nodes for wait in node.operator.waits_for()]
        return [replace(wait, at=f"{name}/{wait.at}" if wait.at else name) for name, wait in found]

    def snapshot(self) -> State:
        """The state of all operators, and what is in the buffers."""
        held = {f"{n.name}/{k}": v for n in self.nodes for k, v in n.operator.snapshot().items()}
        return held | self._arcs.snapshot(self._buffers(), self._nodes)

    def changes(self) -> Changes:
        """The chunks that changed since the last call."""
        held: Changes = {f"{n.name}/{k}": v for n in self.nodes for k, v in n.operator.changes().items()}
        return held | self._arcs.changes(self._buffers(), self._nodes)

    def restore(self, state: State) -> None:
        """Continue from a snapshot of a graph with the same nodes."""
        for node in self.nodes:
            prefix = node.name + "/"
            node.operator.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        self._sequence = self._arcs.restore(state, self._buffers(), self._nodes)
        self._stale = True
        if self.memory is not None:
            self.measure(self.memory.anew())

    def state_bytes(self) -> int:
        return sum(n.operator.state_bytes() for n in self.nodes)
