"""The state table as the paper prints it (Bai et al., Tables 1 to 3), and the order of steps that follows from it."""

import polars as pl
import pytest

from windrow.errors import QueryError
from windrow.graph import BFS, DFS, RR, Graph, Row, batching
from windrow.operators.operator import Stateless
from windrow.progress import Punctuation


class Logged(Stateless):
    """Passes everything on, and writes down its name and how many rows it got."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def on_batch(self, port, batch):
        self.log.append((self.name, batch["x"].to_list()))
        return [batch]

    def on_punctuation(self, port, promise):
        self.log.append((self.name, promise.value))
        return [promise]


def rows(*values):
    return pl.DataFrame({"x": values}, schema={"x": pl.Int64})


def path(*names, strategy=DFS):
    graph, log, after = Graph(strategy), [], []
    for name in names:
        after = [graph.add(name, Logged(name, log), after)]
    graph.input(0)
    return graph, log


def forked(strategy=DFS):
    graph, log = Graph(strategy), []
    first = graph.add("select", Logged("a", log))
    for name, short in (("sum1", "b"), ("sum2", "c")):
        graph.add(name, Logged(short, log), [first])
    graph.input(first)
    return graph, log


def listed(graph):
    return [(row.state, row.pred, row.succ, row.transition) for row in graph.table().rows]


def ran(graph, log, items):
    for item in items:
        graph.put(0, item)
    graph.run()
    return "".join(name for name, _ in log)


def test_table_1_a_single_path():
    graph, _ = path("select", "sum1", "sum2")
    assert listed(graph) == [
        ("select", "-", "sum1", "DFS-Source"),
        ("sum1", "select", "sum2", "DFS-NOS"),
        ("sum2", "sum1", "-", "DFS-Sink"),
    ]


def test_table_2_a_virtual_break_node_is_a_sink_and_a_source():
    graph, _ = path("select", "sum1", "sum2")
    graph.break_at(1)
    assert listed(graph) == [
        ("select", "-", "sum1", "DFS-Source"),
        ("sum1", "select", "-", "DFS-Sink"),
        ("sum2", "-", "-", "DFS-Source-Sink"),
    ]
    graph.join_at(1)
    assert listed(graph) == listed(path("select", "sum1", "sum2")[0])


def test_table_3_a_fork_has_a_row_for_each_branch():
    graph, _ = forked()
    assert listed(graph) == [
        ("select", "-", "fork", "DFS-Source"),
        ("fork", "select", "sum1", "DFS-Fork"),
        ("fork", "select", "sum2", "DFS-Fork"),
        ("sum1", "fork", "-", "DFS-Sink"),
        ("sum2", "fork", "-", "DFS-Sink"),
    ]


def test_a_table_is_printed_with_aligned_columns():
    graph, _ = path("first", "second")
    assert str(graph.table()).splitlines() == [
        "state   pred   succ    transition",
        "first   -      second  DFS-Source",
        "second  first  -       DFS-Sink",
    ]
    assert graph.table().rows[0] == Row("first", "-", "second", "DFS-Source")


def test_nodes_of_the_same_name_are_told_apart():
    graph, _ = path("x", "x")
    assert [row.state for row in graph.table().rows] == ["0-x", "1-x"]


def test_another_strategy_is_another_table_and_parts_may_differ():
    graph, _ = path("a", "b", "c")
    graph.set_strategy(BFS)
    graph.set_strategy(RR, [2])
    assert [row.transition for row in graph.table().rows] == ["BFS-Source", "BFS-NOS", "RR-Sink"]
    graph.set_strategy(batching(7))
    assert [row.transition for row in graph.table().rows] == ["DFS-7-Source", "DFS-7-NOS", "DFS-7-Sink"]


def test_round_robin_breaks_a_graph_into_paths():
    graph, log = Graph(RR), []
    a = graph.add("a", Logged("a", log))
    b, c = graph.add("b", Logged("b", log), [a]), graph.add("c", Logged("c", log), [a])
    graph.add("d", Logged("d", log), [graph.add("u", Logged("u", log), [b, c])])
    assert listed(graph) == [
        ("a", "-", "-", "RR-Source-Sink"),
        ("b", "-", "-", "RR-Source-Sink"),
        ("c", "-", "-", "RR-Source-Sink"),
        ("u", "-", "d", "RR-Source"),
        ("d", "u", "-", "RR-Sink"),
    ]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(DFS, "abcabc"), (BFS, "aabbcc"), (RR, "aabbcc"), (batching(1), "abcabc"), (batching(2), "abc")],
)
def test_the_order_of_steps_on_a_path(strategy, expected):
    graph, log = path("a", "b", "c", strategy=strategy)
    assert ran(graph, log, [rows(1), rows(2)]) == expected


def test_a_break_node_makes_what_is_behind_it_wait_for_its_turn():
    graph, log = path("a", "b", "c")
    graph.break_at(0)
    assert ran(graph, log, [rows(1), rows(2)]) == "aabcbc"


def test_the_branches_of_a_fork_take_turns():
    graph, log = forked()
    assert ran(graph, log, [rows(1)]) == "abc"
    log.clear()
    assert ran(graph, log, [rows(2), rows(3)]) == "abcabc"


def test_a_batch_joins_and_slices_and_a_promise_closes_it_early():
    graph, log = path("a", strategy=batching(3))
    ran(graph, log, [rows(1), rows(2), rows(3, 4, 5, 6, 7), rows(8), Punctuation(9), rows(10), rows(11)])
    assert [said for _, said in log] == [[1, 2, 3], [4, 5, 6], [7, 8], 9, [10, 11]]


def test_a_step_takes_at_least_one_row():
    with pytest.raises(QueryError, match="at least one row"):
        batching(0)


def test_step_runs_one_operator_on_one_unit():
    graph, log = path("a", "b")
    assert graph.step() is None
    graph.put(0, rows(1))
    assert graph.step() == []
    assert log == [("a", [1])]
    (out,) = graph.step()
    assert (out[0], out[1].rows()) == (1, [(1,)])
    assert graph.step() is None


def test_run_stops_after_so_many_steps():
    graph, log = path("a", "b", "c")
    graph.put(0, rows(1))
    assert graph.run(2) == []
    assert [name for name, _ in log] == ["a", "b"]
    assert len(graph.run(5)) == 1
