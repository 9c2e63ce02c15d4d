"""slide-by-tuple: what a tuple costs as RANGE grows, by blocks, bins and buffering (Li 6.1.4, future work there)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from windrow.api import functions as wr
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome, afterwards

STEP = 30  # milliseconds between two tuples, so that RANGE 5 minutes holds 10,000 tuples
RANGES = (100, 1_000, 10_000)  # tuples in a window
FAR = 100_000  # and in the full run, but for buffering, which would take minutes
DISORDER = 0.1  # the share of tuples that come late, by at most SLACK milliseconds
SLACK = 100 * STEP
BATCH = 5_000
BATCHES = (1_000, BATCH, 25_000)  # at the largest RANGE
KEYS = 50
ALGORITHMS = ("blocks", "bins", "buffering")


@dataclass(frozen=True)
class Case:
    """One line of the table: an algorithm, how many tuples a window holds, and what else differs from the default."""

    using: str
    tuples: int
    every: int = 1
    by: Literal["rank", "row_num"] = "rank"
    disorder: float = DISORDER
    partitioned: bool = False
    suffix: str = ""
    batch: int = BATCH

    @property
    def name(self) -> str:
        return f"us_per_tuple_{self.using}_{self.tuples}{self.suffix}"


VARIANTS = [
    Case("blocks", RANGES[-1], every=100, suffix="_every_100_by_rank"),
    Case("blocks", RANGES[-1], every=100, by="row_num", suffix="_every_100_by_row_num"),
    Case("blocks", RANGES[-1], disorder=0.0, suffix="_in_order"),
    Case("blocks", RANGES[-1], disorder=1.0, suffix="_all_out_of_order"),
    Case("blocks", RANGES[-1], partitioned=True, suffix="_partitioned"),
]
SIZES = [
    Case(using, RANGES[-1], batch=batch, suffix=f"_batch_{batch}")
    for batch in BATCHES
    if batch != BATCH
    for using in ALGORITHMS
]
TWICE = afterwards("blocks: a tuple costs at most twice as much with 100 times the RANGE", f"batches of {BATCH:,} rows")
BELOW = {
    using: afterwards(f"blocks below {using} at the largest RANGE", f"batches of {BATCH:,} rows")
    for using in ALGORITHMS[1:]
}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Microseconds of one process per tuple, after the first RANGE, median of several runs in turn."""
    cases = [Case(using, tuples) for tuples in RANGES for using in ALGORITHMS] + VARIANTS + SIZES
    if not quick:
        slow = [Case(using, RANGES[-1], every=100, suffix="_every_100_by_rank") for using in ALGORITHMS[1:]]
        cases += [*slow, *(Case(using, FAR) for using in ALGORITHMS[:2])]
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    rounds = 3 if quick else 7
    spent(Case("blocks", 100), 5 * BATCH)  # warm
    for turn in range(rounds):
        for i, case in enumerate(cases):
            say(f"{case.using}, {case.tuples} tuples per window", (turn + i / len(cases)) / rounds)
            times[case.name].append(spent(case, rows_of(case, quick)))
    figures = {name: round(1e6 * statistics.median(each), 3) for name, each in times.items()}
    growth = {
        u: figures[f"us_per_tuple_{u}_{RANGES[-1]}"] / figures[f"us_per_tuple_{u}_{RANGES[0]}"] for u in ALGORITHMS
    }
    figures["growth_100x"] = round(growth["blocks"], 2)
    figures |= {f"growth_100x_{using}": round(growth[using], 2) for using in ALGORITHMS[1:]}
    last = {using: figures[f"us_per_tuple_{using}_{RANGES[-1]}"] for using in ALGORITHMS}
    holds = {
        TWICE: growth["blocks"] <= 2,
        **{claim: last["blocks"] < last[using] for using, claim in BELOW.items()},
        "buffering grows with RANGE more than blocks": growth["buffering"] > growth["blocks"],
    }
    return Outcome(figures, holds, lambda figure: _plot(figure, figures), _curves(figures))


def _curves(figures: dict[str, float]) -> dict[str, dict[str, float]]:
    """What other sizes of a batch give: microseconds per tuple at the largest RANGE, over those of blocks."""

    def cost(using: str, batch: int) -> float:
        return figures[f"us_per_tuple_{using}_{RANGES[-1]}" + (f"_batch_{batch}" if batch != BATCH else "")]

    def over(using: str) -> dict[str, float]:
        return {f"{using} over blocks, {b:,} rows": round(cost(using, b) / cost("blocks", b), 2) for b in BATCHES}

    own = {f"us per tuple at the largest RANGE, {b:,} rows": cost("blocks", b) for b in BATCHES}
    return {TWICE: own, **{claim: over(using) for using, claim in BELOW.items()}}


def rows_of(case: Case, quick: bool) -> int:
    """How many tuples are timed: fewer where a tuple costs more."""
    fast = case.using == "blocks"
    return case.batch * ((12 if quick else 40) if fast else (2 if quick else 8))


def spent(case: Case, timed: int) -> float:
    """Seconds per tuple, for ``timed`` tuples after a RANGE of them, and a block more, has come."""
    before = -(-2 * case.tuples // case.batch) * case.batch
    data = generate(before + timed, case.disorder)
    running = query(case, data).run()
    running.push("s", data[:before])
    running.results()
    began = time.perf_counter()
    for start in range(before, data.height, case.batch):
        running.push("s", data[start : start + case.batch])
        running.results()
    return (time.perf_counter() - began) / timed


def query(case: Case, data: pl.DataFrame) -> Stream:
    """The mean, the greatest and the number of the values in the last RANGE, at every n-th tuple."""
    source = stream(data.clear(), progress="t", slack=SLACK, row_num="n", name="s")
    parts = ["k"] if case.partitioned else []
    windows = source.each_row(case.tuples * STEP, case.every, by=case.by, partition_by=parts, using=case.using)
    return windows.agg(n=wr.count(), mean=wr.avg("x"), top=wr.max("x"))


def generate(rows: int, disorder: float) -> pl.DataFrame:
    """Tuples in order of arrival: some of them late, by any part of the slack."""
    rng = np.random.default_rng(1)
    at = np.arange(rows) * STEP
    delay = np.where(rng.random(rows) < disorder, rng.integers(0, SLACK, rows), 0)
    order = np.argsort(at + delay, kind="stable")
    values, keys = rng.normal(size=rows), rng.integers(0, KEYS, rows)
    return pl.DataFrame({"t": at[order], "n": np.arange(rows), "k": keys[order], "x": values[order]})


def _plot(figure: Any, figures: dict[str, float]) -> None:
    ranges, sizes, variants = figure.subplots(1, 3)
    for using in ALGORITHMS:
        known = [r for r in (*RANGES, FAR) if f"us_per_tuple_{using}_{r}" in figures]
        ranges.plot(known, [figures[f"us_per_tuple_{using}_{r}"] for r in known], marker="o", label=using)
    ranges.set(xscale="log", yscale="log", xlabel="tuples in a window", ylabel="microseconds per tuple")
    ranges.legend()
    for using in ALGORITHMS:
        names = [f"us_per_tuple_{using}_{RANGES[-1]}" + (f"_batch_{b}" if b != BATCH else "") for b in BATCHES]
        sizes.plot([f"{b:,}" for b in BATCHES], [figures[name] for name in names], marker="o", label=using)
    sizes.set(yscale="log", xlabel="rows in a batch")
    sizes.set_title(f"{RANGES[-1]:,} tuples in a window", fontsize=8)
    names = [case.suffix[1:].replace("_", " ") for case in VARIANTS]
    variants.barh(names[::-1], [figures[case.name] for case in VARIANTS[::-1]])
    variants.set(xlabel="microseconds per tuple")
    variants.set_title(f"blocks, {RANGES[-1]:,} tuples in a window", fontsize=8)


SLIDE_BY_TUPLE = Experiment(
    "slide-by-tuple", "Li 6.1.4: windows back from every n-th tuple, cost as RANGE grows", run, paper="Li 6.1.4"
)
