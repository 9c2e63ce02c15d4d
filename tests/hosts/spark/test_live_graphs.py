"""The graphs that a worker keeps: of the right version only, bounded in bytes, none that another worker moved on."""

import polars as pl

from windrow.graph import Graph
from windrow.hosts.spark.live_graphs import LiveGraphs
from windrow.hosts.spark.wiring import Wiring
from windrow.operators.rows.dupelim import DupElim


def wiring(rows):
    graph = Graph()
    graph.input(graph.add("once", DupElim(["@t"])))
    graph.on_batch(0, pl.DataFrame({"@t": range(rows)}))
    return Wiring(graph)


def put(live, shard, version, wired, versions):
    versions[shard] = version
    live.put(("run", shard), version, wired, lambda place: versions.get(place[1]))


def test_a_graph_is_given_once_and_only_in_its_version():
    live, versions, wired = LiveGraphs(), {}, wiring(3)
    put(live, 0, "a", wired, versions)
    assert live.take(("run", 0), "a") is wired
    assert live.take(("run", 0), "a") is None
    put(live, 0, "b", wired, versions)
    assert live.take(("run", 0), None) is None
    put(live, 0, "b", wired, versions)
    assert live.take(("run", 0), "c") is None


def test_a_graph_that_another_worker_moved_on_is_dropped():
    live, versions = LiveGraphs(), {}
    put(live, 0, "a", wiring(3), versions)
    put(live, 1, "b", wiring(3), versions)
    versions[0] = "moved on"
    put(live, 2, "c", wiring(3), versions)
    assert [shard for _, shard in live.kept] == [1, 2]


def test_no_more_bytes_are_kept_than_allowed_and_the_least_recently_used_goes_first():
    size = wiring(1000).graph.state_bytes()
    live, versions = LiveGraphs(most_bytes=2 * size), {}
    for shard in range(4):
        put(live, shard, f"v{shard}", wiring(1000), versions)
    assert [shard for _, shard in live.kept] == [2, 3]
    put(live, 4, "v4", wiring(5000), versions)  # more than fits
    assert not live.kept
