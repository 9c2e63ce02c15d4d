"""Break nodes by the lower envelope of the progress chart (Chain, Babcock et al. 2003)."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import GraphError
from windrow.graph import BFS, Graph, Segment, place
from windrow.graph.chain import Point, envelope, paths, segments
from windrow.operators import Meld, Select

CHECK = settings(deadline=None, derandomize=True, max_examples=200)
BATCH = pl.DataFrame({"@t": [0] * 100, "x": [n / 100 for n in range(100)]})


def path(*passes, strategy=None):
    """Selections that each pass a share of what they get."""
    graph = Graph() if strategy is None else Graph(strategy)
    left, before = 1.0, []
    for share in passes:
        left *= share
        before = [graph.add("select", Select(pl.col("x") < left - 0.001), before)]
    graph.input(0)
    return graph


def measured(graph, inputs=1):
    graph.measure()
    for port in range(inputs):
        graph.feed(port, BATCH)
    return graph


# -- the envelope ----------------------------------------------------------------------------------------------------
def test_an_operator_that_frees_little_runs_with_the_one_after_it_that_frees_much():
    assert envelope([Point(0, 1), Point(1, 0.9), Point(2, 0)]) == [(2, 0.5)]
    assert envelope([Point(0, 1), Point(1, 0.2), Point(2, 0)]) == [(1, 0.8), (2, 0.2)]


def test_an_operator_whose_output_is_larger_runs_with_the_next_and_last_if_nothing_follows():
    assert envelope([Point(0, 1), Point(1, 3), Point(2, 0)]) == [(2, 0.5)]
    assert envelope([Point(0, 1), Point(1, 0.5), Point(2, 2)]) == [(1, 0.5), (2, -1.5)]


@CHECK
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=7))
def test_segments_get_flatter_and_no_point_is_below_them(given_points):
    chart, time = [Point(0, 10)], 0
    for cost, size in given_points:
        time += cost
        chart.append(Point(time, size))
    found = envelope(chart)
    slopes = [slope for _, slope in found]
    assert slopes == sorted(slopes, reverse=True)
    assert found[-1][0] == len(chart) - 1
    start = 0
    for end, slope in found:
        for point in chart[start : end + 1]:
            assert point.size >= chart[start].size - slope * (point.time - chart[start].time) - 1e-9
        start = end


# -- placing ---------------------------------------------------------------------------------------------------------
def test_break_nodes_and_priorities_follow_from_what_was_measured():
    graph = measured(path(0.9, 0.1, 0.9, 0.5))
    found = place(graph, {0: 1, 1: 1, 2: 10, 3: 10})
    assert [segment.nodes for segment in found] == [(0, 1), (2, 3)]
    assert graph.breaks == {1}
    assert [row.transition for row in graph.table().rows] == ["DFS-Source", "DFS-Sink", "DFS-Source", "DFS-Sink"]
    rows = [pl.DataFrame({"@t": [0], "x": [0.001]}), pl.DataFrame({"@t": [0], "x": [0.002]})]
    for row in rows:
        graph.put(0, row)
    for _ in range(4):  # both rows go through the steep segment before either of them goes on
        assert graph.step() == []
    assert not graph.more(0)
    assert not graph.more(1)
    assert len(graph.run()) == 2


def test_a_steeper_segment_runs_as_soon_as_it_has_input():
    graph = measured(path(0.9, 0.1, 0.9, 0.5))
    place(graph, {0: 1, 1: 1, 2: 10, 3: 10})
    graph.put(0, BATCH)
    for _ in range(3):
        graph.step()
    assert graph.more(3)
    graph.put(0, BATCH)
    graph.step()
    assert graph.more(1)
    assert graph.more(3)


def test_placing_again_takes_the_earlier_break_nodes_out():
    graph = measured(path(0.9, 0.1, 0.9, 0.5))
    graph.break_at(2)
    place(graph, {0: 1, 1: 1, 2: 10, 3: 10})
    assert graph.breaks == {1}
    (one,) = place(graph, {0: 100, 1: 100, 2: 1, 3: 1})
    assert one.nodes == (0, 1, 2, 3)
    assert graph.breaks == frozenset()


def test_paths_end_at_forks_and_begin_at_operators_with_several_inputs():
    graph = Graph()
    first, second = (graph.add(name, Select(pl.col("x") < 0.5)) for name in ("a", "b"))
    graph.input(first)
    graph.input(second)
    union = graph.add("union", Meld(2), [first, second])
    after = graph.add("after", Select(pl.col("x") < 0.1), [union])
    ends = [graph.add("end", Select(pl.col("x") >= 0), [after]) for _ in range(2)]
    assert paths(graph) == [[first], [second], [union, after], [ends[0]], [ends[1]]]
    place(measured(graph, inputs=2), dict.fromkeys(range(6), 1.0))
    assert graph.breaks == {first, second, after}
    assert len(graph.feed(0, BATCH)) == 2


def test_operators_that_nothing_reaches_run_with_the_last_that_takes_rows():
    graph = measured(path(0.5, 0.0, 0.5))
    assert segments(graph, dict.fromkeys(range(3), 1.0)) == [Segment((0, 1, 2), pytest.approx(16 / 1.5))]


def test_what_is_not_known_is_asked_for():
    graph = path(0.5, 0.5)
    with pytest.raises(GraphError, match=r"call measure\(\) and run some rows"):
        place(graph, {0: 1, 1: 1})
    graph.measure()
    with pytest.raises(GraphError, match="nothing has gone through 0-select"):
        place(graph, {0: 1, 1: 1})
    graph.feed(0, BATCH)
    with pytest.raises(GraphError, match="1-select needs the time that it takes for a row"):
        place(graph, {0: 1, 1: 0})


@pytest.mark.parametrize("strategy", [None, BFS])
def test_results_are_the_same_with_placed_break_nodes(strategy):
    plain, placed = path(0.9, 0.1, 0.9), measured(path(0.9, 0.1, 0.9, strategy=strategy))
    place(placed, {0: 1, 1: 1, 2: 10})
    for graph in (plain, placed):
        for _ in range(3):
            graph.put(0, BATCH)
    assert [b.rows() for _, b in placed.run()] == [b.rows() for _, b in plain.run()]
