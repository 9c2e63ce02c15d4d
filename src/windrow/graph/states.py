"""The state table: what the scheduler runs from (Bai et al., section 3, Tables 1 to 3).

A state is an operator with the states before and after it and the rules of its transition. Adding and dropping
operators, break nodes and changes of strategy only make a new table; buffers and operators stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from windrow.graph.buffers import NEXT, SEQUENCE, Buffer, Memory, Reader
from windrow.graph.strategies import Kind, Rule, Strategy
from windrow.operators.operator import Item, Operator


@dataclass
class Node:
    """An operator, what it is called in snapshots and explanations, and the buffers that it reads and fills."""

    number: int
    name: str
    operator: Operator
    buffer: Buffer
    readers: list[Reader] = field(default_factory=list)
    in_order: bool = False  # takes rows of all inputs in the order of their times
    places: int = 1  # that it has in its scope

    @property
    def to(self) -> list[tuple[int, int]]:
        """The nodes and ports that its output goes to; none: out of the graph."""
        return [(reader.node, reader.port) for reader in self.buffer.readers]

    @property
    def label(self) -> str:
        """The name that it was given, without scope and number."""
        return self.name.rsplit("/", 1)[-1].split("-", 1)[1]


class State:
    """An operator in the table. A fork is a state without an operator. Attributes are slots: each step reads most."""

    __slots__ = (
        "back",
        "backtracks",
        "component",
        "exits",
        "kind",
        "node",
        "number",
        "one",
        "plain",
        "preds",
        "readers",
        "rows",
        "rules",
        "seen",
        "strategy",
        "succs",
        "turn",
    )

    def __init__(self, number: int, node: Node | None, strategy: Strategy) -> None:
        self.number, self.node, self.strategy = number, node, strategy
        self.readers: list[Reader] = node.readers if node else []
        self.one: Reader | None = self.readers[0] if len(self.readers) == 1 else None
        self.rows = strategy.rows
        self.plain = strategy.rows is None  # takes items as they came
        self.kind = Kind.FORK
        self.rules: tuple[int, ...] = ()
        self.succs: list[State] = []
        self.preds: list[tuple[Reader | None, State]] = []  # and the reader of what they produce
        self.back: State | None = None  # the predecessor, if there is one only, with one input, and no fork between
        self.backtracks = False
        self.exits = False  # its output leaves the graph
        self.turn = 0  # of a fork: the branch that is next
        self.seen = 0
        self.component: Component

    def more(self) -> bool:
        """Whether it can run."""
        if self.one is not None:
            return self.one.head[NEXT] is not None
        for reader in self.readers:  # noqa: SIM110, a generator takes three times as long
            if reader.head[NEXT] is not None:
                return True
        return False

    def oldest(self) -> Reader | None:
        """The input whose next item was produced first: operators with several inputs take items as they come."""
        found: Reader | None = None
        for reader in self.readers:
            head = reader.head
            if head[NEXT] is not None and (found is None or head[SEQUENCE] < found.head[SEQUENCE]):
                found = reader
        return found

    def take(self, reader: Reader, memory: Memory | None) -> Item:
        """A unit of an input."""
        return reader.take(memory) if self.rows is None else reader.take_rows(self.rows, memory)

    def empty(self) -> list[State]:
        """The predecessors that feed an empty input, the first one last."""
        return [pred for reader, pred in reversed(self.preds) if reader is None or reader.head[NEXT] is None]

    def follow(self, kind: Kind) -> None:
        """Take the rules of the strategy for a kind of state."""
        self.kind = kind
        self.rules = tuple(int(rule) for rule in self.strategy.rules[kind])
        self.backtracks = Rule.BACKTRACK in self.strategy.rules[kind]
        only = self.preds[0][1] if len(self.preds) == 1 else None
        self.back = only if only is not None and only.one is not None else None

    def forward(self) -> State | None:
        """A successor that can run; the branches of a fork take turns."""
        succs, turn = self.succs, self.turn
        for _ in succs:
            succ = succs[turn]
            turn = turn + 1 if turn + 1 < len(succs) else 0
            found = succ.forward() if succ.kind is Kind.FORK else succ if succ.more() else None
            if found is not None:
                self.turn = turn
                return found
        return None


Make = Callable[[int, Node, Strategy], State]


class Component:
    """States that no break node separates. Components share the processor (see ``Graph.set_share``)."""

    __slots__ = ("current", "passed", "priority", "share", "states")

    def __init__(self) -> None:
        self.states: list[State] = []
        self.current: State | None = None  # where it goes on
        self.share = 1.0
        self.priority = 0.0
        self.passed = 0.0  # steps over share: the component that has had the least for its share is next

    def runnable(self) -> State | None:
        """Where it goes on if it can, else any state that can run."""
        if self.current is not None and self.current.more():
            return self.current
        return next((state for state in self.states if state.more()), None)


@dataclass
class Layout:
    """What a table is made of besides the nodes."""

    strategy: Strategy
    strategies: dict[int, Strategy] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    priorities: dict[int, float] = field(default_factory=dict)
    breaks: set[int] = field(default_factory=set)
    outputs: set[int] = field(default_factory=set)

    def of(self, number: int) -> Strategy:
        return self.strategies.get(number, self.strategy)

    def forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for known in (self.strategies, self.shares, self.priorities):
                known.pop(number, None)
            self.breaks.discard(number)
            self.outputs.discard(number)

    def broken(self, nodes: Mapping[int, Node]) -> set[int]:
        """The nodes with a break node behind them: those that were set, and those that make paths."""
        found = set(self.breaks)
        for node in nodes.values():
            if not self.of(node.number).paths:
                continue
            if len({reader.node for reader in node.buffer.readers}) > 1:
                found.add(node.number)
            if len(node.readers) > 1:
                found |= {reader.buffer.producer for reader in node.readers if reader.buffer.producer >= 0}
        return found


def states_of(nodes: Mapping[int, Node], layout: Layout, make: Make) -> dict[int, State]:
    """A state for each node, linked, with forks between, and its rules."""
    states = {number: make(number, node, layout.of(number)) for number, node in nodes.items()}
    broken = layout.broken(nodes)
    for number, state in states.items():
        node = nodes[number]
        state.exits = number in layout.outputs or not node.buffer.readers
        if node.buffer.readers and number not in broken:
            _link(state, node.buffer, states)
    for state in states.values():
        state.follow(_KINDS[bool(state.preds), bool(state.succs)])
    return states


_KINDS = {
    (False, True): Kind.SOURCE,
    (True, True): Kind.NOS,
    (True, False): Kind.SINK,
    (False, False): Kind.SOURCE_SINK,
}


def _link(state: State, buffer: Buffer, states: Mapping[int, State]) -> None:
    """Put a state before those that read its buffer, with a fork if they are several."""
    before = state
    if len({reader.node for reader in buffer.readers}) > 1:
        before = State(state.number, None, state.strategy)
        before.preds.append((None, state))
        before.follow(Kind.FORK)
        state.succs.append(before)
    for reader in buffer.readers:
        after = states[reader.node]
        after.preds.append((reader, before))
        if after not in before.succs:
            before.succs.append(after)


def components_of(states: Mapping[int, State], layout: Layout) -> list[Component]:
    """Connected states, in the order of their first nodes."""
    found: list[Component] = []
    placed: set[int] = set()
    for state in states.values():
        if state.number in placed:
            continue
        component = Component()
        reached, seen = [state], {id(state)}
        while reached:
            each = reached.pop()
            each.component = component
            if each.node is not None:
                component.states.append(each)
                placed.add(each.number)
            beside = [s for s in (*each.succs, *(pred for _, pred in each.preds)) if id(s) not in seen]
            seen |= {id(s) for s in beside}
            reached += beside
        component.states.sort(key=lambda s: s.number)
        numbers = [s.number for s in component.states]
        component.share = max((layout.shares[n] for n in numbers if n in layout.shares), default=1.0)
        component.priority = max((layout.priorities[n] for n in numbers if n in layout.priorities), default=0.0)
        found.append(component)
    return found
