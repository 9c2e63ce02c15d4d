"""A graph of operators that is itself an operator, so that a host knows one type."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from windrow.graph.strategies import DepthFirst, Strategy
from windrow.operators.operator import Item, Operator, Side, Wait
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, Changes, State


@dataclass
class Traffic:
    """What went from operator to operator so far."""

    rows: int = 0
    promises: int = 0

    def note(self, item: Item) -> None:
        if isinstance(item, Punctuation):
            self.promises += 1
        elif isinstance(item, pl.DataFrame):
            self.rows += item.height

    @property
    def share(self) -> float:
        """The share of promises in it."""
        return self.promises / max(1, self.rows + self.promises)


@dataclass
class Node:
    """An operator, what it is called in snapshots and explanations, and where its output goes."""

    name: str
    operator: Operator
    to: list[tuple[int, int]] = field(default_factory=list)  # (node, port); none: out of the graph


Output = tuple[int, Item]  # what came out of a graph, and of which node


class Graph:
    """Runs until no arc holds anything, so between two calls all state is in the operators.

    >>> from windrow.operators import Punctuate, Select
    >>> g = Graph()
    >>> keep = g.add("keep", Select(pl.col("@t") > 1))
    >>> mark = g.add("mark", Punctuate(0), after=[keep])
    >>> g.input(keep)
    0
    >>> [x if isinstance(x, Punctuation) else x.rows() for x in g.on_batch(0, pl.DataFrame({"@t": [1, 4]}))]
    [[(4,)], Punctuation(value=4, group=None)]
    """

    def __init__(self, strategy: Strategy | None = None) -> None:
        self.nodes: list[Node] = []
        self.scope = ""  # of the nodes that are added next; names are stable inside a scope, whatever else a graph has
        self.outputs: set[int] = set()  # nodes whose output leaves the graph although others take it, too
        self.inputs: list[tuple[int, int]] = []
        self.strategy = strategy or DepthFirst()
        self.traffic = Traffic()
        self._waiting: list[deque[tuple[int, Item]]] = []
        self._before: list[list[int]] = []

    # -- building ----------------------------------------------------------------------------------------------
    def add(self, name: str, operator: Operator, after: Sequence[int] = ()) -> int:
        """Append an operator whose port i is fed by the i-th node of ``after``."""
        number = len(self.nodes)
        prefix = f"{self.scope}/" if self.scope else ""
        place = sum(node.name.startswith(prefix) for node in self.nodes) if prefix else number
        self.nodes.append(Node(f"{prefix}{place}-{name}", operator))
        self._waiting.append(deque())
        self._before.append(list(after))
        for port, node in enumerate(after):
            self.nodes[node].to.append((number, port))
        return number

    def connect(self, node: int, to: int, port: int) -> None:
        """Let the output of a node go to a port of another, too."""
        self.nodes[node].to.append((to, port))
        self._before[to].append(node)

    def output(self, node: int) -> int:
        """Let the output of a node leave the graph even if others take it."""
        self.outputs.add(node)
        return node

    def input(self, node: int, port: int = 0) -> int:
        """Make a port of a node an input of the graph; returns its number."""
        self.inputs.append((node, port))
        return len(self.inputs) - 1

    # -- what strategies ask -----------------------------------------------------------------------------------
    def more(self, node: int) -> bool:
        return bool(self._waiting[node])

    def successors(self, node: int) -> list[int]:
        return [n for n, _port in self.nodes[node].to]

    def predecessors(self, node: int) -> list[int]:
        return self._before[node]

    # -- running -----------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [item for _, item in self.feed(port, batch)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [item for _, item in self.feed(port, promise)]

    def on_flush(self) -> list[Item]:
        return [item for _, item in self.flush()]

    def flush(self) -> list[Output]:
        """Flushes every operator, inputs first, so that what one puts out has reached the next before its turn."""
        out: list[Output] = []
        for number, node in enumerate(self.nodes):
            self._deliver(number, node.operator.on_flush(), out)
            self._drain(self._any_waiting(), out)
        return out

    def feed(self, port: int, item: Item) -> list[Output]:
        """Like ``on_batch`` and ``on_punctuation``; says which node each item came out of."""
        node, node_port = self.inputs[port]
        self._waiting[node].append((node_port, item))
        out: list[Output] = []
        self._drain(node, out)
        return out

    def _drain(self, current: int | None, out: list[Output]) -> None:
        while current is not None:
            self._step(current, out)
            following = self.strategy.next(self, current)
            # A strategy may stop early; nothing may stay on an arc, or a snapshot would lose it.
            current = following if following is not None else self._any_waiting()

    def _step(self, number: int, out: list[Output]) -> None:
        if not self._waiting[number]:
            return
        node = self.nodes[number]
        port, item = self._waiting[number].popleft()
        if isinstance(item, Punctuation):
            produced = node.operator.on_punctuation(port, item)
        else:
            assert isinstance(item, pl.DataFrame)
            produced = node.operator.on_batch(port, item)
        self._deliver(number, produced, out)

    def _deliver(self, number: int, produced: Sequence[Item], out: list[Output]) -> None:
        node = self.nodes[number]
        for result in produced:
            if isinstance(result, Side) or not node.to or number in self.outputs:
                out.append((number, result))
            if isinstance(result, Side):
                continue
            for successor, successor_port in node.to:
                self.traffic.note(result)
                self._waiting[successor].append((successor_port, result))

    def _any_waiting(self) -> int | None:
        return next((n for n, waiting in enumerate(self._waiting) if waiting), None)

    # -- state -------------------------------------------------------------------------------------------------
    def waits_for(self) -> list[Wait]:
        """What each operator waits for, under the name of its node."""
        found = [(node.name, wait) for node in self.nodes for wait in node.operator.waits_for()]
        return [replace(wait, at=f"{name}/{wait.at}" if wait.at else name) for name, wait in found]

    def snapshot(self) -> State:
        return {f"{n.name}/{k}": v for n in self.nodes for k, v in n.operator.snapshot().items()}

    def changes(self) -> Changes:
        return {f"{n.name}/{k}": v for n in self.nodes for k, v in n.operator.changes().items()}

    def restore(self, state: State) -> None:
        for node in self.nodes:
            prefix = node.name + "/"
            node.operator.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    def state_bytes(self) -> int:
        return sum(n.operator.state_bytes() for n in self.nodes)
