"""Names of a graph stay what they are when other parts of it grow, and outputs say where they come from."""

import polars as pl

from windrow.graph import Graph
from windrow.operators import Punctuate, Select, Side
from windrow.operators.operator import Stateless
from windrow.progress import Punctuation


class Passing(Stateless):
    """Passes everything on, and what it is told to the side."""

    def __init__(self, side=None):
        self.side = side

    def on_batch(self, port, batch):
        return [batch] if self.side is None else [Side(self.side, batch.height), batch]

    def on_flush(self):
        return [pl.DataFrame({"x": [0]})]


def rows(*values):
    return pl.DataFrame({"x": values}, schema={"x": pl.Int64})


def built(before=0, inside=()):
    """A graph with a scope "b" between two others; ``before`` nodes of scope "a", and ``inside`` ends scope "b"."""
    graph = Graph()
    graph.scope = "a"
    for number in range(before):
        graph.add(f"a{number}", Passing())
    graph.scope = "b"
    for name in ("first", "second", *inside):
        graph.add(name, Passing())
    graph.scope = "c"
    graph.add("last", Passing())
    return graph


def names(graph):
    return [node.name for node in graph.nodes]


def test_names_count_inside_their_scope():
    assert names(built(2)) == ["a/0-a0", "a/1-a1", "b/0-first", "b/1-second", "c/0-last"]


def test_names_stay_when_another_scope_grows():
    small, large = names(built(0)), names(built(7, inside=["third"]))
    assert [n for n in large if n.startswith("b/")] == ["b/0-first", "b/1-second", "b/2-third"]
    assert set(small) <= set(large)


def test_a_scope_whose_name_begins_like_another_is_another():
    graph = Graph()
    for number in (1, 10, 1):
        graph.scope = f"stage{number}"
        graph.add("x", Passing())
    assert names(graph) == ["stage1/0-x", "stage10/0-x", "stage1/1-x"]


def test_without_a_scope_names_count_all_nodes():
    graph = built(1)
    graph.scope = ""
    graph.add("x", Passing())
    assert names(graph)[-1] == "4-x"


def marked(grown):
    """A graph whose second scope remembers how far its rows came."""
    graph = Graph()
    graph.scope = "one"
    for number in range(3 if grown else 1):
        graph.add(f"filter{number}", Select(pl.lit(True)))
    graph.scope = "two"
    graph.input(graph.add("mark", Punctuate(0)))
    return graph


def test_state_is_found_again_when_another_scope_has_grown():
    before, now = marked(False), marked(True)
    before.on_batch(0, pl.DataFrame({"@t": [10]}))
    state = before.snapshot()
    assert state
    assert all(name.startswith("two/0-mark/") for name in state)
    now.restore(state)
    assert now.snapshot().keys() == state.keys()
    assert now.on_batch(0, pl.DataFrame({"@t": [4]}))[1:] == []  # nothing new is promised: 10 is known


def forked():
    """One node that two others take, and that leaves the graph as well."""
    graph = Graph()
    first = graph.output(graph.add("first", Passing("bad")))
    left, right = graph.add("left", Passing(), [first]), graph.add("right", Passing(), [first])
    graph.input(first)
    return graph, first, left, right


def test_an_output_leaves_the_graph_although_others_take_it_too():
    graph, first, left, right = forked()
    found = graph.feed(0, rows(1, 2))
    data = [(node, item.rows()) for node, item in found if isinstance(item, pl.DataFrame)]
    assert sorted(data) == [(node, [(1,), (2,)]) for node in (first, left, right)]


def test_without_output_only_the_ends_leave():
    graph, _, left, right = forked()
    graph.outputs.clear()
    assert {node for node, item in graph.feed(0, rows(1)) if not isinstance(item, Side)} == {left, right}


def test_feed_says_the_node_of_rows_promises_and_sides():
    graph, first, left, right = forked()
    assert [node for node, item in graph.feed(0, rows(1)) if isinstance(item, Side)] == [first]
    promised = graph.feed(0, Punctuation(5))
    assert sorted(promised) == sorted((node, Punctuation(5)) for node in (first, left, right))
    assert [item for _, item in promised] == graph.on_punctuation(0, Punctuation(5))


def test_a_side_leaves_once_and_goes_to_nobody():
    graph, first, *_ = forked()
    sides = [(node, item.count) for node, item in graph.feed(0, rows(1, 2, 3)) if isinstance(item, Side)]
    assert sides == [(first, 3)]


def test_flush_says_the_node_too_and_later_nodes_see_what_earlier_ones_flush():
    graph, first, left, right = forked()
    found = [node for node, item in graph.flush() if isinstance(item, pl.DataFrame)]
    assert sorted(found) == [first, left, left, right, right]


def test_each_input_feeds_its_own_port_and_connections_come_on_top():
    graph = Graph()
    a, b = graph.add("a", Passing()), graph.add("b", Passing())
    graph.connect(a, b, 1)
    assert (graph.input(b), graph.input(a)) == (0, 1)
    assert graph.predecessors(b) == [a]
    assert [node for node, _ in graph.feed(0, rows(1))] == [b]
    assert [node for node, _ in graph.feed(1, rows(1))] == [b]
