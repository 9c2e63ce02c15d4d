"""ATR: which node holds what, and does what."""

import polars as pl
import pytest
from mesh import Mesh, held, stream

from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import ATR
from windrow.windows.multiway import Ranges

WINDOW, COUNT = 10, 80
TIMES = list(range(COUNT))
JOINING = Joining(Ranges((WINDOW, WINDOW)), (("a",), ("b",)))
NEAR = sum(abs(a - b) < WINDOW for a in TIMES for b in TIMES)


class Watched(Mesh):
    """``most``: the most rows that all nodes have held at the same time."""

    most = 0

    def seen(self):
        self.most = max(self.most, sum(len(rows) for n in (0, 1) for rows in held(self, n)))


def joined(nodes, segment=None):
    mesh = Watched(ATR, JOINING, Wishes(nodes, nodes, segment=segment), flight=1)
    mesh.round({0: stream("a", TIMES), 1: stream("b", TIMES)})
    return mesh


@pytest.mark.parametrize("segment", [10, 20, 40])
def test_rows_near_a_border_have_copies(segment):
    """Of the other stream those within a window of it, on both sides; of the master none."""
    mesh = joined(4, segment)
    assert sum(node.work.inserted for node in mesh.nodes) == 2 * COUNT + COUNT // segment * 2 * (WINDOW - 1)
    assert len(mesh.found) == NEAR


def test_nothing_is_tried_twice():
    assert [sum(node.work.pairs for node in joined(nodes, 5).nodes) for nodes in (1, 5)] == [NEAR] * 2


def test_the_state_grows_with_the_number_of_nodes_where_segments_are_short():
    one, two, four = (joined(nodes, 5).most for nodes in (1, 2, 4))
    assert one < two < four
    # Where they are long there are no more than two at a time with rows that are held.
    assert joined(8, 40).most == joined(2, 40).most


def test_the_state_grows_as_segments_get_shorter():
    found = [joined(8, segment).most for segment in (5, 10, 20)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 3


def test_segments_go_round_and_leave_when_nothing_can_meet_them():
    mesh = Mesh(ATR, JOINING, Wishes(3, 3, segment=20))
    for begin in range(0, COUNT, 20):
        times = list(range(begin, begin + 20))
        mesh.round({0: stream("a", times), 1: stream("b", times)})
        node = begin // 20 % 3
        assert held(mesh, 0) == [list(range(begin + 10, begin + 20)) if n == node else [] for n in range(3)]
        live = [report["live"] for report in mesh.first.reports]
        assert [sum(rows) for rows in zip(*live, strict=True)] == [WINDOW, WINDOW]
    assert [sum(report["held"]) for report in mesh.first.reports] == [2 * WINDOW, WINDOW - 1, 0]


def test_a_node_that_gets_nothing_for_long_lets_go_inside_a_round():
    assert joined(4, 40).most < 4 * WINDOW


def test_segments_stay_where_they_are_when_nodes_come_and_go():
    mesh = Mesh(ATR, JOINING, Wishes(4, 2, segment=4))
    for number, nodes in enumerate([2, 4, 4, 1, 3]):
        mesh.first.tuning.resize(nodes)
        mesh.first.tuning.wishes = Wishes(4, nodes, segment=4 + number % 2)
        times = list(range(number * 15, number * 15 + 15))
        mesh.round({0: stream("a", times), 1: stream("b", times)})
    assert len(mesh.found) == sum(abs(a - b) < WINDOW for a in range(75) for b in range(75))
    assert len(set(mesh.found)) == len(mesh.found)
    assert all(node.work.inserted for node in mesh.nodes)


def test_every_row_is_at_every_node_where_all_windows_are_rows_but_those_of_the_master():
    joining = Joining(Ranges((3, 2, 2), (True, True, True)), (("a",), ("b",), ("c",)))
    mesh = Mesh(ATR, joining, Wishes(3, 3, segment=2))
    mesh.round({0: stream("a", [1, 2, 3, 4]), 1: stream("b", [1, 5]), 2: stream("c", [2, 6])})
    assert [node.work.inserted for node in mesh.nodes] == [6, 6, 4]
    assert held(mesh, 0) == [[1], [2, 3], []]
    assert held(mesh, 1) == [[0, 1]] * 3


def test_a_row_of_another_stream_meets_the_master_first():
    """So a pair of others that nothing of the master is near to is not tried, and no pair is tried at two nodes."""
    tests = (Check(("b", "c"), pl.col("b") >= 0),)
    joining = Joining(Ranges((5, 5, 5)), (("a",), ("b",), ("c",)), tests)
    mesh = Mesh(ATR, joining, Wishes(2, 2, segment=5, ordered=((1, 2), (2, 0), (1, 0))))
    mesh.round({0: stream("a", [0, 1, 2]), 1: stream("b", [8]), 2: stream("c", [9])})
    assert sum(node.work.pairs for node in mesh.nodes) == 0
