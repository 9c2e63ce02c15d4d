"""burst: how evenly results come out behind an aggregate with SLIDE, with and without ETS (Bai et al., Figure 16).

A union in order of time of two streams, 1,000 tuples a second each: one passes a selection, the other an aggregate
that gives a result after every SLIDE tuples. The larger SLIDE, the longer the union waits for a result of the
aggregate, and all that has waited comes out at once. Burstiness is the greatest number of results in 0.02 s minus the
least, divided by the mean. In virtual time, with the service times of this machine, and once in real time.

The aggregate is that of the paper, over an ordered stream: it says nothing about time between two results, but hands
an ETS on. Windrow's own windows would not do here: they promise ahead to the end of the next window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.virtual import (
    SECOND,
    Arrival,
    Make,
    Result,
    arrived,
    calibrated,
    in_real_time,
    in_virtual_time,
    merged,
    poisson,
    tuples,
)
from windrow.graph import DFS, Graph, Timestamps
from windrow.operators import Meld, Select
from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch

RATE = 1000  # tuples a second of each stream
PASS = 0.95
SLIDES = (1, 20, 50, 100, 200, 500)  # tuples
BIN = SECOND // 50
WAYS = {"none": "A: no ETS", "ets": "B: ETS on demand"}


class Slide(Stateless):
    """The mean of ``x`` over every so many tuples, with the time of the last of them."""

    def __init__(self, slide: int) -> None:
        self.slide = slide
        self.held: list[float] = []

    def on_batch(self, port: int, batch: Batch) -> list[Item]:  # noqa: ARG002
        self.held.extend(batch["x"])
        if len(self.held) < self.slide:
            return []
        mean, self.held = float(np.mean(self.held)), []
        return [batch.tail(1).with_columns(pl.lit(mean).alias("x"))]


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Both curves of Figure 16."""
    seconds, length = (3, 3) if quick else (20, 10)
    slides = (SLIDES[0], *SLIDES[2::2]) if quick else SLIDES
    given = arrivals(seconds)
    came = [Result(a.at, a.item) for a in given if a.port == 0]
    figures: dict[str, float] = {"burstiness_arrivals": burstiness(came, seconds)}
    same = True
    for number, slide in enumerate(slides):
        say(f"SLIDE {slide}", 0.8 * number / len(slides))
        costs = calibrated(graph_of("ets", slide), arrivals(0.3))
        found = {way: in_virtual_time(graph_of(way, slide), given, costs) for way in WAYS}
        figures |= {f"burstiness_{way}_{slide}": burstiness(results, seconds) for way, results in found.items()}
        same = same and len({tuple(arrived(results)) for results in found.values()}) == 1
    for way in WAYS:
        say(f"{WAYS[way]}, in real time", 0.9)
        results = in_real_time(graph_of(way, slides[-1]), arrivals(length))
        figures[f"real_burstiness_{way}_{slides[-1]}"] = burstiness(results, length)
    return Outcome(figures, claims(figures, slides, same), lambda figure: plot(figure, figures, slides))


def graph_of(way: str, slide: int) -> Make:
    """A selection and the aggregate, and their union."""

    def make(clock: Callable[[], int]) -> Graph:
        graph = Graph(DFS)
        ends = [graph.add("select", Select(pl.col("x") < PASS)), graph.add("slide", Slide(slide))]
        for port, end in enumerate(ends):
            graph.input(end)
            if way == "ets":
                graph.source(port, Timestamps.internal(clock))
        graph.add("union", Meld(2), ends, in_order=True)
        return graph

    return make


def arrivals(seconds: float) -> list[Arrival]:
    """Both streams, as Poisson processes."""
    streams = [tuples(poisson(RATE, seconds, seed=60 + port), port, seed=70 + port) for port in range(2)]
    return merged(*streams, end=int(seconds * SECOND))


def burstiness(results: Sequence[Result], seconds: float) -> float:
    """Of the counts in bins of 0.02 s, (max - min) / mean; what comes out at the end of the streams does not count."""
    counts = [0] * int(seconds * SECOND / BIN)
    for at, item in results:
        if isinstance(item, pl.DataFrame) and at < seconds * SECOND:
            counts[at // BIN] += item.height
    return round((max(counts) - min(counts)) / float(np.mean(counts)), 3)


def claims(figures: Mapping[str, float], slides: Sequence[int], same: bool) -> dict[str, bool]:
    """What the paper sees in its figure, of ours."""
    without, with_ets = ([figures[f"burstiness_{way}_{s}"] for s in slides] for way in WAYS)
    last = slides[-1]
    return {
        "without ETS results come in larger bursts, the larger SLIDE is": all(a < b for a, b in pairwise(without)),
        "with ETS burstiness does not depend on SLIDE: it is at most 1.25 times that of the arrivals": all(
            b <= 1.25 * figures["burstiness_arrivals"] for b in with_ets
        ),
        "at the largest SLIDE it is at least five times as high without ETS": with_ets[-1] * 5 <= without[-1],
        "in real time, too, it is higher without ETS: at least twice": (
            2 * figures[f"real_burstiness_ets_{last}"] <= figures[f"real_burstiness_none_{last}"]
        ),
        "the same tuples come out each time": same,
    }


def plot(figure: Any, figures: Mapping[str, float], slides: Sequence[int]) -> None:
    """Figure 16."""
    axes = figure.subplots()
    for (way, label), color in zip(WAYS.items(), ("C0", "C1"), strict=True):
        axes.plot(slides, [figures[f"burstiness_{way}_{s}"] for s in slides], "o-", color=color, label=label)
        real = figures[f"real_burstiness_{way}_{slides[-1]}"]
        axes.plot(slides[-1:], [real], "*", color=color, label=f"{label}, real time")
    axes.axhline(figures["burstiness_arrivals"], color="gray", linestyle=":", label="arrivals")
    axes.set(
        xlabel="SLIDE in tuples",
        ylabel="burstiness, (max - min) / mean per 0.02 s,\nvirtual time, service times of this machine",
    )
    axes.legend(fontsize=7)


BURST = Experiment("burst", "burstiness of results by SLIDE, with and without ETS", run, "Bai 16")
