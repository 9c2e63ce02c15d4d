"""Every strategy and every sequence of changes between steps gives the results of DFS without changes."""

import contextlib

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.errors import GraphError
from windrow.graph import BFS, DFS, RR, Graph, batching
from windrow.graph import place as place_breaks
from windrow.operators import Meld, Paned, Panes, Select, Windowing
from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.operator import Stateless
from windrow.progress import END, Punctuation
from windrow.windows import Sliding
from windrow.windows.pairing import Within

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
STRATEGIES = [DFS, BFS, RR, batching(1), batching(2), batching(50)]
SOURCES = 3


class Order(Stateless):
    """Passes everything on, and checks that no row breaks a promise that came before it."""

    def __init__(self):
        self.promised = {}

    def on_batch(self, port, batch):
        assert batch.filter(pl.col("@t") < self.promised.get(port, 0)).height == 0
        return [batch]

    def on_punctuation(self, port, promise):
        assert promise.value >= self.promised.get(port, 0)
        self.promised[port] = promise.value
        return [promise]

    def restore(self, state):
        self.promised = {}


class Pass(Stateless):
    """Another query, which may be behind an operator whose output has no times."""

    def on_batch(self, port, batch):
        return [batch]


def counted():
    window, aggregates = Sliding(10, 5), Partials([make("count", "n", None, pl.Int64())])
    return Panes(window, ["k"], aggregates), Paned(Windowing(window, ["k"], aggregates, pl.Int64()))


def joined():
    return WindowJoin(["k"], Within(0, 5), ({"x": pl.Int64()}, {}))


@st.composite
def shapes(draw):
    """Operators over three sources: each takes one or two streams that are there, and ends are counted or joined."""
    streams, parts = SOURCES, []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["select", "order", "union"]))
        taken = [draw(st.integers(0, streams - 1)) for _ in range(2 if kind == "union" else 1)]
        parts.append((kind, taken))
        streams += 1
    ends = draw(
        st.lists(
            st.tuples(st.sampled_from(["count", "rows", "join"]), st.integers(0, streams - 1)), min_size=1, max_size=3
        )
    )
    return parts, ends


def built(shape, graph):
    """The graph of a shape; returns its ends."""
    parts, ends = shape
    streams = []
    for number in range(SOURCES):
        streams.append(graph.add(f"source{number}", Order()))
        graph.input(streams[-1])
    made = {"select": lambda: Select(pl.col("x") % 3 != 0), "order": Order, "union": lambda: Meld(2)}
    for kind, taken in parts:
        streams.append(graph.add(kind, made[kind](), [streams[t] for t in taken]))
    return [_end(graph, kind, streams[of], streams[0]) for kind, of in ends]


def _end(graph, kind, stream, other):
    if kind == "count":
        panes, paned = counted()
        return graph.output(graph.add("paned", paned, [graph.add("panes", panes, [stream])]))
    if kind == "join":
        return graph.output(graph.add("join", joined(), [stream, other]))
    return graph.output(graph.add("rows", Order(), [stream]))


ROWS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ab"), st.integers(0, 9)), max_size=4)
FED = st.tuples(st.just("feed"), st.integers(0, SOURCES - 1), ROWS | st.integers(0, 6))
CHANGED = st.tuples(
    st.sampled_from(
        ["strategy", "part", "break", "join", "share", "priority", "place", "add", "drop", "steps", "restore"]
    ),
    st.integers(0, 20),
    st.sampled_from(STRATEGIES),
)


def fed(moves):
    """Inputs of the graph by place in the list of moves: no row breaks a promise, and promises grow."""
    promised, items = [0] * SOURCES, {}
    for place, (kind, source, what) in enumerate(moves):
        if kind != "feed":
            continue
        if isinstance(what, int):
            promised[source] += what
            items[place] = source, Punctuation(promised[source])
        else:
            rows = [(promised[source] + t, k, x) for t, k, x in what]
            items[place] = (
                source,
                pl.DataFrame(rows, schema={"@t": pl.Int64, "k": pl.String, "x": pl.Int64}, orient="row"),
            )
    return items


class Changing:
    """A graph that is changed between steps."""

    def __init__(self, shape):
        self.shape, self.out = shape, []
        self._build()

    def _build(self):
        self.graph, self.others, self.broken = Graph(), [], set()
        self.ends = built(self.shape, self.graph)
        self.base = [node.number for node in self.graph.nodes]

    def change(self, kind, number, strategy):
        graph, node = self.graph, self.base[number % len(self.base)]
        match kind:
            case "strategy":
                graph.set_strategy(strategy)
            case "part":
                graph.set_strategy(strategy, [node])
            case "break":
                graph.break_at(node)
                self.broken.add(node)
            case "join" if node in self.broken:
                graph.join_at(node)
                self.broken.discard(node)
            case "share":
                graph.set_share(1 + number, [node])
                graph.turn = 1 + number % 3
            case "priority":
                graph.set_priority(number % 3 - 1, [node])
            case "place":
                self._place(number)
            case "add":
                self.others.append(graph.add("other", Pass(), [graph.add("other", Pass(), [node])]))
            case "drop" if self.others:
                last = self.others.pop(number % len(self.others))
                graph.remove([last - 1, last])
            case "steps":
                self.out += graph.run(number)
            case "restore":
                state = graph.snapshot()
                self._build()
                self.graph.restore(state)

    def _place(self, number):
        """Break nodes by what has gone through since the last time, if all operators have had something."""
        costs = {node.number: 1 + (node.number + number) % 4 for node in self.graph.nodes}
        with contextlib.suppress(GraphError):
            place_breaks(self.graph, costs)
            self.broken = set(self.graph.breaks) & set(self.base)
        if self.graph.memory is None:
            self.graph.measure()

    def results(self):
        """By end, its rows in any order and its last promise."""
        found = {}
        for place, end in enumerate(self.ends):
            mine = [item for node, item in self.out if node == end]
            rows = sorted(repr(r) for i in mine if isinstance(i, pl.DataFrame) for r in i.rows())
            found[place] = rows, max((i.value for i in mine if isinstance(i, Punctuation)), default=None)
        return found


@CHECK
@given(shapes(), st.lists(FED | CHANGED, max_size=30))
def test_results_do_not_depend_on_strategies_or_changes(shape, moves):
    plain, changing = Changing(shape), Changing(shape)
    items = fed(moves)
    for place, move in enumerate(moves):
        if place in items:
            plain.out += plain.graph.feed(*items[place])
            changing.graph.put(*items[place])
        else:
            changing.change(*move)
    for source in range(SOURCES):
        plain.out += plain.graph.feed(source, Punctuation(END))
        changing.graph.put(source, Punctuation(END))
    changing.out += changing.graph.run()
    assert changing.results() == plain.results()
    assert changing.graph.step() is None
