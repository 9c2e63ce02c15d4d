"""optimizer-grid: the algorithm that the optimizer chooses against all others that can run, by measured CPU time.

A grid of window aggregations. Every algorithm runs every one of them over the same rows; they take turns, and the best
round of each counts. What is timed are the operators of the aggregation alone, not the admission of rows, which is
the same for all. The optimizer is given the rows that a host would give it: the first 100,000.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from windrow.api.functions import count, sum
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.hosts.local import LocalRun
from windrow.hosts.spent import Spent
from windrow.planner.choose.costs.aggregation import TIME

WITHIN = 1.2
BATCH = 2000  # rows that are pushed at a time
SLIDE = 1000  # milliseconds, of all windows
LENGTHS, LEAST = 1.5, 20_000  # a run takes so many lengths of a window, and at least so many rows
ROUNDS = 3


@dataclass(frozen=True)
class Case:
    """A window aggregation: rows a second, groups, RANGE/SLIDE with a SLIDE of one second, seconds of disorder."""

    rate: int
    groups: int
    overlap: int
    disorder: float

    def __str__(self) -> str:
        return f"{self.rate}/s, {self.groups} groups, RANGE/SLIDE {self.overlap}, disorder {self.disorder:g} s"


@dataclass(frozen=True)
class Measured:
    """Microseconds of CPU by algorithm, and what was chosen."""

    case: Case
    micros: dict[str, float]
    chosen: str

    @property
    def ratio(self) -> float:
        """What the chosen one costs, in terms of the best."""
        return self.micros[self.chosen] / min(self.micros.values())


def grid(quick: bool) -> list[Case]:
    """All combinations."""
    if quick:
        return [Case(*each) for each in product((200, 2000), (1, 2000), (1, 20), (0.0, 3.0))]
    return [Case(*each) for each in product((100, 1000, 5000), (1, 100, 5000), (1, 6, 60), (0.0, 3.0))]


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All cases, each by every algorithm."""
    found: list[Measured] = []
    cases = grid(quick)
    for number, case in enumerate(cases):
        say(str(case), number / len(cases))
        found.append(measured(case, ROUNDS))
    return outcome(found)


def generate(case: Case, rows: int) -> pl.DataFrame:
    """Rows in the order of arrival, at a steady rate; each is up to ``disorder`` late."""
    rng = np.random.default_rng(case.rate + case.groups)
    at = np.sort(rng.integers(0, rows * 1000 // case.rate, rows))
    order = np.argsort(at + rng.integers(0, int(case.disorder * 1000) + 1, rows), kind="stable")
    keys, values = rng.integers(0, case.groups, rows), rng.integers(0, 1000, rows)
    return pl.DataFrame({"t": at[order], "k": keys, "x": values})


def asked(case: Case, data: pl.DataFrame, using: str | None = None) -> Stream:
    """Count and sum by group."""
    source = stream(data, "t", slack=int(case.disorder * 1000), name="s")
    windowed = source.window(case.overlap * SLIDE, SLIDE, using=using)
    return windowed.group_by("k").agg(n=count(), total=sum("x"))


def measured(case: Case, rounds: int) -> Measured:
    """Every algorithm in turn; in every second round from the last to the first."""
    rows = int(max(LEAST, LENGTHS * case.rate * case.overlap * SLIDE / 1000))
    data = generate(case, rows)
    plans = {name: asked(case, data, name).plan() for name in TIME}
    [stage] = asked(case, data).plan().stages()
    best = dict.fromkeys(TIME, float("inf"))
    for number in range(rounds):
        for name in plans if number % 2 else reversed(plans):
            best[name] = min(best[name], spent(LocalRun(plans[name]), data))
    return Measured(case, best, stage.algorithm)


def spent(running: LocalRun, data: pl.DataFrame) -> float:
    """Microseconds of the operators of the aggregation."""
    watch = Spent(running.graph)
    running.graph.measure(watch)
    gc.collect()
    for start in range(0, data.height, BATCH):
        running.push("s", data[start : start + BATCH])
        running.results()
    return watch.of_scope("stage0")


def outcome(found: Sequence[Measured]) -> Outcome:
    """The worst ratio, and how many are within the bound."""
    ratios = [each.ratio for each in found]
    worst = max(found, key=lambda each: each.ratio)
    figures: dict[str, float] = {
        "worst": round(worst.ratio, 3),
        "within_1_2": round(float(np.mean([ratio <= WITHIN for ratio in ratios])), 3),
        "aggregations": len(found),
    }
    for each in found:
        for name, micros in each.micros.items():
            figures[f"us_{name}: {each.case}"] = round(micros)
        figures[f"ratio ({each.chosen}): {each.case}"] = round(each.ratio, 3)
    holds = {f"the chosen algorithm costs at most {WITHIN} times the best, everywhere": worst.ratio <= WITHIN}
    return Outcome(figures, holds, lambda figure: _plot(figure, ratios))


def _plot(figure: Any, ratios: Sequence[float]) -> None:
    axes = figure.subplots()
    axes.plot(sorted(ratios), marker="o", markersize=3)
    axes.axhline(WITHIN, linestyle=":", color="grey")
    axes.set(xlabel="queries, by the ratio", ylabel="CPU time of the chosen algorithm / of the best", ylim=(0.9, None))


OPTIMIZER_GRID = Experiment("optimizer-grid", "the algorithm that is chosen against the best one by measurement", run)
