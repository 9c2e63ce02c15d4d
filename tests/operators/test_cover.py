"""The weighted set cover against all sets of nodes."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.operators.ring.cover import cover, spread

NODES = 5
segments = st.lists(st.sets(st.integers(0, NODES - 1), min_size=1, max_size=3).map(sorted), min_size=1, max_size=7)
weighing = st.lists(st.sampled_from([1, 1.5, 2, 7]), min_size=NODES, max_size=NODES)


def covers(holders, chosen):
    return all(any(node in nodes for node in chosen) for nodes in holders)


def least(holders, weights):
    """The least weight of any cover."""
    sets = (some for size in range(NODES + 1) for some in combinations(range(NODES), size))
    return min(sum(weights[node] for node in some) for some in sets if covers(holders, some))


@given(segments, weighing)
def test_the_cover_is_near_the_best_and_has_no_node_too_many(holders, weights):
    chosen = cover(holders, weights)
    assert covers(holders, chosen)
    assert not any(covers(holders, [other for other in chosen if other != node]) for node in chosen)
    largest = max(sum(node in nodes for nodes in holders) for node in range(NODES))
    bound = sum(1 / size for size in range(1, largest + 1))
    assert sum(weights[node] for node in chosen) <= bound * least(holders, weights) + 1e-9


@pytest.mark.parametrize(
    ("holders", "weights", "chosen"),
    [
        ([], [1], []),
        ([(0, 1), (0, 2), (0, 3)], [1, 1, 1, 1], [0]),
        ([(0, 1), (0, 2), (0, 3)], [9, 1, 1, 1], [1, 2, 3]),  # node 0 has too much to do
        ([(0,), (0, 1)], [9, 1], [0]),  # node 1 comes first, and is not needed then
    ],
)
def test_covers_that_are_known(holders, weights, chosen):
    assert cover(holders, weights) == chosen


@given(segments, weighing)
def test_every_segment_is_probed_at_one_of_its_nodes(holders, weights):
    chosen = cover(holders, weights)
    at = spread(holders, [1] * len(holders), chosen)
    assert all(node in nodes and node in chosen for node, nodes in zip(at, holders, strict=True))
    assert set(at) == set(chosen)  # of a cover without a node too many every node has something to do
