"""schedule: latency with DFS and BFS, with and without ETS on demand (Bai et al., Figures 14a and 14b).

The graph of Figure 1: two selections that 95 % of the tuples pass, and their union in order of time. 1,000 tuples a
second arrive at the first and one every two seconds at the second, so that without ETS nearly all wait for it. In
virtual time, with the service times of this machine, and once in real time. The lines of the paper are for latent
timestamps, where the union takes tuples as they come and both operators take the same time c: bursts of n tuples then
have a mean latency of (n + 1) c with DFS and (1.5 n + 0.5) c with BFS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.virtual import (
    KINDS,
    SECOND,
    Arrival,
    Costs,
    Make,
    Result,
    arrived,
    calibrated,
    in_real_time,
    in_virtual_time,
    mean_latency,
    median_latency,
    merged,
    poisson,
    tuples,
)
from windrow.graph import BFS, DFS, Graph, Strategy, Timestamps
from windrow.operators import Meld, Select

FAST, SLOW = 1000, 0.5  # tuples a second
PASS = 0.95
STRATEGIES = {"dfs": DFS, "bfs": BFS}
BURSTS = (1, 5, 10, 20, 50, 100)
LINES: dict[str, Callable[[int], float]] = {"dfs": lambda n: n + 1, "bfs": lambda n: 1.5 * n + 0.5}  # in units of c
CALM = 250  # tuples a second in real time, where others may need the machine, too
ABOVE = afterwards("in real time, too, BFS is above DFS at the largest bursts", f"{CALM} tuples a second")
Say = Callable[[str, float], None]


def run(quick: bool, say: Say) -> Outcome:
    """Both figures. ``--quick`` has fewer tuples and sizes of bursts."""
    say("service times", 0.0)
    costs = calibrated(graph_of(DFS, ets=True), tuples(range(300 if quick else 1000), 0, seed=1))
    figures: dict[str, float] = {f"us_select_{kind}": costs[0, kind] / 1000 for kind in KINDS}
    figures |= {f"us_union_{kind}": costs[2, kind] / 1000 for kind in KINDS}
    seconds, short, length = (6, 2.5, 3) if quick else (60, 20, 10)
    bursts = BURSTS[::2] + BURSTS[-1:] if quick else BURSTS
    say("with and without ETS", 0.1)
    found = ets_or_not(costs, seconds)
    figures |= latency_figures(found)
    say("with and without ETS, in real time", 0.3)
    real = ets_or_not(None, length)
    figures |= latency_figures(real, "real_")
    for number, burst in enumerate(bursts):
        say(f"bursts of {burst}", 0.6 + 0.3 * number / len(bursts))
        figures |= in_bursts(costs, burst, short)
        figures |= latent(sum((costs[0, "row"], costs[2, "row"])) // 2, burst)
    say(f"bursts of {bursts[-1]}, in real time", 0.9)
    figures |= really_in_bursts(bursts[-1], length * 0.7)
    same = alike(found) and alike(real)
    keys = {rate: f"real_median_us_{{}}_burst_{bursts[-1]}_at_{rate}" for rate in (CALM, FAST)}
    curves = {
        ABOVE: {
            f"{s}, {rate} tuples a second": figures[key.format(s)] for rate, key in keys.items() for s in STRATEGIES
        }
    }
    return Outcome(figures, claims(figures, bursts, same), lambda figure: plot(figure, figures, bursts), curves)


def graph_of(strategy: Strategy, ets: bool, latent: bool = False, passing: float = PASS) -> Make:
    """Figure 1; with ETS the sources stamp their tuples, and say what time it is."""

    def make(clock: Callable[[], int]) -> Graph:
        graph = Graph(strategy)
        ends = [graph.add(f"select{n}", Select(pl.col("x") < passing)) for n in range(2)]
        for end in ends:
            graph.input(end)
        graph.add("union", Meld(2), ends, in_order=not latent)
        for port in range(2 if ets else 0):
            graph.source(port, Timestamps.internal(clock))
        return graph

    return make


def arrivals(seconds: float, burst: int = 1, rate: float | None = None) -> list[Arrival]:
    """Both streams, as Poisson processes."""
    fast = tuples(poisson(rate or FAST, seconds, seed=14, burst=burst), 0, seed=15)
    slow = tuples(poisson(SLOW, seconds, seed=16), 1, seed=17)
    return merged(fast, slow, end=int(seconds * SECOND))


def played(make: Make, given: Sequence[Arrival], costs: Costs | None) -> list[Result]:
    """In virtual time, or without service times in real time."""
    return in_real_time(make, given) if costs is None else in_virtual_time(make, given, costs)


def ets_or_not(costs: Costs | None, seconds: float) -> dict[str, list[Result]]:
    """Figure 14a."""
    given = arrivals(seconds)
    ways = [(name, ets) for name in STRATEGIES for ets in (False, True)]
    return {f"{n}_ets" if ets else n: played(graph_of(STRATEGIES[n], ets), given, costs) for n, ets in ways}


def alike(found: Mapping[str, Sequence[Result]]) -> bool:
    """Whether the same tuples came out each time."""
    return len({tuple(arrived(results)) for results in found.values()}) == 1


def latency_figures(found: Mapping[str, Sequence[Result]], prefix: str = "") -> dict[str, float]:
    """In milliseconds; of real time also the median."""
    figures = {f"{prefix}latency_ms_{way}": round(mean_latency(r) / 1000, 3) for way, r in found.items()}
    if prefix:
        figures |= {f"{prefix}median_ms_{way}": round(median_latency(r) / 1000, 3) for way, r in found.items()}
    return figures


def in_bursts(costs: Costs, burst: int, seconds: float) -> dict[str, float]:
    """A point of Figure 14b."""
    given = arrivals(seconds, burst)
    return {
        f"latency_us_{name}_burst_{burst}": mean_latency(in_virtual_time(graph_of(strategy, ets=True), given, costs))
        for name, strategy in STRATEGIES.items()
    }


def really_in_bursts(burst: int, seconds: float) -> dict[str, float]:
    """The median latencies in real time: at a rate that a busy machine keeps up with the best of three runs in turn."""
    figures: dict[str, float] = {}
    for rate, rounds in ((FAST, 1), (CALM, 3)):
        given = arrivals(seconds, burst, rate)
        for _ in range(rounds):
            for name, strategy in STRATEGIES.items():
                key = f"real_median_us_{name}_burst_{burst}_at_{rate}"
                found = median_latency(in_real_time(graph_of(strategy, ets=True), given))
                figures[key] = min(found, figures.get(key, found))
    return figures


def latent(c: int, burst: int) -> dict[str, float]:
    """Latent timestamps, bursts that are far apart, and operators that both take ``c``; beside it the paper's lines."""
    apart = 10 * burst * c
    given = tuples([number * apart for number in range(5) for _ in range(burst)], 0, seed=18)
    costs = {(node, kind): c for node in range(3) for kind in KINDS}
    found: dict[str, float] = {}
    for name, strategy in STRATEGIES.items():
        make = graph_of(strategy, ets=False, latent=True, passing=1.0)
        found[f"latent_us_{name}_burst_{burst}"] = mean_latency(in_virtual_time(make, given, costs))
        found[f"line_us_{name}_burst_{burst}"] = round(LINES[name](burst) * c / 1000, 1)
    return found


def claims(figures: Mapping[str, float], bursts: Sequence[int], same: bool) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    by_burst = {name: [figures[f"latency_us_{name}_burst_{n}"] for n in bursts] for name in STRATEGIES}
    dfs, bfs = by_burst["dfs"], by_burst["bfs"]
    points = [(name, n) for name in STRATEGIES for n in bursts]
    last = bursts[-1]
    return {
        "without ETS the latencies of DFS and BFS are similar: within 10 %": (
            0.9 <= figures["latency_ms_bfs"] / figures["latency_ms_dfs"] <= 1.1
        ),
        "ETS on demand cuts the latency at least a hundredfold, with both": all(
            100 * figures[f"latency_ms_{name}_ets"] <= figures[f"latency_ms_{name}"] for name in STRATEGIES
        ),
        "the larger the bursts, the higher the latency, with both": all(
            a < b for line in (dfs, bfs) for a, b in pairwise(line)
        ),
        "BFS suffers more from bursts than DFS: it is above it at every size beyond 1, and grows faster": (
            all(a < b for a, b in zip(dfs[1:], bfs[1:], strict=True)) and dfs[-1] - dfs[0] < bfs[-1] - bfs[0]
        ),
        "with latent timestamps latencies are on the paper's lines, (n + 1) c and (1.5 n + 0.5) c: within 1 %": all(
            abs(figures[f"latent_us_{s}_burst_{n}"] / figures[f"line_us_{s}_burst_{n}"] - 1) <= 0.01 for s, n in points
        ),
        "in real time, too, ETS cuts the median latency at least tenfold, with both": all(
            10 * figures[f"real_median_ms_{s}_ets"] <= figures[f"real_median_ms_{s}"] for s in STRATEGIES
        ),
        ABOVE: (
            figures[f"real_median_us_dfs_burst_{last}_at_{CALM}"]
            < figures[f"real_median_us_bfs_burst_{last}_at_{CALM}"]
        ),
        "the same tuples come out each time": same,
    }


def plot(figure: Any, figures: Mapping[str, float], bursts: Sequence[int]) -> None:
    """Figures 14a and 14b."""
    left, right = figure.subplots(1, 2)
    ways = [f"{name}{ets}" for ets in ("", "_ets") for name in STRATEGIES]
    for place, (prefix, label) in enumerate((("latency", "virtual time"), ("real_median", "real time, median"))):
        heights = [figures[f"{prefix}_ms_{way}"] for way in ways]
        left.bar([x + 0.4 * place for x in range(len(ways))], heights, 0.4, label=label)
    left.set_xticks([x + 0.2 for x in range(len(ways))], [way.replace("_ets", "\nETS") for way in ways])
    left.set(yscale="log", ylabel="mean latency in ms")
    left.legend(fontsize=7)
    for name, color in zip(STRATEGIES, ("C0", "C1"), strict=True):
        lines = {"latency": ("o-", "ETS"), "latent": ("x", "latent"), "line": (":", "latent, the paper's line")}
        for key, (style, label) in lines.items():
            points = [figures[f"{key}_us_{name}_burst_{n}"] / 1000 for n in bursts]
            right.plot(bursts, points, style, color=color, label=f"{name}, {label}")
        real = figures[f"real_median_us_{name}_burst_{bursts[-1]}_at_{CALM}"] / 1000
        right.plot(bursts[-1:], [real], "*", color=color, label=f"{name}, ETS, real time, median, {CALM}/s")
    right.set(xlabel="tuples in a burst", ylabel="mean latency in ms, virtual time,\nservice times of this machine")
    right.legend(fontsize=6)


SCHEDULE = Experiment("schedule", "latency with DFS and BFS, with and without ETS, by burst size", run, "Bai 14a, 14b")
