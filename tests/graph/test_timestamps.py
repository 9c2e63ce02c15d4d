"""Operators that work in order: registers, ETS on demand, and the enhanced graph (Bai et al., section 4)."""

import itertools

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.errors import GraphError
from windrow.graph import BFS, DFS, RR, Arc, Graph, Timestamps, batching
from windrow.operators import Meld, Paned, Panes, Select, Windowing
from windrow.progress import END, Punctuation
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=100)
STRATEGIES = [DFS, BFS, RR, batching(1), batching(3)]


def rows(*times):
    return pl.DataFrame({"@t": times, "x": times}, schema={"@t": pl.Int64, "x": pl.Int64})


def times(out):
    return [t for _, item in out if isinstance(item, pl.DataFrame) for t in item["@t"].to_list()]


def selected():
    return Select(pl.col("x") % 20 != 3)


def simple(strategy=DFS):
    """Figure 1: two selections and their union."""
    graph = Graph(strategy)
    ends = [graph.add(f"select{n}", selected()) for n in range(2)]
    for end in ends:
        graph.input(end)
    graph.add("union", Meld(2), ends, in_order=True)
    return graph


# -- registers -------------------------------------------------------------------------------------------------------
def test_rows_leave_in_order_and_wait_for_an_input_that_is_empty():
    graph = simple()
    assert times(graph.feed(0, rows(1, 5, 9))) == []
    assert times(graph.feed(1, rows(4, 6))) == [1, 4, 5, 6]
    assert times(graph.feed(1, rows(20))) == [9]
    assert times(graph.feed(0, Punctuation(30))) == [20]


def test_simultaneous_rows_are_all_taken():
    graph = simple()
    graph.feed(0, rows(5))
    assert times(graph.feed(1, rows(5, 5))) == [5, 5, 5]
    assert times(graph.feed(0, rows(5))) == [5]  # the register of the other input still has 5


def test_a_promise_sets_a_register_and_a_promise_about_a_group_does_not():
    graph = simple()
    graph.feed(0, rows(5))
    assert times(graph.feed(1, Punctuation(9, group="a"))) == []
    assert times(graph.feed(1, Punctuation(5))) == [5]


def test_rows_that_are_not_sorted_are_refused():
    with pytest.raises(GraphError, match="2-union takes rows in order, and rows on its port 0 are not sorted"):
        simple().feed(0, rows(5, 4))


def test_registers_are_part_of_a_snapshot():
    graph, copy = simple(), simple()
    graph.feed(0, rows(5, 7))
    graph.feed(1, rows(5))
    copy.restore(graph.snapshot())
    assert times(copy.feed(0, rows(8))) == times(graph.feed(0, rows(8))) == []
    assert times(copy.feed(1, rows(7))) == times(graph.feed(1, rows(7))) == [7, 7]


# -- ETS on demand ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("enhanced", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_with_ets_nothing_waits_for_a_silent_source(strategy, enhanced):
    graph, clock = simple(strategy), itertools.count(100)
    graph.enhanced = enhanced
    for port in range(2):
        graph.source(port, Timestamps.internal(lambda: next(clock)))
    out = graph.feed(0, rows(1, 2)) + graph.feed(0, rows(4))
    assert len(times(out)) == 3
    assert times(out) == sorted(times(out))
    assert min(times(out)) >= 100  # stamped on arrival


def test_depth_first_asks_as_soon_as_the_union_waits_and_breadth_first_after_the_burst():
    for strategy, left in ((DFS, 2), (BFS, 0)):
        graph = simple(strategy)
        graph.source(1, Timestamps.external(lambda: 100, delay=0))
        memory = graph.measure()
        for t in (5, 6, 7):
            graph.put(0, rows(t))
        out = []
        while not times(out):
            out += graph.step()
        assert times(out) == [5]
        assert 3 - memory.flows[0].rows_in == left
        assert times(graph.run()) == [6, 7]


def test_an_ets_that_does_not_help_ends_the_cycle():
    graph, clock = simple(), itertools.count(0)
    graph.source(1, Timestamps.external(lambda: next(clock), delay=50))
    assert times(graph.feed(0, rows(100))) == []
    assert next(clock) < 5  # a clock that always improves is not asked again and again


def test_latent_sources_and_sources_that_nobody_waits_for_are_not_asked():
    graph, calls = simple(), []
    graph.source(1, Timestamps.latent())
    assert times(graph.feed(0, rows(1))) == []
    other = Graph()
    other.input(other.add("select", selected()))
    other.source(0, Timestamps.external(lambda: calls.append(1) or 9, delay=0))
    assert times(other.feed(0, rows(1))) == [1]
    assert calls == []
    with pytest.raises(GraphError, match="at least 0"):
        Timestamps.external(lambda: 0, delay=-1)


def windowed(enhanced):
    window, aggregates = Sliding(10, 10), Partials([make("count", "n", None, pl.Int64())])
    graph = Graph()
    graph.enhanced = enhanced
    first = graph.add("select", selected())
    graph.input(first)
    panes = graph.add("panes", Panes(window, [], aggregates), [first])
    graph.add("paned", Paned(Windowing(window, [], aggregates, pl.Int64())), [panes])
    return graph


@pytest.mark.parametrize("enhanced", [False, True])
def test_an_operator_that_waits_for_a_promise_gets_one_without_working_in_order(enhanced):
    graph, now = windowed(enhanced), [3]
    graph.source(0, Timestamps.external(lambda: now[0], delay=2))
    assert [i for _, i in graph.feed(0, rows(1, 2, 4)) if isinstance(i, pl.DataFrame)] == []
    now[0] = 25
    (out,) = [i for _, i in graph.run() if isinstance(i, pl.DataFrame)]
    assert out["n"].to_list() == [3]


# -- the enhanced graph ----------------------------------------------------------------------------------------------
def test_figure_9_the_arc_of_a_path_skips_what_cannot_idle_wait():
    graph = Graph()
    q1 = graph.add("q1", selected())
    graph.input(q1)
    graph.add("q2", Meld(1), [q1], in_order=True)
    assert graph.ets_arcs() == [Arc("input0", "1-q2", 0)]


def nested(strategy=DFS):
    """Figure 10: a union of selections, a selection of that, and its union with another selection."""
    graph = Graph(strategy)
    selects = [graph.add(f"select{n}", selected()) for n in range(3)]
    for select in selects:
        graph.input(select)
    inner = graph.add("inner", Meld(2), selects[:2], in_order=True)
    after = graph.add("after", selected(), [inner])
    graph.add("outer", Meld(2), [after, selects[2]], in_order=True)
    return graph


def test_figure_10_arcs_lead_from_sources_and_unions_to_the_next_union():
    assert nested().ets_arcs() == [
        Arc("input0", "3-inner", 0),
        Arc("input1", "3-inner", 1),
        Arc("input2", "5-outer", 1),
        Arc("3-inner", "5-outer", 0),
    ]


def test_over_arcs_promises_pass_fewer_operators():
    promises = []
    for enhanced in (False, True):
        graph = nested()
        graph.enhanced = enhanced
        for port in range(3):
            graph.source(port, Timestamps.external(lambda: 100, delay=0))
        assert times(graph.feed(0, rows(5))) == [5]
        promises.append(graph.traffic.promises)
    assert promises[1] < promises[0]


MOVES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.integers(0, 4), max_size=3),
        st.sampled_from(["feed", "put", "step", "restore"]),
    ),
    max_size=20,
)


def replayed(moves, strategy, ets, enhanced):
    """Rows of three sources whose times are those of a clock, or up to 3 before."""
    now = [0]

    def made():
        graph = nested(strategy)
        graph.enhanced = enhanced
        for port in range(3) if ets else ():
            graph.source(port, Timestamps.external(lambda: now[0], delay=3))
        return graph

    graph, out, last = made(), [], [0, 0, 0]
    for source, gaps, how in moves:
        now[0] += 4
        given_times = sorted(max(last[source], now[0] - gap % 4) for gap in gaps)
        last[source] = max([last[source], *given_times])
        graph.put(source, rows(*given_times))
        if how == "feed":
            out += graph.run()
        elif how == "step":
            out += graph.step() or []
        elif how == "restore":
            state, graph = graph.snapshot(), made()
            graph.restore(state)
    for port in range(3):
        graph.put(port, Punctuation(END))
    out += graph.run()
    return times(out)


@CHECK
@given(MOVES, st.sampled_from(STRATEGIES))
def test_results_are_the_same_without_ets_with_it_and_over_arcs(moves, strategy):
    plain = replayed(moves, DFS, ets=False, enhanced=False)
    assert plain == sorted(plain)
    for ets, enhanced in ((False, False), (True, False), (True, True)):
        assert replayed(moves, strategy, ets, enhanced) == plain
