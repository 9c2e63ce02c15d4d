"""The graph: which operator runs next, where items go, and that nothing is left between two calls."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.graph import BFS, DFS, RR, Graph, batching
from windrow.operators import Admit, Meld, Paned, Panes, Project, Punctuate, Select, Side, Windowing
from windrow.operators.operator import Stateless, Wait
from windrow.progress import END, Punctuation
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=40)


class Recorder(Stateless):
    """Gives every item on ``copies`` times, and writes down that it ran, on which port and with what."""

    def __init__(self, name, log, copies=1, passes=lambda port, item: True):
        self.name, self.log, self.copies, self.passes = name, log, copies, passes

    def on_batch(self, port, batch):
        return self._ran(port, batch, batch["x"].to_list())

    def on_punctuation(self, port, promise):
        return self._ran(port, promise, promise.value)

    def _ran(self, port, item, said):
        self.log.append((self.name, port, said))
        return [item] * self.copies if self.passes(port, item) else []


def batch(*values):
    return pl.DataFrame({"x": values}, schema={"x": pl.Int64})


def names(log):
    return "".join(name for name, _, _ in log)


def chain(**copies):
    """Operators one after the other, named by a letter each."""
    graph, log, after = Graph(), [], []
    for name, n in copies.items():
        after = [graph.add(name, Recorder(name, log, n), after)]
    graph.input(0)
    return graph, log


def nothing_waits(graph):
    return not any(graph.more(node) for node in range(len(graph.nodes)))


# -- Forward, Encore, Backtrack --------------------------------------------------------------------------------------
def test_forward_an_operator_that_yields_hands_over_to_its_successor():
    graph, log = chain(a=1, b=1, c=1)
    (out,) = graph.on_batch(0, batch(1))
    assert names(log) == "abc"
    assert out.rows() == [(1,)]


def test_forward_goes_as_deep_as_it_can_before_the_next_item():
    graph, log = chain(a=2, b=1, c=1)
    assert len(graph.on_batch(0, batch(1))) == 2
    assert names(log) == "abcbc"


def test_encore_an_operator_that_yields_nothing_takes_its_next_item():
    graph, log = chain(a=3, b=0, c=1)
    assert graph.on_batch(0, batch(1)) == []
    assert names(log) == "abbb"


def test_backtrack_goes_to_the_nearest_predecessor_with_items():
    graph, log = chain(a=2, b=2, c=1, d=1)
    assert len(graph.on_batch(0, batch(1))) == 4
    assert names(log) == "abcdcd" + "bcdcd"


def test_backtrack_skips_predecessors_that_have_nothing():
    graph, log = chain(a=2, b=1, c=1, d=1)
    graph.on_batch(0, batch(1))
    assert names(log) == "abcd" + "bcd"


# -- fan-out and union -----------------------------------------------------------------------------------------------
def test_fan_out_gives_every_successor_every_item_in_order():
    graph, log = Graph(), []
    a = graph.add("a", Recorder("a", log, 2))
    graph.add("b", Recorder("b", log), [a])
    graph.add("c", Recorder("c", log), [a])
    graph.input(a)
    graph.on_batch(0, batch(1))
    graph.on_punctuation(0, Punctuation(5))
    assert [e for e in log if e[0] == "b"] == [("b", 0, s) for s in ([1], [1], 5, 5)]
    assert [e for e in log if e[0] == "c"] == [("c", 0, s) for s in ([1], [1], 5, 5)]
    assert nothing_waits(graph)


def test_a_branch_that_no_rule_leads_to_is_run_all_the_same():
    graph, log = Graph(), []
    a = graph.add("a", Recorder("a", log))
    b = graph.add("b", Recorder("b", log), [a])
    graph.add("c", Recorder("c", log), [a])
    graph.add("d", Recorder("d", log), [b])
    graph.input(a)
    assert len(graph.on_batch(0, batch(1))) == 2
    assert names(log) == "abdc"


def test_a_union_gets_the_items_of_its_inputs_on_their_ports():
    graph, log = Graph(), []
    a, b = graph.add("a", Recorder("a", log)), graph.add("b", Recorder("b", log))
    graph.add("u", Recorder("u", log), [a, b])
    assert (graph.input(a), graph.input(b)) == (0, 1)
    graph.on_batch(1, batch(1))
    graph.on_batch(0, batch(2))
    assert log == [("b", 0, [1]), ("u", 1, [1]), ("a", 0, [2]), ("u", 0, [2])]


def test_a_diamond_brings_each_item_twice_and_keeps_the_order_on_every_path():
    graph, log = Graph(), []
    a = graph.add("a", Recorder("a", log, 2))
    b, c = graph.add("b", Recorder("b", log), [a]), graph.add("c", Recorder("c", log), [a])
    graph.add("u", Recorder("u", log), [b, c])
    graph.input(a)
    graph.on_batch(0, batch(1))
    graph.on_punctuation(0, Punctuation(9))
    for port in (0, 1):
        assert [said for name, p, said in log if (name, p) == ("u", port)] == [[1], [1], 9, 9]
    assert nothing_waits(graph)


def test_a_stream_may_be_united_with_itself():
    graph, log = Graph(), []
    a = graph.add("a", Recorder("a", log))
    graph.add("u", Recorder("u", log), [a, a])
    graph.input(a)
    assert len(graph.on_batch(0, batch(1))) == 2
    assert log[1:] == [("u", 0, [1]), ("u", 1, [1])]


def test_an_input_may_feed_a_port_in_the_middle():
    graph, log = Graph(), []
    a = graph.add("a", Recorder("a", log))
    u = graph.add("u", Recorder("u", log), [a])
    assert graph.input(u, port=1) == 0
    graph.on_batch(0, batch(1))
    assert log == [("u", 1, [1])]


def test_what_leaves_by_the_side_leaves_the_graph():
    graph, log = Graph(), []
    a = graph.add("admit", Admit("x", pl.Int64()))
    graph.add("b", Recorder("b", log), [a])
    graph.input(a)
    side, rows = graph.on_batch(0, batch(1, None))
    assert side == Side("bad", 1)
    assert rows["x"].to_list() == [1]
    assert names(log) == "b"


# -- nothing stays on an arc -----------------------------------------------------------------------------------------
@st.composite
def graphs(draw):
    """Up to eight operators, each fed by some of those before it, and how often each copies an item."""
    size = draw(st.integers(1, 8))
    after = [draw(st.lists(st.integers(0, n - 1), max_size=2)) if n else [] for n in range(size)]
    return after, [draw(st.integers(0, 2)) for _ in range(size)]


@CHECK
@given(graphs(), st.sampled_from([DFS, BFS, RR, batching(1), batching(3)]))
def test_every_item_reaches_everything_it_can_reach_and_nothing_is_left(shape, strategy):
    after, copies = shape
    graph, log = Graph(strategy), []
    for n, before in enumerate(after):
        graph.add(str(n), Recorder(str(n), log, copies[n]), before)
    graph.input(0)
    out = graph.on_batch(0, batch(1))
    assert nothing_waits(graph)
    ran = [1] + [0] * (len(after) - 1)
    for n, before in enumerate(after):
        ran[n] += sum(ran[b] * copies[b] for b in before)
    assert [sum(len(said) for name, _, said in log if name == str(n)) for n in range(len(after))] == ran
    sinks = [n for n in range(len(after)) if not any(n in before for before in after)]
    assert sum(item.height for item in out) == sum(ran[n] * copies[n] for n in sinks)


# -- state -----------------------------------------------------------------------------------------------------------
def query():
    """Two sources with slack, united, aggregated, filtered: several operators with state, two of the same name."""
    window, aggregates = Sliding(10, 5), Partials([make("count", "n", None, pl.Int64())])
    graph = Graph()
    ends = []
    for _ in range(2):
        source = graph.add("punctuate", Punctuate(3))
        graph.input(source)
        ends.append(graph.add("panes", Panes(window, ["k"], aggregates), [source]))
    meld = graph.add("meld", Meld(2), ends)
    last = graph.add("paned", Paned(Windowing(window, ["k"], aggregates, pl.Int64())), [meld])
    last = graph.add("select", Select(pl.col("n") > 0), [last])
    graph.add("columns", Project([pl.col("k"), pl.col("window_end"), pl.col("n")]), [last])
    return graph


def told(items):
    return [item.rows() if isinstance(item, pl.DataFrame) else item for item in items]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1), st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), max_size=4), st.booleans()
    ),
    max_size=10,
)


@CHECK
@given(STEPS)
def test_a_graph_restored_from_its_changes_goes_on_as_if_nothing_had_happened(steps):
    straight, broken, disk = query(), query(), {}
    out, resumed = [], []
    for port, rows, restore in steps:
        frame = pl.DataFrame(rows, schema={"@t": pl.Int64, "k": pl.String}, orient="row")
        out += straight.on_batch(port, frame)
        if restore:
            for name, chunk in broken.changes().items():
                if chunk is None:
                    del disk[name]
                else:
                    disk[name] = chunk
            broken = query()
            broken.restore(dict(disk))
        resumed += broken.on_batch(port, frame)
    for port in (0, 1):
        out += straight.on_punctuation(port, Punctuation(END))
        resumed += broken.on_punctuation(port, Punctuation(END))
    kept = [sorted(map(repr, i)) if isinstance(i, list) else i for i in told(out)]
    assert [sorted(map(repr, i)) if isinstance(i, list) else i for i in told(resumed)] == kept
    assert broken.waits_for() == straight.waits_for()


def test_state_is_named_by_number_and_name_of_its_operator():
    graph = query()
    graph.on_batch(0, pl.DataFrame({"@t": [1], "k": ["a"]}))
    assert {name.split("/")[0] for name in graph.snapshot()} == {"0-punctuate", "2-punctuate", "4-meld", "5-paned"}
    assert {name for name in graph.changes() if name.startswith("0-")} == {
        "0-punctuate/promised",
        "0-punctuate/reached",
    }
    assert graph.changes() == {}


def test_each_operator_gets_back_its_own_state_even_if_names_begin_alike():
    def made():
        graph = Graph()
        for n in range(12):
            graph.add("same", Punctuate(0), [n - 1] if n else [])
        graph.input(0)
        return graph

    graph = made()
    for n, node in enumerate(graph.nodes):
        node.operator.on_punctuation(0, Punctuation(n))
    copy = made()
    copy.restore(graph.snapshot())
    assert [node.operator.promised for node in copy.nodes] == list(range(12))


def test_restoring_nothing_starts_every_operator_anew():
    graph = query()
    graph.on_batch(0, pl.DataFrame({"@t": [100], "k": ["a"]}))
    assert graph.state_bytes() > query().state_bytes()
    graph.restore({})
    assert graph.state_bytes() == query().state_bytes()
    assert graph.nodes[0].operator.promised < 0


class Waiting(Stateless):
    def __init__(self, *promises):
        self.promises = promises

    def waits_for(self):
        return [Wait(port, promise, 0, "rows", 1) for port, promise in enumerate(self.promises)]


def test_a_graph_says_what_each_of_its_operators_waits_for():
    inner, graph = Graph(), Graph()
    inner.add("held", Waiting(3))
    for name, operator in (("none", Waiting()), ("both", Waiting(7, 5)), ("inner", inner)):
        graph.add(name, operator)
    found = [(wait.at, wait.port, wait.promise) for wait in graph.waits_for()]
    assert found == [("1-both", 0, 7), ("1-both", 1, 5), ("2-inner/0-held", 0, 3)]
    assert Graph().waits_for() == []
