"""Ways to spread a join over nodes that are connected over TCP find what they find with all nodes in one place."""

import threading

import polars as pl
import pytest

from windrow.hosts.ring.links import Listener, TcpLinks
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.way import WAYS
from windrow.progress import Punctuation
from windrow.windows.multiway import Ranges

NODES = 3
JOINING = Joining(Ranges((12, 9, 4), (False, False, True)), (("a",), ("b",), ("c",)), (Check(("a",), pl.col("a") > 1),))
WISHES = Wishes(NODES, NODES, segment=7)
ROUNDS = (40, 80, 81)  # what all streams promise at the end of each


def rows(stream, since, until):
    times = range(since + stream, until, 3 + stream)
    return pl.DataFrame({"abc"[stream]: times, "@t": times}, schema={"abc"[stream]: pl.Int64(), "@t": pl.Int64()})


def fed(ring, since, until):
    for stream in range(3):
        if ring.links is None or ring.links.node == 0:  # the first node has all rows
            ring.on_batch(stream, rows(stream, since, until))
    found = [item for stream in range(3) for item in ring.on_punctuation(stream, Punctuation(until))]
    return [row for item in [*found, *ring.on_flush()] if isinstance(item, pl.DataFrame) for row in item.rows()]


def node(ring, links, found):
    ring.connect(links)
    for since, until in zip((0, *ROUNDS), ROUNDS, strict=False):
        found.append(fed(ring, since, until))


@pytest.mark.parametrize("way", WAYS)
def test_nodes_over_tcp_find_what_they_find_in_one_place(way):
    alone = Ring(JOINING, WISHES, way=WAYS[way])
    expected = [fed(alone, since, until) for since, until in zip((0, *ROUNDS), ROUNDS, strict=False)]
    assert len(expected[0]) > 20
    assert len(expected[1]) > 20
    listeners = [Listener() for _ in range(NODES)]
    links = [TcpLinks(n, listeners[n], [each.address for each in listeners], b"s" * 32) for n in range(NODES)]
    found = [[] for _ in range(NODES)]
    threads = [
        threading.Thread(target=node, args=(Ring(JOINING, WISHES, way=WAYS[way]), links[n], found[n]), daemon=True)
        for n in range(NODES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in links:
        each.close()
    for number, meant in enumerate(expected):
        assert sorted(row for own in found for row in own[number]) == sorted(meant)
    assert sum(any(own) for own in found) > 1  # not one node alone has found them all
