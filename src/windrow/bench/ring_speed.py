"""ring-speed: how a ring of two nodes scales on two cores, and what a hop and a byte take.

Nodes are processes of this machine with TCP between them, and one Polars thread each, as tasks of Spark are. Rings of
one and of two nodes take turns; then the same join runs on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.ring_nodes import in_ring
from windrow.bench.ring_speed_spark import on_spark
from windrow.bench.ring_work import Burn, Joined, bare_hops, bulk_links, bulk_nodes, calibrated, cpu_seconds, hops, join

PAIR = 1e-3  # seconds of CPU
SCALING, HOP, BULK = 1.8, 100.0, 200.0  # the bounds of the claims: times, microseconds, MB/s
SIZES = (1, 2)  # nodes
HOP_WINDOW, HOP_NODES = 8, 3  # the last node sends no rows on: two of the three do
SHORT = 3  # runs of tuples for each of the others, which take far longer
BULK_WINDOW = 8  # units of time: with long windows the pairs take longer than the bytes
MB = 1e6
Say = Callable[[str, float], None]


@dataclass(frozen=True)
class Scope:
    """``window``, ``units``: of the join, how long rows are held and how much is timed; ``rounds``: how often all of it
    is measured; ``rows``: that hop; ``bulk``: rows that go through nodes, ``messages``: as many rows each, without;
    ``spark``: units of the join on Spark, 0: it is left out.
    """

    window: int
    units: int
    rounds: int
    rows: int
    bulk: int
    messages: int
    spark: int


WHOLE, QUICK = Scope(30, 20, 3, 500, 30_000, 200, 60), Scope(20, 15, 2, 200, 10_000, 50, 0)
BULK_ROWS = 2000  # of each message


def run(quick: bool, say: Say) -> Outcome:
    """The best run of each counts."""
    scope = QUICK if quick else WHOLE
    say("calibrating", 0.0)
    burn = calibrated(PAIR)
    figures = {"ms_per_pair": round(1e3 * cpu_seconds(burn, 20), 3)}
    spread, equal = scaling(burn, scope, figures, say)
    say("tuples", 0.5)
    figures |= hopped(scope)
    say("bulk", 0.6)
    figures |= carried(scope)
    missing: tuple[str, ...] = ("scaling_2_spark",)
    if scope.spark:
        say("Spark", 0.7)
        figures |= on_spark(burn, scope.window, scope.spark, scope.rounds, say)
        missing = ()
    found = claims(figures, equal)
    return Outcome(figures, found, lambda figure: plot(figure, figures, spread), not_measured=missing)


# -- how it scales -----------------------------------------------------------------------------------------------------
def scaling(burn: Burn, scope: Scope, figures: dict[str, float], say: Say) -> tuple[dict[int, list[float]], bool]:
    """Rings in turn. Returns results a second of each run by nodes, and whether all runs found the same."""
    runs: dict[int, list[list[Joined]]] = {nodes: [] for nodes in SIZES}
    for number in range(scope.rounds):
        for nodes in SIZES if number % 2 else reversed(SIZES):
            say(f"{nodes} nodes, run {number + 1} of {scope.rounds}", 0.5 * number / scope.rounds)
            runs[nodes].append(in_ring(nodes, join, burn, scope.window, scope.units))
    figures |= scaled(runs)
    found = {tuple(sorted(row for node in each for row in node.rows)) for all_ in runs.values() for each in all_}
    return {nodes: [rate(each) for each in all_] for nodes, all_ in runs.items()}, len(found) == 1 and () not in found


def rate(nodes: Sequence[Joined]) -> float:
    """Results a second: the round is over when the head says so."""
    return sum(len(node.rows) for node in nodes) / nodes[0].seconds


def scaled(runs: Mapping[int, Sequence[Sequence[Joined]]]) -> dict[str, float]:
    """Rates, and what stands behind them: the share of the time on the clock in which the nodes had a processor, the
    greatest share of the pairs at one node, and what the processor time alone would give.
    """
    figures: dict[str, float] = {}
    for nodes, every in runs.items():
        best = max(every, key=rate)
        rates = sorted(rate(each) for each in every)
        figures |= {f"results_per_s_{nodes}": round(rates[-1], 1), f"results_per_s_{nodes}_least": round(rates[0], 1)}
        figures[f"busy_{nodes}"] = round(sum(node.cpu for node in best) / (nodes * best[0].seconds), 3)
    one, two = (max(runs[nodes], key=rate) for nodes in SIZES)
    figures["pairs"] = sum(one[0].pairs)
    figures["largest_share_2"] = round(max(two[0].pairs) / sum(two[0].pairs), 3)
    figures["scaling_2"] = round(rate(two) / rate(one), 3)
    figures["scaling_2_cpu"] = round(one[0].cpu / max(node.cpu for node in two), 3)
    return figures


# -- tuples and bulk ---------------------------------------------------------------------------------------------------
def hopped(scope: Scope) -> dict[str, float]:
    """The median time from one node's sending a row on to the next one's, and that of a message by itself."""
    ring, bare = list[list[float]](), list[list[float]]()
    for _ in range(SHORT * scope.rounds):
        ring.append(gaps(in_ring(HOP_NODES, hops, HOP_WINDOW, scope.rows)))
    for _ in range(scope.rounds):
        [first, _other] = in_ring(2, bare_hops, scope.rows)
        bare.append([seconds / 2 for seconds in first[len(first) // 4 :]])  # the first ones connect
    return {
        "us_per_hop": least(ring),
        "us_per_hop_tenth": round(1e6 * min(sorted(each)[len(each) // 10] for each in ring), 1),
        "us_per_hop_bare": least(bare),
    }


def gaps(times: Sequence[Sequence[float]]) -> list[float]:
    """Seconds of each hop between nodes that send rows on.

    >>> gaps([[1.0, 2.0], [1.5, 2.25], []])
    [0.5, 0.25]
    """
    senders = [each for each in times if each]
    return [b - a for here, there in pairwise(senders) for a, b in zip(here, there, strict=True)]


def least(runs: Sequence[Sequence[float]]) -> float:
    """The least median, in microseconds."""
    return round(1e6 * min(median(each) for each in runs), 1)


def carried(scope: Scope) -> dict[str, float]:
    """MB of rows a second: through nodes that take them into their state, and over links alone."""
    nodes, plain, packed = list[float](), list[float](), list[float]()
    for _ in range(scope.rounds):
        nodes.append(in_ring(2, bulk_nodes, BULK_WINDOW, scope.bulk)[0])
        plain.append(in_ring(2, bulk_links, BULK_ROWS, scope.messages, squeezed=False)[0])
        packed.append(in_ring(2, bulk_links, BULK_ROWS, scope.messages, squeezed=True)[0])
    return {
        "mb_per_s": round(max(nodes) / MB),
        "mb_per_s_bare": round(max(plain) / MB),
        "mb_per_s_compressed": round(max(packed) / MB),
    }


# -- what is claimed ---------------------------------------------------------------------------------------------------
def claims(figures: Mapping[str, float], equal: bool) -> dict[str, bool]:
    """The bounds that were set before anything was measured."""
    found = {
        "with 1 ms of CPU for a pair two nodes give at least 1.8 times the results of one": (
            figures["scaling_2"] >= SCALING
        ),
        "with a free predicate a row of 1 KB takes at most 100 µs for each hop": figures["us_per_hop"] <= HOP,
        "with a free predicate 200 MB of rows a second or more go through the nodes": figures["mb_per_s"] >= BULK,
        "rings of one and of two nodes find the same": equal,
    }
    if "scaling_2_spark" in figures:
        found["on Spark, without the start of its job, two nodes are at least 1.8 times as fast, too"] = (
            figures["scaling_2_spark"] >= SCALING
        )
        found["both find the same on Spark"] = figures["same_on_spark"] == 1
    return found


def plot(figure: Any, figures: Mapping[str, float], spread: Mapping[int, Sequence[float]]) -> None:
    """Three panels, each with its bound."""
    rates, tuples, bulk = figure.subplots(1, 3)
    for nodes, each in spread.items():
        rates.plot([nodes] * len(each), each, "C0o", alpha=0.5)
    best = [max(spread[nodes]) for nodes in SIZES]
    rates.plot(SIZES, best, "C0-", label=f"{figures['scaling_2']:.2f} times")
    rates.plot(SIZES, [best[0], SCALING * best[0]], "k:", label=f"{SCALING} times")
    rates.set(xlabel="nodes", ylabel="results per second", xticks=SIZES, ylim=(0, None), title="1 ms for a pair")
    rates.legend(fontsize=6)
    for axes, names, bound, title in (
        (tuples, ("us_per_hop", "us_per_hop_bare"), HOP, "µs per hop, 1 KB"),
        (bulk, ("mb_per_s", "mb_per_s_bare", "mb_per_s_compressed"), BULK, "MB per second"),
    ):
        labels = ["nodes", "links", "links,\nlz4"][: len(names)]
        axes.bar_label(axes.bar(labels, [figures[name] for name in names]))
        axes.axhline(bound, color="k", linestyle=":")
        axes.set_title(title)


RING_SPEED = Experiment(
    "ring-speed", "a ring on two cores: results by nodes with an expensive predicate, the time of a hop, and bulk", run
)
