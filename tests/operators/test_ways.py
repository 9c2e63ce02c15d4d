"""The ways to spread a join beside each other: the same results and failures, however messages overtake each other."""

import random
from collections import Counter

import polars as pl
import pytest
from mesh import Mesh, stream

import windrow as wr
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import RING, WAYS
from windrow.windows.multiway import Ranges

RANGES = Ranges((12, 7, 3), (False, False, True))
MASTER_FIRST = ((1, 2), (0, 2), (0, 1))  # so that all ways try the same


def fails(x, y):
    return 1 // ((x + y) % 5) == 0


def joining():
    function = wr.udf(fails, "BOOLEAN", "a", "b").function
    tests = (Check(("a", "b"), function=function), Check(("a", "c"), pl.col("a") >= pl.col("c")))
    return Joining(RANGES, (("a",), ("b",), ("c",)), tests)


def rounds(seed):
    """Rows of three streams, in rounds, with equal times and with gaps. The first one has most: it is the master."""
    chosen, now = random.Random(seed), 0
    for _ in range(3):
        rows = {}
        for of, (name, least) in enumerate(zip("abc", (8, 0, 0), strict=True)):
            times = sorted(now + chosen.randrange(25) for _ in range(least + chosen.randrange(8)))
            rows[of] = stream(name, times)
        yield rows
        now += chosen.choice([25, 25, 60])


def run(way, nodes, seed, mesh=Mesh, **wishes):
    chosen = random.Random(seed)
    made = mesh(WAYS[way], joining(), Wishes(nodes, nodes, ordered=MASTER_FIRST, **wishes), chosen.choice, flight=16)
    for rows in rounds(seed):
        made.round(rows)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_all_ways_find_and_report_the_same_in_any_order_of_messages(seed):
    alone = run("ring", 1, seed)
    assert alone.found
    assert alone.bad
    for way in WAYS:
        for nodes, segment in (3, 4), (5, None):
            other = run(way, nodes, seed, segment=segment)
            assert sorted(other.found) == sorted(alone.found)
            assert sorted(other.bad, key=str) == sorted(alone.bad, key=str)
            assert sum(n.work.pairs for n in other.nodes) == alone.nodes[0].work.pairs


class Once(Mesh):
    """Asserts after every step that no row is part of the state of two nodes."""

    def seen(self):
        for of in range(3):
            rows = [n for node in self.nodes for n in node.slices[of].numbers.tolist() if n >= node.slices[of].start]
            assert max(Counter(rows).values(), default=0) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_the_ring_never_has_a_row_twice(seed):
    run(RING.name, 4, seed, Once)


def test_segments_and_copies_must_be_positive():
    for wishes in {"segment": 0}, {"segment": -1}, {"copies": 0}:
        with pytest.raises(ValueError, match="must be positive"):
            Wishes(2, **wishes)
