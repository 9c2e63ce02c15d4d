"""The basic cycle: execute an operator on one unit, then select the next by yield and more (Bai et al., Figure 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from windrow.graph.buffers import ITEM, NEXT, Buffer, Memory
from windrow.graph.enhanced import Way, idle_waiting_prone, way
from windrow.graph.registers import Registered
from windrow.graph.states import Component, Layout, Node, State, components_of, states_of
from windrow.graph.strategies import Rule, Strategy
from windrow.graph.timestamps import Source
from windrow.operators.operator import Item, Side
from windrow.progress import Punctuation

Output = tuple[int, Item]  # what came out of a graph, and of which node
TURN = 64  # steps that a component makes before another one may be next
_FORWARD, _ENCORE, _BACKTRACK = int(Rule.FORWARD), int(Rule.ENCORE), int(Rule.BACKTRACK)


@dataclass
class Traffic:
    """What went from operator to operator so far."""

    rows: int = 0
    promises: int = 0

    def note(self, item: Item, times: int = 1) -> None:
        if isinstance(item, Punctuation):
            self.promises += times
        elif isinstance(item, pl.DataFrame):
            self.rows += item.height * times

    @property
    def share(self) -> float:
        """The share of promises in it."""
        return self.promises / max(1, self.rows + self.promises)


class Cycle:
    """Runs the states of a table. Whatever changes the table sets ``_stale``; it is made anew before the next step."""

    def __init__(self, strategy: Strategy) -> None:
        self.traffic = Traffic()
        self.memory: Memory | None = None
        self.turn = TURN
        # Told the node and the error of an operator that raises. True: it has been dealt with, the others go on.
        self.on_error: Callable[[int, Exception], bool] | None = None
        self._nodes: dict[int, Node] = {}
        self._layout = Layout(strategy)
        self._stale = True
        self._states: dict[int, State] = {}
        self._components: list[Component] = []
        self._sequence = 0  # of the last item that was put into any buffer
        self._passed = 0.0  # of the component that ran last
        self._stamp = 0  # of the last search for a predecessor
        self._enhanced = False  # whether promises go over the arcs of the enhanced query graph
        self._inputs: list[Buffer] = []
        self._sources: dict[int, Source] = {}  # inputs with timestamps
        self._worked = 0  # steps that took or gave rows
        self._ways: dict[int, Way] = {}  # by producer
        self._order: list[int] | None = None  # nodes after those that feed them

    # -- the table ---------------------------------------------------------------------------------------------
    def _made(self) -> dict[int, State]:
        """The states as the graph is now. Components keep what they have used of the processor."""
        if self._stale:
            passed = {s.number: c.passed for c in self._components for s in c.states}
            current = {c.current.number for c in self._components if c.current is not None}
            self._states = states_of(self._nodes, self._layout, self._state)
            self._ways.clear()
            self._order = None
            self._components = components_of(self._states, self._layout)
            for component in self._components:
                component.passed = max((passed.get(s.number, 0.0) for s in component.states), default=0.0)
                component.current = next((s for s in component.states if s.number in current), None)
            self._stale = False
        return self._states

    def _state(self, number: int, node: Node, strategy: Strategy) -> State:
        active = any(reader.ets is not None for reader in node.readers)
        if not (node.in_order or active or (self._enhanced and idle_waiting_prone(node))):
            return State(number, node, strategy)
        state = Registered(number, node, strategy)
        state.one, state.plain = None, False
        return state

    # -- which component ---------------------------------------------------------------------------------------
    def _run(self, out: list[Output], steps: int | None = None) -> int:
        """Run until nothing can, or so many steps; returns how many were made."""
        made = 0
        while steps is None or made < steps:
            state = self._start()
            if state is None:
                if self._sources and self._ask(self._sources) is not None:
                    continue
                break
            several = len(self._components) > 1
            most = self.turn if several and (steps is None or self.turn < steps - made) else steps and steps - made
            made += self._turn(state, most or -1, out)
        return made

    def _start(self) -> State | None:
        """Where to go on: in the component of the highest priority that has had the least for its share."""
        if self._stale:
            self._made()
        if len(self._components) == 1:
            return self._components[0].runnable()
        best: State | None = None
        least = (0.0, 0.0)
        for component in self._components:
            state = component.runnable()
            if state is None:  # whoever has nothing to do saves nothing up
                component.passed = max(component.passed, self._passed)
            elif best is None or (-component.priority, component.passed) < least:
                best, least = state, (-component.priority, component.passed)
        return best

    def _turn(self, state: State, most: int, out: list[Output]) -> int:
        """Cycles in one component until it gives control back or has made ``most`` steps (negative: no bound)."""
        component, made = state.component, 0
        following: State | None = state
        while following is not None and made != most:
            state, following = following, None
            made += 1
            component.current = None  # if the operator raises
            self._execute(state, out)
            if self._stale:  # a handler of errors has changed the graph
                break
            component.current = following = self._select(state)
        self._passed = component.passed
        component.passed += made / component.share
        return made

    # -- execution ---------------------------------------------------------------------------------------------
    def _execute(self, state: State, out: list[Output]) -> None:
        """Run the operator of a state on one unit of its input."""
        reader = state.one or state.oldest()
        node = state.node
        if reader is None or node is None:
            return
        if state.plain and self.memory is None and not reader.offset:
            cell = reader.head
            item, reader.head = cell[ITEM], cell[NEXT]
        else:
            item = state.take(reader, self.memory)
        try:
            if isinstance(item, pl.DataFrame):
                produced = node.operator.on_batch(reader.port, item)
            else:
                assert isinstance(item, Punctuation)
                produced = node.operator.on_punctuation(reader.port, item)
        except Exception as error:
            if self.on_error is None or not self.on_error(state.number, error):
                raise
            return
        if self.memory is not None:
            self.memory.ran(state.number, item, produced)
        if self._sources and any(isinstance(each, pl.DataFrame) for each in (item, *produced)):
            self._worked += 1
        if produced:
            self._deliver(state, node, produced, out)

    def _deliver(self, state: State, node: Node, produced: Sequence[Item], out: list[Output]) -> None:
        buffer = node.buffer
        readers = len(buffer.readers)
        for item in produced:
            side = isinstance(item, Side)
            if side or state.exits:
                out.append((state.number, item))
            if side or not readers:
                continue
            if self._enhanced and isinstance(item, Punctuation) and self._way(buffer).send(item):
                continue
            self.traffic.note(item, readers)
            self._sequence += 1
            buffer.put(item, self._sequence)
            if self.memory is not None:
                self.memory.arrived(item)

    # -- selection ---------------------------------------------------------------------------------------------
    def _select(self, state: State) -> State | None:
        """The state that the rules of this one lead to; None: control goes back to the scheduler."""
        for rule in state.rules:
            if rule == _FORWARD:
                succs = state.succs
                if len(succs) == 1 and (one := succs[0].one) is not None:
                    if one.head[NEXT] is not None:
                        return succs[0]
                elif (found := state.forward()) is not None or (
                    self._sources and (found := self._wake(state)) is not None
                ):
                    return found
            elif rule == _ENCORE:
                if state.more():
                    return state
            elif rule == _BACKTRACK:
                return self._backtrack(state)
            else:
                return None
        return None

    def _backtrack(self, state: State) -> State | None:
        """Try the rules on the predecessors of empty inputs, and on theirs, the nearest first."""
        # On a path there is nothing to choose, and nobody to go forward to: what is ahead has just been found empty.
        while (pred := state.back) is not None:
            one = pred.one
            if one is not None and one.head[NEXT] is not None:
                return pred
            if not pred.backtracks:
                return None
            state = pred
        return self._search(state)

    def _search(self, state: State) -> State | None:
        self._stamp = stamp = self._stamp + 1
        waiting = state.empty()
        while waiting:
            at = waiting.pop()
            if at.seen == stamp:
                continue
            at.seen = stamp
            for rule in at.rules:
                if rule == _FORWARD:
                    # A single successor that can run would not have been backtracked from.
                    if len(at.succs) > 1 and (found := at.forward()) is not None:
                        return found
                elif rule == _ENCORE:
                    if at.more():
                        return at
                elif rule == _BACKTRACK:
                    waiting += at.empty()
        return None

    # -- ETS on demand -----------------------------------------------------------------------------------------
    def _wake(self, state: State) -> State | None:
        """A successor that idle-waits hands on to whoever can feed its empty inputs: operators, else sources."""
        for succ in state.succs:
            if isinstance(succ, Registered) and succ.idles():
                if (found := self._search(succ)) is not None:
                    return found
                enabled = self._ask(self._above(succ))
                if enabled is not None and enabled.component is state.component:  # else the scheduler gets there
                    return enabled
        return None

    def _above(self, state: State) -> list[int]:
        """The inputs with timestamps that the empty inputs of a state come from."""
        waiting = [r.buffer.producer for r in state.readers if r.head[NEXT] is None]
        found: list[int] = []
        while waiting:
            producer = waiting.pop()
            if producer >= 0:
                waiting += [r.buffer.producer for r in self._nodes[producer].readers]
            elif -1 - producer in self._sources:
                found.append(-1 - producer)
        return found

    def _ask(self, inputs: Iterable[int]) -> State | None:
        """Send an ETS of the first source that has a better one and that somebody waits for; returns who gets it."""
        for number in inputs:
            buffer = self._inputs[number]
            waiting = any(reader.head[NEXT] is not None for reader in buffer.readers)
            if waiting or not self._waited_for(buffer):
                continue
            if (value := self._sources[number].ets(self._worked)) is not None:
                promise = Punctuation(value)
                if self._enhanced and self._way(buffer).send(promise):
                    return self._states[self._way(buffer).ends[0].node]
                self._sequence += 1
                buffer.put(promise, self._sequence)
                return self._states[buffer.readers[0].node]
        return None

    def _waited_for(self, buffer: Buffer) -> bool:
        """Whether an operator behind a buffer idle-waits for what it is fed from there."""
        waiting, seen = [buffer], {buffer.producer}
        while waiting:
            for reader in waiting.pop().readers:
                state, node = self._states[reader.node], self._nodes[reader.node]
                if isinstance(state, Registered) and state.idles() and reader.head[NEXT] is None:
                    return True
                if any(wait.port == reader.port and wait.count > 0 for wait in node.operator.waits_for()):
                    return True
                if node.number not in seen:
                    seen.add(node.number)
                    waiting.append(node.buffer)
        return False

    def _way(self, buffer: Buffer) -> Way:
        if buffer.producer not in self._ways:
            self._ways[buffer.producer] = way(buffer, self._nodes, self._layout.outputs)
        return self._ways[buffer.producer]
