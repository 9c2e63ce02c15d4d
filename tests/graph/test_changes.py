"""Changes of a running graph: what is in flight stays, others go on, and what cannot be is refused."""

import polars as pl
import pytest

from windrow.errors import GraphError
from windrow.graph import BFS, Graph
from windrow.operators.operator import Stateless
from windrow.progress import Punctuation


class Passing(Stateless):
    def __init__(self, log=None, name=""):
        self.log, self.name = log, name

    def on_batch(self, port, batch):
        if self.log is not None:
            self.log.append(self.name)
        return [batch]


class Failing(Passing):
    def on_batch(self, port, batch):
        raise ValueError("no")

    def on_flush(self):
        raise ValueError("no")


def rows(*values):
    return pl.DataFrame({"x": values}, schema={"x": pl.Int64})


def found(out):
    return sorted((node, item["x"].to_list()) for node, item in out)


def pair(*operators):
    """Two ends behind one node."""
    graph = Graph()
    first = graph.add("first", Passing())
    graph.input(first)
    return graph, [graph.add("end", operator, [first]) for operator in operators or (Passing(), Passing())]


# -- buffers ---------------------------------------------------------------------------------------------------------
def test_what_several_read_is_held_once_until_all_have_read_it():
    graph, ends = pair()
    memory = graph.measure()
    graph.set_strategy(BFS)
    graph.put(0, rows(1, 2, 3))
    assert (memory.rows, memory.bytes) == (3, 24)
    graph.step()
    assert (memory.rows, memory.bytes) == (3, 24)  # now in the buffer behind the first
    graph.step()
    assert memory.rows == 3
    graph.step()
    assert (memory.rows, memory.bytes, memory.peak_rows, memory.peak_bytes) == (0, 0, 3, 24)
    assert memory.flows[ends[0]].rows_in == memory.flows[0].rows_out == 3


def test_measuring_may_begin_while_something_is_in_flight():
    graph, ends = pair()
    graph.put(0, rows(1))
    graph.run(2)
    memory = graph.measure()
    assert memory.rows == 1
    graph.remove([ends[0] if graph.more(ends[0]) else ends[1]])
    assert memory.rows == 0


# -- adding and removing ---------------------------------------------------------------------------------------------
def test_an_operator_added_behind_another_gets_what_comes_from_now_on():
    graph, (left, right) = pair()
    graph.put(0, rows(1))
    graph.step()
    late = graph.add("late", Passing(), [0])
    assert found(graph.run()) == [(left, [1]), (right, [1])]
    assert found(graph.feed(0, rows(2))) == [(left, [2]), (right, [2]), (late, [2])]


def test_an_operator_may_be_added_behind_an_end_and_behind_an_output():
    graph, (left, right) = pair()
    graph.output(left)
    new = [graph.add("new", Passing(), [end]) for end in (left, right)]
    assert found(graph.feed(0, rows(1))) == [(left, [1]), *((n, [1]) for n in new)]


def test_removed_nodes_take_with_them_what_only_they_would_have_read():
    graph, (left, right) = pair()
    graph.put(0, rows(1))
    graph.step()
    graph.remove([left])
    assert found(graph.run()) == [(right, [1])]
    assert [node.number for node in graph.nodes] == [0, right]


def test_numbers_stay_and_names_do_not_collide_after_a_removal():
    graph = Graph()
    graph.scope = "q"
    a, b = graph.add("x", Passing()), graph.add("x", Passing())
    graph.remove([a])
    c = graph.add("x", Passing())
    assert [(n.number, n.name) for n in graph.nodes] == [(b, "q/1-x"), (c, "q/2-x")]
    assert graph.next_number == 3
    graph.remove([b, c])
    graph.add("x", Passing())
    assert graph.nodes[0].name == "q/0-x"  # a scope that is built anew has the names of the first time


def test_what_others_read_is_not_removed():
    graph, (left, _) = pair()
    with pytest.raises(GraphError, match="0-first cannot be removed: others read its output"):
        graph.remove([0, left])
    assert len(graph.nodes) == 3
    with pytest.raises(GraphError, match="no node 7"):
        graph.remove([7])


def test_an_input_that_feeds_nothing_any_more_is_refused():
    graph, ends = pair()
    graph.remove([0, *ends])
    with pytest.raises(GraphError, match="input 0 feeds nothing"):
        graph.feed(0, rows(1))
    with pytest.raises(GraphError, match="no input 1"):
        graph.feed(1, rows(1))


def test_an_input_may_feed_several_nodes():
    graph = Graph()
    a, b = graph.add("a", Passing()), graph.add("b", Passing())
    graph.tap(graph.input(a), b)
    assert graph.inputs == [[(a, 0), (b, 0)]]
    assert found(graph.feed(0, rows(1))) == [(a, [1]), (b, [1])]


def test_a_cycle_is_refused():
    graph = Graph()
    a = graph.add("a", Passing())
    b = graph.add("b", Passing(), [a])
    for node, to in ((b, a), (a, a)):
        with pytest.raises(GraphError, match="would make a cycle"):
            graph.connect(node, to, 1)
    assert len(graph.on_batch(graph.input(a), rows(1))) == 1


def test_a_break_node_that_is_not_there_is_not_taken_out():
    graph, _ = pair()
    with pytest.raises(GraphError, match="no break node behind 0-first"):
        graph.join_at(0)


# -- shares ----------------------------------------------------------------------------------------------------------
def test_components_get_steps_by_their_shares():
    graph, log = Graph(), []
    for name in "ab":
        graph.input(graph.add(name, Passing(log, name)))
    graph.turn = 1
    graph.set_share(3, [0])
    for _ in range(20):
        graph.put(0, rows(1))
        graph.put(1, rows(1))
    graph.run(16)
    assert (log.count("a"), log.count("b")) == (12, 4)
    graph.run()
    assert (log.count("a"), log.count("b")) == (20, 20)


def test_a_component_that_had_nothing_to_do_has_saved_nothing_up():
    graph, log = Graph(), []
    for name in "ab":
        graph.input(graph.add(name, Passing(log, name)))
    graph.turn = 1
    for _ in range(30):
        graph.put(0, rows(1))
    graph.run(20)
    for _ in range(10):
        graph.put(1, rows(1))
    log.clear()
    graph.run(10)
    assert (log.count("a"), log.count("b")) in ((5, 5), (4, 6))


def test_a_component_of_higher_priority_runs_first():
    graph, log = Graph(), []
    for name in "ab":
        graph.input(graph.add(name, Passing(log, name)))
    graph.set_priority(1, [1])
    graph.put(0, rows(1))
    graph.put(1, rows(1))
    graph.run()
    assert log == ["b", "a"]
    with pytest.raises(GraphError, match="greater than 0"):
        graph.set_share(0, [0])


# -- errors ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", [0, 1])
def test_an_operator_that_raises_can_be_removed_and_the_others_go_on(place):
    operators = [Passing(), Passing()]
    operators[place] = Failing()
    graph, ends = pair(*operators)
    told = []

    def handler(node, error):
        told.append((node, str(error)))
        graph.remove([node])
        return True

    graph.on_error = handler
    other = ends[1 - place]
    assert found(graph.feed(0, rows(1))) == [(other, [1])]
    assert found(graph.feed(0, rows(2))) == [(other, [2])]
    assert told == [(ends[place], "no")]


def test_an_error_that_nobody_handles_propagates():
    graph, _ = pair(Failing())
    with pytest.raises(ValueError, match="no"):
        graph.feed(0, rows(1))
    graph.on_error = lambda node, error: False
    with pytest.raises(ValueError, match="no"):
        graph.flush()


def test_an_error_of_a_flush_is_handled_the_same_way():
    graph, ends = pair(Failing(), Passing())
    graph.on_error = lambda node, error: graph.remove([node]) is None
    assert graph.flush() == []
    assert [node.number for node in graph.nodes] == [0, ends[1]]


# -- snapshots in the middle -----------------------------------------------------------------------------------------
def test_a_snapshot_includes_what_is_in_the_buffers():
    graph, _ = pair()
    promise = Punctuation(5, group=("a", 1), marks=(1, 5), reached=3, boxes=((1, 2),))
    graph.put(0, rows(1))
    graph.put(0, rows(2))
    graph.put(0, promise)
    graph.run(2)
    graph.step()
    copy = pair()[0]
    copy.restore(graph.snapshot())
    rest = [(node, item if isinstance(item, Punctuation) else item.rows()) for node, item in graph.run()]
    again = [(node, item if isinstance(item, Punctuation) else item.rows()) for node, item in copy.run()]
    assert rest
    assert sorted(map(repr, again)) == sorted(map(repr, rest))
    marks = [item.marks for _, item in again if isinstance(item, Punctuation)]
    assert set(marks) == {(1, 5)}


def test_changes_add_up_to_the_snapshot_and_buffers_leave_nothing_behind():
    graph, _ = pair()
    disk = {}
    for step in range(8):
        if step < 3:
            graph.put(0, rows(step))
        graph.step()
        for name, chunk in graph.changes().items():
            if chunk is None:
                del disk[name]
            else:
                disk[name] = chunk
        assert disk.keys() == graph.snapshot().keys()
    graph.run()
    assert graph.snapshot() == {}
    assert set(graph.changes().values()) <= {None}
