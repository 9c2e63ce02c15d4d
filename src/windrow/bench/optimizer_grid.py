"""optimizer-grid: the algorithm that the cost models choose against all others that can run, by measured CPU time.

A grid of window aggregations: every algorithm runs every one of them over the same rows, and what is timed are the
operators of the aggregation alone, not the admission of rows, which is the same for all. The optimizer is given the
rows that a host would give it: the first 100,000. And a grid of window joins: each side is kept in sorted runs, under a
hash table or as a list that is scanned, and the model of the join chooses by the rates, the windows and the keys.

Algorithms take turns, and the best round of each counts.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, TypeVar

import numpy as np
import polars as pl

from windrow.api.functions import count, sum
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.hosts.local import LocalRun
from windrow.hosts.spent import Spent
from windrow.operators import WindowJoin
from windrow.operators.joins.choosing import WAYS
from windrow.operators.joins.costs import Probe, Unit, arranged, cheapest, inserted, probed
from windrow.planner.choose.costs.aggregation import TIME
from windrow.planner.choose.statistics import BATCH
from windrow.progress import Punctuation
from windrow.spec.keeping import Keeping
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Within

WITHIN = 1.2
SLIDE = 1000  # milliseconds, of all windows
LENGTHS, LEAST = 2, 60_000  # a run takes so many lengths of a window, and at least so many rows
ROUNDS = 5
JOINED, FEW = 40_000, 1000  # rows of a join, and of both sides in a batch
Way = tuple[Keeping, Keeping]
T = TypeVar("T")


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
class Joined:
    """A window join: rows a second and the window in seconds of each side, the keys of both, seconds of disorder."""

    rates: tuple[int, int]
    seconds: tuple[int, int]
    keys: int
    disorder: float

    def __str__(self) -> str:
        left, right = (f"{rate}/s for {length} s" for rate, length in zip(self.rates, self.seconds, strict=True))
        return f"{left} with {right}, {self.keys} keys, disorder {self.disorder:g} s"


@dataclass(frozen=True)
class Measured:
    """Microseconds of CPU by algorithm, and what was chosen."""

    case: Case | Joined
    micros: dict[str, float]
    chosen: str

    @property
    def ratio(self) -> float:
        """What the chosen one costs, in terms of the best."""
        return self.micros[self.chosen] / min(self.micros.values())


def grid(quick: bool) -> list[Case]:
    """All window aggregations."""
    if quick:
        return [Case(*each) for each in product((200, 2000), (1, 2000), (1, 20), (0.0, 3.0))]
    return [Case(*each) for each in product((100, 1000, 5000), (1, 100, 5000), (1, 6, 60), (0.0, 3.0))]


def joins(quick: bool) -> list[Joined]:
    """All joins."""
    rates, keys = ((1000, 1000), (100, 1900)), (20, 2000)
    if quick:
        return [Joined(*each) for each in product(rates, ((4, 4),), keys, (0.0,))]
    return [Joined(*each) for each in product((*rates, (10, 1990)), ((1, 1), (10, 10), (1, 10)), keys, (0.0, 3.0))]


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All cases, each by every algorithm."""
    found: list[Measured] = []
    cases: list[Case | Joined] = [*grid(quick), *joins(quick)]
    for number, case in enumerate(cases):
        say(str(case), number / len(cases))
        found.append(measured(case, ROUNDS) if isinstance(case, Case) else joined(case, ROUNDS))
    return outcome(found)


# -- window aggregations -----------------------------------------------------------------------------------------------
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
    """Every algorithm in turn."""
    rows = int(max(LEAST, LENGTHS * case.rate * case.overlap * SLIDE / 1000))
    data = generate(case, rows)
    plans = {name: asked(case, data, name).plan() for name in TIME}
    [stage] = asked(case, data).plan().stages()
    best = in_turns(list(TIME), rounds, lambda name: spent(LocalRun(plans[name]), data))
    return Measured(case, best, stage.algorithm)


def in_turns(names: Sequence[T], rounds: int, spends: Callable[[T], float]) -> dict[T, float]:
    """The least that each has spent; in every second round from the last to the first."""
    best = dict.fromkeys(names, math.inf)
    for number in range(rounds):
        for name in names if number % 2 else reversed(names):
            gc.collect()
            best[name] = min(best[name], spends(name))
    return best


def spent(running: LocalRun, data: pl.DataFrame) -> float:
    """Microseconds of the operators of the aggregation."""
    watch = Spent(running.graph)
    running.graph.measure(watch)
    for start in range(0, data.height, BATCH):
        running.push("s", data[start : start + BATCH])
        running.results()
    return watch.of_scope("stage0")


# -- window joins ------------------------------------------------------------------------------------------------------
def joined(case: Joined, rounds: int) -> Measured:
    """Every way to keep the rows of both sides, in turn."""
    batches = steps(case)
    best = in_turns(list(product(WAYS, WAYS)), rounds, lambda way: joining(case, way, batches))
    return Measured(case, {" and ".join(way): micros for way, micros in best.items()}, " and ".join(chosen(case)))


def steps(case: Joined) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Batches of both sides over the same stretches of time, in the order of arrival."""
    rng = np.random.default_rng(case.keys)
    count, rates = JOINED // FEW, case.rates
    length = 1000 * FEW / (rates[0] + rates[1])  # milliseconds
    sides = []
    for rate in rates:
        at = np.sort(rng.integers(0, int(count * length), int(count * length * rate / 1000)))
        arrives = at + rng.integers(0, int(case.disorder * 1000) + 1, len(at))
        order = np.argsort(arrives, kind="stable")
        rows = pl.DataFrame({"@k": rng.integers(0, case.keys, len(at)), PROGRESS: at[order]})
        edges = np.searchsorted(arrives[order], np.arange(count + 1) * length)
        sides.append([rows[int(a) : int(b)] for a, b in pairwise(edges)])
    return list(zip(*sides, strict=True))


def joining(case: Joined, way: Way, batches: Sequence[tuple[pl.DataFrame, pl.DataFrame]]) -> float:
    """Microseconds of the whole join. A row stays as long as the window of its side, and as rows can be late."""
    lengths = [seconds * 1000 for seconds in case.seconds]
    join = WindowJoin(["@k"], Within(-lengths[1], lengths[0]), ({"@k": pl.Int64()}, {}), keeping=way)
    began, reached = time.process_time_ns(), -math.inf
    for both in batches:
        for side, rows in enumerate(both):
            join.on_batch(side, rows)
        reached = max([reached, *(float(rows[PROGRESS].max() or 0) for rows in both if rows.height)])  # type: ignore[arg-type]
        for side in range(2):
            join.on_punctuation(side, Punctuation(int(reached - case.disorder * 1000)))
    return (time.process_time_ns() - began) / 1000


def chosen(case: Joined, unit: Unit | None = None) -> Way:
    """By the model: what probes and insertions cost together while windows are full, of both sides."""
    unit = unit or Unit()
    batch = [max(1, FEW * rate // (case.rates[0] + case.rates[1])) for rate in case.rates]
    costs: list[dict[Keeping, float]] = []
    for side, (rate, seconds) in enumerate(zip(case.rates, case.seconds, strict=True)):
        held = int(rate * (seconds + case.disorder))
        probe = Probe(batch[1 - side], held, 1 / case.keys, rate * seconds / case.keys)
        costs.append({way: probed(way, unit, probe) + inserted(way, unit, batch[side], held) for way in WAYS})
    return cheapest(costs, math.fsum(arranged(unit, rows) for rows in batch))


# -- the outcome -------------------------------------------------------------------------------------------------------
def outcome(found: Sequence[Measured]) -> Outcome:
    """The worst ratio of both grids, and how many are within the bound."""
    figures: dict[str, float] = {}
    holds: dict[str, bool] = {}
    grids = {
        "window aggregations": [each for each in found if isinstance(each.case, Case)],
        "window joins": [each for each in found if isinstance(each.case, Joined)],
    }
    for name, cases in grids.items():
        ratios = [each.ratio for each in cases]
        figures[name] = len(cases)
        figures[f"worst of {name}"] = round(max(ratios), 3)
        figures[f"share within {WITHIN} of {name}"] = round(float(np.mean([ratio <= WITHIN for ratio in ratios])), 3)
        claim = f"{name}: the chosen algorithm costs at most {WITHIN} times the best, everywhere"
        holds[afterwards(claim, "the unit costs of the models, and the rows of a batch")] = max(ratios) <= WITHIN
    for each in found:
        figures |= {f"us_{name}: {each.case}": round(micros) for name, micros in each.micros.items()}
        figures[f"ratio ({each.chosen}): {each.case}"] = round(each.ratio, 3)
    return Outcome(figures, holds, lambda figure: _plot(figure, grids))


def _plot(figure: Any, grids: dict[str, list[Measured]]) -> None:
    axes = figure.subplots()
    for name, cases in grids.items():
        axes.plot(np.linspace(0, 1, len(cases)), sorted(each.ratio for each in cases), marker="o", ms=3, label=name)
    axes.axhline(WITHIN, linestyle=":", color="grey")
    axes.set(xlabel="queries, by the ratio", ylabel="CPU time of the chosen algorithm / of the best", ylim=(0.9, None))
    axes.legend()


OPTIMIZER_GRID = Experiment("optimizer-grid", "the algorithm that is chosen against the best one by measurement", run)
