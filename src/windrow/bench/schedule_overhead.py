"""schedule-overhead: what a step of the query graph costs besides the operator, under each strategy.

Operators that hand on what they get, on a path of ten and in a graph with a fork and a union; a unit is one row. The
time of a step includes the call of the operator, the buffers, and the selection of the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import polars as pl

from windrow.bench.experiment import Experiment, Outcome
from windrow.graph import BFS, DFS, RR, Graph, Strategy, batching
from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch

STRATEGIES = (DFS, BFS, RR, batching(1))
ITEMS, REPEATS = 2_000, 7
LIMIT = 5.0  # microseconds


class HandOn(Stateless):
    """The cheapest operator there is."""

    def on_batch(self, port: int, batch: Batch) -> list[Item]:  # noqa: ARG002
        return [batch]


def path(strategy: Strategy) -> Graph:
    """Ten operators, one after the other."""
    graph = Graph(strategy)
    last = graph.add("first", HandOn())
    graph.input(last)
    for _ in range(9):
        last = graph.add("next", HandOn(), [last])
    return graph


def forked(strategy: Strategy) -> Graph:
    """Two branches of three operators behind a fork, and their union."""
    graph = Graph(strategy)
    first = graph.add("first", HandOn())
    graph.input(first)
    ends = []
    for _ in range(2):
        last = first
        for _ in range(3):
            last = graph.add("next", HandOn(), [last])
        ends.append(last)
    graph.add("union", HandOn(), ends)
    return graph


GRAPHS: dict[str, Callable[[Strategy], Graph]] = {"path": path, "fork": forked}


def us_per_step(graph: Graph, items: int) -> float:
    """Microseconds of CPU of a step, over so many rows that come at once."""
    row = pl.DataFrame({"x": [1]})
    for _ in range(items):
        graph.put(0, row)
    steps, began = 0, time.process_time()
    while (made := graph.steps(1 << 20)) > 0:
        steps += made
    return (time.process_time() - began) / max(1, steps) * 1e6


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """The best of several runs, strategies in turn."""
    items, repeats = (ITEMS // 4, REPEATS) if quick else (ITEMS, REPEATS)
    best: dict[str, float] = {}
    for repeat in range(repeats):
        say(f"run {repeat + 1} of {repeats}", repeat / repeats)
        for strategy in STRATEGIES:
            for shape, made in GRAPHS.items():
                key = f"us_per_step_{strategy}_{shape}"
                best[key] = min(best.get(key, float("inf")), us_per_step(made(strategy), items))
    figures = {f"us_per_step_{s}": round(max(best[f"us_per_step_{s}_{g}"] for g in GRAPHS), 3) for s in STRATEGIES}
    figures["us_per_step"] = max(figures.values())
    return Outcome(figures, claims(figures), lambda figure: plot(figure, best))


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """The bound of a step."""
    return {f"a step takes at most {LIMIT:g} µs under every strategy": figures["us_per_step"] <= LIMIT}


def plot(figure: object, best: Mapping[str, float]) -> None:
    """A bar for each strategy and graph."""
    axes = figure.subplots()  # type: ignore[attr-defined]
    for place, shape in enumerate(GRAPHS):
        heights = [best[f"us_per_step_{s}_{shape}"] for s in STRATEGIES]
        axes.bar([x + 0.4 * place for x in range(len(heights))], heights, 0.4, label=shape)
    axes.axhline(LIMIT, color="gray", linestyle="--")
    axes.set_xticks([x + 0.2 for x in range(len(STRATEGIES))], [s.name for s in STRATEGIES])
    axes.set_ylabel("µs per step")
    axes.legend()


SCHEDULE_OVERHEAD = Experiment(
    "schedule-overhead", "what a step of the query graph costs, under each strategy", run, "ours"
)
