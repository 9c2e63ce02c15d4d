"""CTR: which node holds what, where segments go, and when."""

from collections import Counter

import polars as pl
import pytest
from mesh import Mesh, held, stream

from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.way import CTR
from windrow.windows.multiway import Ranges

WINDOW, COUNT = 10, 80
JOINING = Joining(Ranges((WINDOW,) * 3), (("a",), ("b",), ("c",)), (Check(("a", "b"), pl.col("a") == pl.col("b")),))


class Watched(Mesh):
    """No row ever has more copies than it should."""

    def seen(self):
        for of in range(3):
            copies = Counter(number for numbers in held(self, of) for number in numbers)
            assert max(copies.values(), default=0) <= self.first.tuning.wishes.copies


def joined(nodes, copies, segment=7, flight=64):
    mesh = Watched(CTR, JOINING, Wishes(nodes, nodes, segment=segment, copies=copies), flight=flight)
    for begin in range(0, COUNT, 40):
        times = list(range(begin, begin + 40))
        mesh.round({0: stream("a", times), 1: stream("b", times), 2: stream("c", times)})
    return mesh


@pytest.mark.parametrize(("nodes", "copies"), [(1, 1), (4, 1), (5, 3), (2, 5)])
def test_every_row_is_held_by_as_many_nodes_as_it_has_copies(nodes, copies):
    mesh, there = joined(nodes, copies), min(copies, nodes)
    for of in range(3):
        rows = Counter(number for numbers in held(mesh, of) for number in numbers)
        assert rows == dict.fromkeys(range(COUNT - WINDOW, COUNT), there)
    assert sum(node.work.inserted for node in mesh.nodes) == 3 * COUNT * there


def test_the_state_does_not_grow_with_the_number_of_nodes():
    sizes = {sum(len(rows) for of in range(3) for rows in held(joined(nodes, 2), of)) for nodes in (2, 6)}
    assert sizes == {2 * 3 * WINDOW}


def test_all_nodes_have_something_to_do_and_nothing_is_tried_twice():
    one, many = joined(1, 1), joined(4, 2)
    pairs = [node.work.pairs for node in many.nodes]
    assert sum(pairs) == one.nodes[0].work.pairs
    assert min(pairs) > sum(pairs) / 16
    assert sorted(many.found) == sorted(one.found)
    assert len(set(many.found)) == len(many.found)


def test_a_segment_is_known_until_no_row_can_meet_it():
    mesh = joined(3, 2)
    for segments in mesh.first.routing.segments:
        assert [s.last for s in segments][-1] == COUNT
        assert all(s.end > COUNT - 1 - WINDOW for s in segments)
        assert sum(s.rows for s in segments) < WINDOW + 7


def test_segments_go_one_after_another():
    """The next one goes when the last hop of the one before has ended: nothing is on its way then."""
    mesh = Mesh(CTR, JOINING, Wishes(4, 4, segment=7))
    feed, times, routes = mesh.first.feed, list(range(40)), 0

    def watched():
        nonlocal routes
        before = sum(m.kind == Kind.PARTIALS for queue in mesh.queues.values() for m in queue)
        sent = [*feed()]
        going = any(m.kind == Kind.PARTIALS and m.level == 0 for m in sent if isinstance(m, Message))
        routes += going
        assert not (before and going)
        yield from sent

    mesh.first.feed = watched
    mesh.round({0: stream("a", times), 1: stream("b", times), 2: stream("c", times)})
    assert routes > 10


def test_rows_that_arrive_before_what_they_are_to_meet_wait_for_it():
    """What comes from one node says nothing about what another one has sent before."""

    def late_builds(ways):
        others = [way for way in ways if way is None or way[0] != 0]
        return others[0] if others else ways[-1]

    mesh = Mesh(CTR, JOINING, Wishes(4, 4, segment=7), choose=late_builds)
    early = 0

    def seen():
        nonlocal early
        early += any(node._early for node in mesh.nodes)

    mesh.seen = seen
    times = list(range(40))
    mesh.round({0: stream("a", times), 1: stream("b", times), 2: stream("c", times)})
    assert early
    expected = [(a, b, c, max(a, b, c)) for a in times for b in times for c in times if a == b and abs(a - c) < WINDOW]
    assert sorted(mesh.found) == sorted(expected)


def test_state_stays_where_it_is_when_nodes_come_and_go():
    mesh = Watched(CTR, JOINING, Wishes(5, 2, segment=3))
    for number, nodes in enumerate([2, 5, 1, 4]):
        mesh.first.tuning.wishes = Wishes(5, nodes, segment=3)
        times = list(range(number * 15, number * 15 + 15))
        mesh.round({0: stream("a", times), 1: stream("b", times), 2: stream("c", times)})
    times = range(60)
    assert len(mesh.found) == sum(abs(a - c) < WINDOW for a in times for c in times)
    assert all(node.work.inserted for node in mesh.nodes)
