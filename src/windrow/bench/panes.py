"""panes: Paned-WID against WID by tuples per pane and panes per window (Li 6-15).

The thesis's query: max over sliding windows, tuple by tuple. Here operators work by the batch, and WID reduces the
rows of a batch that are in the same windows before it touches its state, which would give it panes for nothing. So the
query runs over many groups in step, and a batch has one row of each: what a batch costs, shared among its rows, is
what a tuple costs. A promise follows each batch. The ratio is of CPU time less that of the scan, as in the thesis.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Partials, make
from windrow.bench.drive import Step, drive
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.wid_vs_buffering import Scan
from windrow.operators import Bucket, Operator, Paned, Panes, Wid, Windowing
from windrow.windows import Sliding

GROUPS = 2000
AT_20_5 = "at 20 tuples per pane and 5 panes per window, one row of a group in a batch, it is about 0.3 or lower"
NOISE = 1.1  # a ratio may be this much above the one before and still count as not higher


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """The grid of Figure 6-15."""
    tuples = (1, 5, 20) if quick else (1, 2, 5, 10, 20, 50)
    panes = (2, 5, 10) if quick else (2, 5, 10, 20)
    found: dict[tuple[int, int], float] = {}
    figures: dict[str, float] = {}
    same = True
    for i, n in enumerate(tuples):
        for j, p in enumerate(panes):
            say(f"{n} tuples per pane, {p} panes per window", (i + j / len(panes)) / len(tuples))
            steps = arrivals(n * p + max(20, n * p // 4 if quick else n * p))
            window = Sliding(n * p, n)
            scan = drive(Scan(), Scan(), steps).seconds
            paned, results = measured("paned", window, steps, 1 if quick else 2)
            wid, others = measured("wid", window, steps, 1 if quick else 2)
            found[n, p] = (paned - scan) / (wid - scan)
            figures[f"ratio_{n}_{p}"] = round(found[n, p], 3)
            figures[f"us_per_row_paned_{n}_{p}"] = round(1e6 * paned / (GROUPS * len(steps)), 3)
            figures[f"us_per_row_wid_{n}_{p}"] = round(1e6 * wid / (GROUPS * len(steps)), 3)
            same = same and results == others
    by_tuples = [[found[n, p] for n in tuples] for p in panes]
    by_panes = [[found[n, p] for p in panes] for n in tuples]
    holds = {
        "the ratio falls with the tuples per pane": all(_falls(line) for line in by_tuples),
        "the ratio falls with the panes per window": all(_falls(line) for line in by_panes),
        AT_20_5: found[20, 5] <= NOISE * 0.3,
        "both give the same number of results": same,
    }
    return Outcome(figures, holds, lambda figure: _plot(figure, found, tuples, panes))


def arrivals(ticks: int) -> list[Step]:
    """One row of each group per tick, then the promise that the tick is over."""
    rng = np.random.default_rng(5)
    keys = np.arange(GROUPS)
    return [
        (pl.DataFrame({"@t": np.full(GROUPS, t), "k": keys, "x": rng.integers(40, 1501, GROUPS)}), t + 1)
        for t in range(ticks)
    ]


def measured(algorithm: str, window: Sliding, steps: list[Step], runs: int) -> tuple[float, int]:
    """Seconds of the fastest run, and the number of results."""
    costs = []
    for _ in range(runs):
        aggregates = Partials([make("max", "most", "x", pl.Int64())])
        kind: Callable[..., Operator] = Paned if algorithm == "paned" else Wid
        feed: Operator = Panes(window, ["k"], aggregates) if algorithm == "paned" else Bucket(window)
        costs.append(drive(feed, kind(Windowing(window, ("k",), aggregates)), steps))
    return min(cost.seconds for cost in costs), costs[0].results


def _falls(line: list[float]) -> bool:
    """Whether the last is below the first, and none is above the one before but for noise."""
    return line[-1] < line[0] and all(b <= NOISE * a for a, b in pairwise(line))


def _plot(figure: Any, found: dict[tuple[int, int], float], tuples: tuple[int, ...], panes: tuple[int, ...]) -> None:
    axes = figure.subplots()
    width = 0.8 / len(panes)
    for j, p in enumerate(panes):
        places = [i + (j - (len(panes) - 1) / 2) * width for i in range(len(tuples))]
        axes.bar(places, [found[n, p] for n in tuples], width, label=f"{p} panes per window")
    axes.axhline(1, linestyle=":", color="grey")
    axes.set_xticks(range(len(tuples)), [str(n) for n in tuples])
    axes.set(xlabel="tuples per pane (of a group)", ylabel="time of Paned-WID / time of WID")
    axes.legend()


PANES = Experiment(
    "panes", "Paned-WID against WID by tuples per pane and panes per window (Li 6-15)", run, paper="Li 6-15"
)
