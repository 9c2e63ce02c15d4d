"""What a graph is made of, and how it is changed while it runs: a change takes effect between two steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windrow.errors import GraphError, listing
from windrow.graph.buffers import Buffer, Memory, Reader
from windrow.graph.cycle import Cycle
from windrow.graph.enhanced import Arc, idle_waiting_prone, way
from windrow.graph.states import Node
from windrow.graph.strategies import Strategy
from windrow.graph.table import Table, table_of
from windrow.graph.timestamps import Source, Timestamps
from windrow.operators.operator import Operator


class Topology(Cycle):
    """Nodes, inputs and outputs, break nodes, strategies and shares."""

    def __init__(self, strategy: Strategy) -> None:
        super().__init__(strategy)
        self.scope = ""  # of the nodes that are added next; names are stable inside a scope, whatever else a graph has
        self._added = 0

    # -- what there is -----------------------------------------------------------------------------------------
    @property
    def nodes(self) -> list[Node]:
        """The nodes that there are, by number; numbers of removed nodes are not used again."""
        return list(self._nodes.values())

    @property
    def next_number(self) -> int:
        """The number of the node that is added next."""
        return self._added

    @property
    def inputs(self) -> list[list[tuple[int, int]]]:
        """For each input of the graph, the nodes and ports that it feeds."""
        return [[(reader.node, reader.port) for reader in buffer.readers] for buffer in self._inputs]

    @property
    def outputs(self) -> set[int]:
        """Nodes whose output leaves the graph although others take it, too."""
        return self._layout.outputs

    @property
    def breaks(self) -> frozenset[int]:
        """Nodes that have been given a virtual break node behind them."""
        return frozenset(self._layout.breaks)

    def __contains__(self, number: int) -> bool:
        return number in self._nodes

    def feeds(self, port: int) -> bool:
        """Whether an input still feeds anything: what it fed may have been removed."""
        return bool(self._input(port).readers)

    def node(self, number: int) -> Node:
        """The node with this number."""
        if (found := self._nodes.get(number)) is None:
            raise GraphError(f"the graph has no node {number}; available: {listing(map(str, self._nodes))}")
        return found

    def more(self, node: int) -> bool:
        """Whether a node can run."""
        self.node(node)
        return self._made()[node].more()

    def successors(self, node: int) -> list[int]:
        return [reader.node for reader in self.node(node).buffer.readers]

    def predecessors(self, node: int) -> list[int]:
        return [r.buffer.producer for r in self.node(node).readers if r.buffer.producer >= 0]

    def table(self) -> Table:
        """The state table that the scheduler runs from."""
        return table_of(self._made().values())

    # -- building, also while it runs --------------------------------------------------------------------------
    def add(
        self, name: str, operator: Operator, after: Sequence[int] = (), *, in_order: bool = False, places: int = 1
    ) -> int:
        """Append an operator whose port i is fed by the i-th node of ``after``, from what that produces from now on.

        ``in_order``: it takes the rows of all inputs in the order of their times, and waits for inputs that are empty.
        ``places``: how many it counts for in the names of nodes that are added later.
        """
        before = [self.node(number) for number in after]
        number, self._added = self._added, self._added + 1
        called = self._name(name, number)
        self._nodes[number] = node = Node(number, called, operator, Buffer(number), in_order=in_order, places=places)
        for port, each in enumerate(before):
            node.readers.append(Reader(each.buffer, number, port))
        self._stale = True
        return number

    def _name(self, name: str, number: int) -> str:
        """The place in the scope and the name; after removals, the first place from there that is not taken."""
        prefix = f"{self.scope}/" if self.scope else ""
        taken = {node.name for node in self._nodes.values()}
        inside = sum(node.places for node in self._nodes.values() if node.name.startswith(prefix))
        place = inside if prefix else number
        places = {int(t.removeprefix(prefix).split("-", 1)[0]) for t in taken if _direct(t, prefix)}
        while place in places:
            place += 1
        return f"{prefix}{place}-{name}"

    def connect(self, node: int, to: int, port: int) -> None:
        """Let the output of a node go to a port of another, too."""
        before, after = self.node(node), self.node(to)
        if node in self.behind(to):
            raise GraphError(f"{before.name} comes after {after.name}: feeding it from there would make a cycle")
        after.readers.append(Reader(before.buffer, to, port))
        self._stale = True

    def behind(self, number: int) -> set[int]:
        """A node and all that its output reaches."""
        found, reached = {number}, [number]
        while reached:
            after = set(self.successors(reached.pop())) - found
            found |= after
            reached += after
        return found

    def output(self, node: int) -> int:
        """Let the output of a node leave the graph even if others take it."""
        self.outputs.add(self.node(node).number)
        self._stale = True
        return node

    def input(self, node: int, port: int = 0) -> int:
        """Make a port of a node an input of the graph; returns its number."""
        self.node(node)
        self._inputs.append(Buffer(-1 - len(self._inputs)))
        self.tap(len(self._inputs) - 1, node, port)
        return len(self._inputs) - 1

    def tap(self, input: int, node: int, port: int = 0) -> None:
        """Let an input of the graph feed a port of another node, too, with what comes from now on."""
        after = self.node(node)
        after.readers.append(Reader(self._input(input), node, port))
        self._stale = True

    def _input(self, number: int) -> Buffer:
        if not 0 <= number < len(self._inputs):
            raise GraphError(f"the graph has no input {number}; it has {len(self._inputs)}")
        return self._inputs[number]

    def source(self, port: int, timestamps: Timestamps) -> None:
        """Say how the rows of an input get their times, so that it can be asked for an ETS when an operator waits."""
        self._input(port)
        self._sources[port] = Source(timestamps)

    def ets_arcs(self) -> list[Arc]:
        """The arcs of the enhanced query graph, used if ``enhanced`` is true and nothing is on the way they skip."""
        prone = {node.name: node.buffer for node in self.nodes if idle_waiting_prone(node)}
        found: list[Arc] = []
        for name, buffer in self._buffers().items():
            if buffer.producer < 0 or name in prone:
                ends = way(buffer, self._nodes, self.outputs).ends
                found += [Arc(name, self._nodes[reader.node].name, reader.port) for reader in ends]
        return found

    @property
    def enhanced(self) -> bool:
        """Whether promises go over ETS arcs."""
        return self._enhanced

    @enhanced.setter
    def enhanced(self, enhanced: bool) -> None:
        self._enhanced = enhanced
        self._stale = True

    def remove(self, nodes: Iterable[int]) -> None:
        """Take out nodes that feed none of the others. Items that only they would have read go with them.

        A node whose last reader goes is an end of the graph again: its output leaves it.
        """
        gone = {self.node(number).number for number in nodes}
        for number in sorted(gone):
            if others := set(self.successors(number)) - gone:
                names = listing(self.node(n).name for n in others)
                raise GraphError(f"{self.node(number).name} cannot be removed: others read its output ({names})")
        for number in gone:
            for reader in self._nodes[number].readers:
                reader.close(self.memory)
        for number in gone:
            del self._nodes[number]
        self._layout.forget(gone)
        self._stale = True

    # -- scheduling --------------------------------------------------------------------------------------------
    def break_at(self, node: int) -> None:
        """Put a virtual break node behind a node: a sink for what is before it and a source for what comes after."""
        self._layout.breaks.add(self.node(node).number)
        self._stale = True

    def join_at(self, node: int) -> None:
        """Take the virtual break node behind a node out again."""
        if self.node(node).number not in self._layout.breaks:
            raise GraphError(f"there is no break node behind {self.node(node).name}")
        self._layout.breaks.discard(node)
        self._stale = True

    def set_strategy(self, strategy: Strategy, part: Iterable[int] | None = None) -> None:
        """Select the next operator by other rules from now on: everywhere, or after the nodes of a part."""
        if part is None:
            self._layout.strategy = strategy
            self._layout.strategies.clear()
        else:
            self._layout.strategies |= dict.fromkeys(self._numbers(part), strategy)
        self._stale = True

    def set_share(self, share: float, part: Iterable[int]) -> None:
        """Of the steps, the component with these nodes gets so many for each step of one with a share of 1."""
        if share <= 0:
            raise GraphError(f"the share of a component is greater than 0, not {share}")
        self._layout.shares |= dict.fromkeys(self._numbers(part), share)
        self._stale = True

    def set_priority(self, priority: float, part: Iterable[int]) -> None:
        """Run the component with these nodes before all of a lower priority; shares are for equal ones."""
        self._layout.priorities |= dict.fromkeys(self._numbers(part), priority)
        self._stale = True

    def _numbers(self, part: Iterable[int]) -> list[int]:
        return [self.node(number).number for number in part]

    def measure(self, memory: Memory | None = None) -> Memory:
        """Measure from now on what buffers hold and what goes through each node; returns what is counted."""
        self.memory = memory = Memory() if memory is None else memory
        for buffer in self._buffers().values():
            buffer.settle(memory)
        return memory

    def _sorted(self) -> list[int]:
        """Nodes after those that feed them, else by number."""
        self._made()
        if self._order is not None:
            return self._order
        found: dict[int, None] = {}

        def visit(number: int) -> None:
            if number not in found:
                for before in self.predecessors(number):
                    visit(before)
                found[number] = None

        for number in self._nodes:
            visit(number)
        self._order = list(found)
        return self._order

    def _buffers(self) -> dict[str, Buffer]:
        """All buffers under the names that they have in snapshots."""
        inputs = {f"input{number}": buffer for number, buffer in enumerate(self._inputs)}
        return inputs | {node.name: node.buffer for node in self._nodes.values()}


def _direct(name: str, prefix: str) -> bool:
    """Whether a name is one of this scope itself, not of a scope inside it."""
    return name.startswith(prefix) and "/" not in name.removeprefix(prefix)
