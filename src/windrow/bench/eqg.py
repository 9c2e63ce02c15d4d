"""eqg: ETS as promises through the operators, and over the arcs of the enhanced query graph (Bai et al., Figure 15).

The graph of Figure 10: a union of two selections, a selection of that, and its union with a third selection. Tuples
come to the first source often and to the others seldom, so that they wait at both unions. The paper gives no rates
for it; here they are 200 and 0.5 a second, so that a graph with four times the selections keeps up, too. In virtual
time, with the service times of this machine, and once in real time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.virtual import (
    KINDS,
    SECOND,
    Arrival,
    Clock,
    Kind,
    Make,
    Stopwatch,
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
from windrow.graph import DFS, Graph, Timestamps
from windrow.operators import Meld, Select

FAST, SLOW = 200, 0.5  # tuples a second
PASS = 0.95
LENGTHS = (1, 2, 4)  # selections in a row, where Figure 10 has one
NONE, PUNCTUATION, ARCS = "none", "punctuation", "arcs"
WAYS = {NONE: "no ETS", PUNCTUATION: "ETS through operators", ARCS: "ETS over arcs"}
BELOW = afterwards(
    "over arcs the latency is at or below that with ETS through operators, at every length of paths",
    "promises are timed apart if no tuple waits",
)
Times = dict[tuple[str, Kind], int]  # of a selection or a union, by what it takes


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 10, and the same with longer paths between the unions."""
    seconds, length = (5, 3) if quick else (60, 15)
    say("service times", 0.0)
    times = service_times(150 if quick else 600)
    figures: dict[str, float] = {f"us_{way}_promise_union": t["union", "promise"] / 1000 for way, t in times.items()}
    figures |= {f"us_select_{kind}": times[NONE]["select", kind] / 1000 for kind in ("row", "promise")}
    given = arrivals(seconds)
    same = True
    for number, selections in enumerate(LENGTHS):
        say(f"{selections} selections in a row", 0.1 + number * 0.2)
        ways = WAYS if selections == 1 else (PUNCTUATION, ARCS)
        found = {}
        for way in ways:
            make = graph_of(way, selections)
            found[way] = in_virtual_time(make, given, costs_of(make, times[way]))
        figures |= {f"latency_us_{way}_{selections}": mean_latency(results) for way, results in found.items()}
        same = same and len({tuple(arrived(results)) for results in found.values()}) == 1
    for number, way in enumerate(WAYS):
        say(f"{WAYS[way]}, in real time", 0.7 + number * 0.1)
        results = in_real_time(graph_of(way, 1), arrivals(length))
        figures |= {f"real_latency_us_{way}": mean_latency(results), f"real_median_us_{way}": median_latency(results)}
    figures |= cpu_per_tuple(200 if quick else 1000)
    figures |= {f"punctuation_over_arcs_{n}": ratio(figures, n) for n in LENGTHS}
    say("promises timed together", 0.95)
    curves = {BELOW: {f"{n} in a row, promises timed together": r for n, r in together(quick).items()}}
    return Outcome(figures, claims(figures, same), lambda figure: plot(figure, figures), curves)


def ratio(figures: Mapping[str, float], selections: int) -> float:
    """Of the latency with ETS through operators to that over arcs."""
    found = [figures[f"latency_us_{way}_{selections}"] for way in (PUNCTUATION, ARCS)]
    return round(found[0] / found[1], 3)


def together(quick: bool) -> dict[int, float]:
    """The ratios if a promise has one service time, whether or not tuples wait."""
    times = service_times(150 if quick else 600, apart=False)
    given, found = arrivals(2 if quick else 10), dict[int, float]()
    for n in LENGTHS:
        makes = {way: graph_of(way, n) for way in (PUNCTUATION, ARCS)}
        latency = {w: mean_latency(in_virtual_time(m, given, costs_of(m, times[w]))) for w, m in makes.items()}
        found[n] = round(latency[PUNCTUATION] / latency[ARCS], 3)
    return found


def cpu_per_tuple(count: int, rounds: int = 7) -> dict[str, float]:
    """Microseconds of CPU that a tuple takes, with all promises that follow it: the least of several rounds in turn."""
    given, least = tuples(range(count), 0, seed=51), dict[str, float]()
    for _ in range(rounds):
        for way in (PUNCTUATION, ARCS):
            graph = graph_of(way, 1)(Stopwatch())
            began = time.process_time()
            for arrival in given:
                graph.feed(arrival.port, arrival.item)
            spent = (time.process_time() - began) / count * 1e6
            least[way] = min(spent, least.get(way, spent))
    return {f"cpu_us_per_tuple_{way}": round(us, 1) for way, us in least.items()}


def graph_of(way: str, selections: int) -> Make:
    """Figure 10 with so many selections where it has one; the first drops what the others would."""

    def make(clock: Callable[[], int]) -> Graph:
        graph = Graph(DFS)
        graph.enhanced = way == ARCS

        def selected(before: Sequence[int]) -> int:
            for _ in range(selections):
                before = [graph.add("select", Select(pl.col("x") < PASS), before)]
            return before[0]

        firsts = []
        for _ in range(3):
            start = graph.next_number
            firsts.append(selected([]))
            graph.input(start)
        inner = graph.add("union", Meld(2), firsts[:2], in_order=True)
        graph.add("union", Meld(2), [selected([inner]), firsts[2]], in_order=True)
        for port in range(3 if way != NONE else 0):
            graph.source(port, Timestamps.internal(clock))
        return graph

    return make


def arrivals(seconds: float) -> list[Arrival]:
    """All three streams, as Poisson processes."""
    rates = (FAST, SLOW, SLOW)
    streams = [tuples(poisson(r, seconds, seed=30 + p), p, seed=40 + p) for p, r in enumerate(rates)]
    return merged(*streams, end=int(seconds * SECOND))


def service_times(count: int, rounds: int = 3, apart: bool = True) -> dict[str, Times]:
    """Of a selection and of a union, for each way: the least of several rounds in which the ways take turns.

    A promise takes what it takes on its way, at a union less or more; all else takes the same.
    """
    given = tuples(range(count), 0, seed=50)
    found: dict[str, Times] = {PUNCTUATION: {}, ARCS: {}}
    for _ in range(rounds):
        for way, times in found.items():
            graph = graph_of(way, 1)
            labels = {node.number: node.label for node in graph(Clock()).nodes}
            for (node, kind), spent in calibrated(graph, given, apart).items():
                key = labels[node], kind
                if spent:
                    times[key] = min(spent, times.get(key, spent))
    for key in found[PUNCTUATION]:
        if key[0] != "union" or key[1] in ("row", "empty"):
            found[ARCS][key] = found[PUNCTUATION][key]
    return found | {NONE: found[PUNCTUATION]}


def costs_of(make: Make, times: Times) -> dict[tuple[int, Kind], int]:
    """The service times of all nodes of a graph, by what they are."""
    return {(node.number, kind): times[node.label, kind] for node in make(Clock()).nodes for kind in KINDS}


def claims(figures: Mapping[str, float], same: bool) -> dict[str, bool]:
    """What the paper sees in its figure, of ours."""
    ratios = [figures[f"punctuation_over_arcs_{n}"] for n in LENGTHS]
    with_ets = (PUNCTUATION, ARCS)
    return {
        "ETS cuts the latency at least a hundredfold, both ways": all(
            100 * figures[f"latency_us_{way}_1"] <= figures[f"latency_us_{NONE}_1"] for way in with_ets
        ),
        BELOW: all(each >= 1 for each in ratios),
        "the more operators arcs skip, the more time they save": all(
            a < b
            for a, b in pairwise(
                figures[f"latency_us_{PUNCTUATION}_{n}"] - figures[f"latency_us_{ARCS}_{n}"] for n in LENGTHS
            )
        ),
        "in real time, too, ETS cuts the median latency at least tenfold, both ways": all(
            10 * figures[f"real_median_us_{way}"] <= figures[f"real_median_us_{NONE}"] for way in with_ets
        ),
        "the same tuples come out each time": same,
    }


def plot(figure: Any, figures: Mapping[str, float]) -> None:
    """Figures 15a and 15b."""
    left, right = figure.subplots(1, 2)
    for place, (key, label) in enumerate(
        (("latency_us_{}_1", "virtual time"), ("real_median_us_{}", "real time, median"))
    ):
        heights = [figures[key.format(way)] / 1000 for way in WAYS]
        left.bar([x + 0.4 * place for x in range(len(WAYS))], heights, 0.4, label=label)
    left.set_xticks([x + 0.2 for x in range(len(WAYS))], [name.replace("ETS ", "ETS\n") for name in WAYS.values()])
    left.set(yscale="log", ylabel="mean latency in ms")
    left.legend(fontsize=7)
    for way in (PUNCTUATION, ARCS):
        right.plot(LENGTHS, [figures[f"latency_us_{way}_{n}"] for n in LENGTHS], "o-", label=WAYS[way])
    right.set_xticks(LENGTHS)
    right.set(
        xlabel="selections in a row (Figure 10: 1)",
        ylabel="mean latency in µs, virtual time,\nservice times of this machine",
    )
    right.legend(fontsize=7)


EQG = Experiment("eqg", "latency with ETS through operators and over arcs that skip them", run, "Bai 15a, 15b")
