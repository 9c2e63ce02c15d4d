"""break-nodes: what buffers hold at most during bursts, without break nodes and with break nodes placed by Chain.

Batches of a hundred rows come in bursts, faster than a path of selections can take them, and then none until all is
done. Each selection passes a share of the rows and takes a time per row, both fixed: everything is in virtual time.
The graph is broken by what a first burst has shown, and then gets the same bursts as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.virtual import ARRIVED, Arrival, Virtual, latencies
from windrow.graph import BFS, DFS, Graph, Strategy, place
from windrow.operators import Select
from windrow.operators.operator import Item
from windrow.spec.names import PROGRESS

ROWS = 100  # in a batch
BURST, BURSTS = 60, 3  # batches in one, and how many of them
OVERLOAD = 3  # times as fast as they can be taken
RANDOM = 24  # random paths


class Stage(NamedTuple):
    """A selection: nanoseconds per row, and the share of rows that pass."""

    cost: int
    passes: float


PATHS: dict[str, list[Stage]] = {
    "early": [Stage(100, 0.2), Stage(500, 1.0)],  # the example of Babcock et al.: both take as long for a batch
    "middle": [Stage(100, 0.9), Stage(100, 0.1), Stage(1000, 0.9), Stage(1000, 0.5)],
    "late": [Stage(100, 1.0), Stage(100, 0.9), Stage(100, 0.1)],
}
HELPED = "middle"  # BFS delays the cheap selection that frees most, DFS runs what comes after it too early
BATCH = ROWS * 3 * 8  # bytes
NEVER = afterwards(
    "with placed break nodes buffers never hold more than with DFS or BFS without any, up to one batch",
    "up to one batch",
)
CLEARLY = afterwards(
    f"on the path '{HELPED}' they hold at most 0.7 times as much as with the better of DFS and BFS", "this path"
)
WAYS: dict[str, tuple[Strategy, bool]] = {"dfs": (DFS, False), "bfs": (BFS, False), "placed": (DFS, True)}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All ways over named and random paths; ``--quick`` has a third of the random ones."""
    paths = PATHS | {f"random{n}": random_path(n) for n in range(RANDOM // 3 if quick else RANDOM)}
    figures: dict[str, float] = {}
    for done, (name, path) in enumerate(paths.items()):
        say(f"path {name}", done / len(paths))
        for way in WAYS:
            peak, latency = measured(path, way)
            figures[f"peak_bytes_{way}_{name}"] = peak
            if name in PATHS:
                figures[f"latency_ms_{way}_{name}"] = latency
    above = {name: figures[f"peak_bytes_placed_{name}"] - _better(figures, name) for name in paths}
    figures["most_bytes_above"] = max(above.values())
    ratios = {name: round(figures[f"peak_bytes_placed_{name}"] / _better(figures, name), 3) for name in paths}
    holds = claims(figures, list(paths))
    curves = {NEVER: above, CLEARLY: ratios}
    return Outcome(figures, holds, lambda figure: plot(figure, figures, list(paths)), curves)


def random_path(seed: int) -> list[Stage]:
    rng = np.random.default_rng(seed)
    return [Stage(int(rng.integers(1, 11)) * 100, round(float(rng.uniform(0.05, 1)), 2)) for _ in range(5)]


def graph_of(path: Sequence[Stage], strategy: Strategy) -> Graph:
    """A path of selections."""
    graph = Graph(strategy)
    left, before = 1.0, list[int]()
    for stage in path:
        left *= stage.passes
        before = [graph.add("select", Select(pl.col("x") < left), before)]
    graph.input(0)
    return graph


def bursts(path: Sequence[Stage], count: int) -> list[Arrival]:
    """The ``x`` of a batch are spread evenly, so that every batch loses the same share."""
    rng = np.random.default_rng(7)
    left, needed = 1.0, 0.0  # the time for one batch
    for stage in path:
        needed += left * stage.cost * ROWS
        left *= stage.passes
    found = []
    for burst in range(count):
        for place_in_burst in range(BURST):
            at = int(burst * 2 * BURST * needed + place_in_burst * needed / OVERLOAD)
            xs = (rng.permutation(ROWS) + 0.5) / ROWS
            batch = pl.DataFrame({PROGRESS: [at] * ROWS, ARRIVED: [at] * ROWS, "x": xs})
            found.append(Arrival(at, 0, batch))
    return found


def measured(path: Sequence[Stage], way: str) -> tuple[float, float]:
    """The most bytes in buffers, and the mean latency of a row in milliseconds."""
    strategy, placed = WAYS[way]
    graph = graph_of(path, strategy)

    def service(node: int, item: Item, waiting: int) -> int:  # noqa: ARG001
        return path[node].cost * item.height if isinstance(item, pl.DataFrame) else 0

    if placed:
        list(Virtual(graph, bursts(path, 1), service).results())
        place(graph, {node: stage.cost for node, stage in enumerate(path)})
    virtual = Virtual(graph, bursts(path, BURSTS), service)
    waited = latencies(list(virtual.results()))
    return virtual.peak_bytes, round(float(np.mean(waited)) / 1e6, 3)


def claims(figures: Mapping[str, float], paths: Sequence[str]) -> dict[str, bool]:
    """What break nodes are for."""
    placed = {name: figures[f"peak_bytes_placed_{name}"] for name in paths}
    return {
        NEVER: all(peak <= _better(figures, name) + BATCH for name, peak in placed.items()),
        CLEARLY: placed[HELPED] <= 0.7 * _better(figures, HELPED),
    }


def _better(figures: Mapping[str, float], name: str) -> float:
    return min(figures[f"peak_bytes_{way}_{name}"] for way in ("dfs", "bfs"))


def plot(figure: Any, figures: Mapping[str, float], paths: Sequence[str]) -> None:
    """Peaks of the named paths, and those of all paths relative to DFS."""
    named, all_of = figure.subplots(1, 2)
    for number, way in enumerate(WAYS):
        heights = [figures[f"peak_bytes_{way}_{name}"] / 1000 for name in PATHS]
        named.bar([x + 0.27 * number for x in range(len(heights))], heights, 0.27, label=way)
    named.set_xticks([x + 0.27 for x in range(len(PATHS))], list(PATHS))
    named.set(ylabel="peak of buffers in kB, virtual time", xlabel="path")
    named.legend()
    for way in ("bfs", "placed"):
        ratios = [figures[f"peak_bytes_{way}_{p}"] / figures[f"peak_bytes_dfs_{p}"] for p in paths]
        all_of.plot(sorted(ratios), ".-", label=way)
    all_of.axhline(1, color="gray", linestyle="--")
    all_of.set(ylabel="peak relative to DFS", xlabel="paths, named and random, by ratio")
    all_of.legend()


BREAK_NODES = Experiment(
    "break-nodes", "what buffers hold during bursts, with break nodes where Chain puts them", run, "Bai section 3"
)
