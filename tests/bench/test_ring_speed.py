"""ring-speed: what its nodes do is right, and the claims fail where they should. Nothing here looks at a clock."""

import pytest
from matplotlib.figure import Figure

from windrow.bench import ring_speed
from windrow.bench.ring_nodes import in_ring
from windrow.bench.ring_speed_spark import figures_of
from windrow.bench.ring_work import HITS, Burn, Joined, bulk_links, bulk_nodes, hops, join
from windrow.errors import InternalError

FREE = Burn(0)


def meant(window, first, last):
    """What the timed round of ``join`` finds: the last row is one of that round, and the others are still held then."""
    rows = range(last)
    found = set()
    for a in rows:
        for b in rows:
            for c in rows:
                times = (a, b, c)
                latest = max(times)
                if latest >= first and latest - min(times) < window and FREE(a, b) and FREE(b, c):
                    found.add((a, b, c))
    return found


@pytest.mark.parametrize("nodes", [1, 2])
def test_rings_of_processes_find_what_is_meant(nodes):
    found = in_ring(nodes, join, FREE, 12, 8)
    rows = [row[:3] for node in found for row in node.rows]
    assert set(rows) == meant(12, 12, 20)
    assert len(rows) == len(set(rows)) > 10
    assert len(found[0].pairs) == nodes
    assert min(found[0].pairs) > 0


def test_about_one_pair_in_so_many_is_true():
    true = sum(FREE(x, y) for x in range(200) for y in range(200))
    assert true == pytest.approx(40_000 / HITS, rel=0.1)


def test_each_row_hops_from_every_node_but_the_last():
    times = in_ring(3, hops, 4, 5)
    assert [len(each) for each in times] == [10, 10, 0]
    assert all(gap > 0 for gap in ring_speed.gaps(times))


def test_bulk_goes_through_nodes_and_links():
    assert in_ring(2, bulk_nodes, 4, 50)[0] > 0
    for squeezed in (False, True):
        assert in_ring(2, bulk_links, 50, 4, squeezed=squeezed)[0] > 0


def _fails(links):
    if links.node == 1:
        raise ValueError("as asked")
    return links.receive(wait=True)


def test_a_ring_whose_node_fails_says_why():
    with pytest.raises(InternalError, match="as asked"):
        in_ring(2, _fails)


def test_figures_come_from_the_fastest_runs():
    one = [[Joined(2.0, 1.5, [100], [(1,)] * 10)], [Joined(4.0, 1.5, [100], [(1,)] * 10)]]
    two = [[Joined(1.0, 0.8, [55, 45], [(1,)] * 4), Joined(0.9, 0.7, [], [(1,)] * 6)]]
    found = ring_speed.scaled({1: one, 2: two})
    assert found["results_per_s_1"] == 5
    assert found["results_per_s_1_least"] == 2.5
    assert found["scaling_2"] == 2
    assert found["scaling_2_cpu"] == 1.875
    assert found["busy_2"] == 0.75
    assert found["largest_share_2"] == 0.55


def test_the_start_of_the_job_is_taken_off():
    burn = Burn(9)
    took = {(1, FREE): [2.0, 3.0], (2, FREE): [2.5], (1, burn): [12.0], (2, burn): [7.5, 9.0]}
    found = figures_of(took, burn, {7})
    assert found["scaling_2_spark"] == 2
    assert found["same_on_spark"] == 1


GOOD = {"scaling_2": 1.8, "us_per_hop": 100.0, "mb_per_s": 200, "scaling_2_spark": 1.8, "same_on_spark": 1.0}
GOOD |= {"us_per_hop_bare": 30.0, "mb_per_s_bare": 900, "mb_per_s_compressed": 300}


@pytest.mark.parametrize(
    ("name", "value"),
    [("scaling_2", 1.79), ("us_per_hop", 101), ("mb_per_s", 199), ("scaling_2_spark", 1.7), ("same_on_spark", 0)],
)
def test_claims_fail_beyond_their_bounds(name, value):
    assert all(ring_speed.claims(GOOD, equal=True).values())
    assert list(ring_speed.claims({**GOOD, name: value}, equal=True).values()).count(False) == 1
    assert list(ring_speed.claims(GOOD, equal=False).values()).count(False) == 1


def test_the_plot_has_three_panels():
    figure = Figure()
    ring_speed.plot(figure, GOOD, {1: [5.0, 4.0], 2: [9.0]})
    assert len(figure.axes) == 3
