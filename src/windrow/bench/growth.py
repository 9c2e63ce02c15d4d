"""growth: what a row and a result cost as groups, disorder and shards grow, and how many rows a second that is.

Looks for cliffs. The cost is shared among rows and results: with more groups each row is in more results. What a user
sees is the rate, which falls with them, so it is beside the cost everywhere.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.api.functions import count
from windrow.api.functions import max as greatest
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.spark_sliding import MICROS, counted
from windrow.bench.spark_sliding import START as BEGIN
from windrow.bench.spark_sliding import generate as write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)  # keys to draw from: with --quick not all of the most come up
LIVE = (1_000, 10_000, 100_000, 1_000_000)  # groups that all have rows in every full window, so are held at once
DISORDER = (0, 1, 10, 60, 600)  # seconds, and the slack
SHARDS = (1, 2)
LIVE_ON_SPARK = (LIVE[0], LIVE[-1])
SPAN = 3600  # seconds of data, in whole seconds
RANGE, SLIDE = 600, 60
LIVE_ROWS, LIVE_SPAN = LIVE[-1] * 12 // 10, RANGE * 12 // 10  # so in RANGE each of the most groups has one row
CLIFF = 3.0  # what the next point of a curve may cost at most, as a multiple of the one before
FILES = 4  # a micro-batch each
CURVES = {  # and where each is measured
    "groups": ("groups", GROUPS),
    "live": ("live groups", LIVE),
    "disorder": ("disorder in seconds", DISORDER),
    "shards": ("shards, on Spark", SHARDS),
    "live_spark": ("live groups, on Spark", LIVE_ON_SPARK),
}


@dataclass(frozen=True)
class Point:
    """Of a curve in process. Where one thing grows there are 1,000 groups and 10 s of disorder otherwise."""

    curve: str
    value: int
    rounds: int
    make: Callable[[], pl.DataFrame]
    slack: int = 10


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """The curves in process, of which the fastest of some runs counts, and those on Spark."""
    rows, rounds = (200_000, 3) if quick else (2_000_000, 3)
    points = [
        *(Point("groups", g, rounds, lambda g=g: generate(rows, g, 10)) for g in GROUPS),  # type: ignore[misc]
        *(Point("live", g, 1 if quick else rounds, lambda g=g: live(g)) for g in LIVE),  # type: ignore[misc]
        *(Point("disorder", d, rounds, lambda d=d: generate(rows, 1000, d), d) for d in DISORDER),  # type: ignore[misc]
    ]
    figures: dict[str, float] = {}
    for i, point in enumerate(points):
        say(f"{CURVES[point.curve][0]}: {point.value:,}", 0.6 * i / len(points))
        figures |= measured(point)
    for (curve, value), (seconds, read, results) in on_spark(rows // 2, say):
        figures |= _figures(f"{curve}_{value}", seconds, read, 0 if curve == "shards" else results)
    return Outcome(figures, claims(figures), lambda figure: _plot(figure, figures))


def measured(point: Point) -> dict[str, float]:
    """The figures of a point: rows a second, and what a row and a result cost."""
    data = point.make()
    runs = [fed(query(data, point.slack), data) for _ in range(point.rounds)]
    _, results, state = runs[0]
    seconds = min(s for s, _, _ in runs)  # the least disturbed by whatever else this machine does
    name = f"{point.curve}_{point.value}"
    found = _figures(name, seconds, data.height, results)
    return found | {f"results_{name}": results, f"state_kib_{name}": round(state / 1024)}


def _figures(name: str, seconds: float, rows: int, results: int) -> dict[str, float]:
    each = round(seconds / (rows + results) * 1e6, 4)
    return {f"rows_per_s_{name}": round(rows / seconds), f"us_each_{name}": each}


def generate(rows: int, groups: int, disorder: int) -> pl.DataFrame:
    """Rows in order of arrival, at most ``disorder`` seconds late, keys uniform."""
    rng = np.random.default_rng(1)
    return _arriving(rng, rows, SPAN, disorder).with_columns(pl.Series("k", rng.integers(0, groups, rows)))


def live(groups: int, rows: int = LIVE_ROWS, span: int = LIVE_SPAN) -> pl.DataFrame:
    """As many rows for any number of groups. Each group comes again after as many rows as there are groups, so that a
    window of as many rows holds them all."""
    rng = np.random.default_rng(1)
    keys = np.resize(rng.permutation(groups), rows)
    return _arriving(rng, rows, span, 10).with_columns(pl.Series("k", keys))


def _arriving(rng: np.random.Generator, rows: int, span: int, disorder: int) -> pl.DataFrame:
    at = np.sort(rng.integers(0, span, rows))
    order = np.argsort(at + rng.integers(0, disorder + 1, rows), kind="stable")
    return pl.DataFrame({"t": at[order], "x": rng.integers(0, 1000, rows)})


def query(data: pl.DataFrame, slack: int) -> Stream:
    """Count and maximum by key, RANGE 10 minutes, SLIDE 1 minute."""
    s = stream(data.clear(), progress="t", slack=slack, name="s")
    return s.window(RANGE, SLIDE).group_by("k").agg(n=count(), top=greatest("x"))


def fed(query: Stream, data: pl.DataFrame, batches: int = 20) -> tuple[float, int, int]:
    """Seconds to the end, results, and the greatest state in bytes."""
    running = query.run()
    size = -(-data.height // batches)
    results = state = 0
    spent = 0.0
    for start in range(0, data.height, size):
        began = time.perf_counter()
        results += running.push("s", data[start : start + size]).results().height
        spent += time.perf_counter() - began
        state = max(state, running.state_bytes())
    began = time.perf_counter()
    results += running.end().results().height
    return spent + time.perf_counter() - began, results, state


def on_spark(rows: int, say: Callable[[str, float], None]) -> Iterator[tuple[tuple[str, int], tuple[float, int, int]]]:
    """Seconds, rows and results of each point on Spark, RANGE/SLIDE 10: by shards with the data of spark-sliding, and
    by live groups with as many shards as there are cores."""
    from windrow.hosts.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("Spark: data", 0.6)
        write_files(folder / "few", 20_000, files=2)
        write_files(folder / "shards", rows * FILES, files=FILES)
        for groups in LIVE_ON_SPARK:
            _write_live(folder / f"live_spark_{groups}", groups)
        spark = session("windrow-bench", log=folder / "spark.log")
        counted("warm", _on_files(spark, folder / "few", "src_ip", SHARDS[-1]), folder)
        points = [(curve, value) for curve in ("shards", "live_spark") for value in CURVES[curve][1]]
        for i, (curve, value) in enumerate(points):
            say(f"{CURVES[curve][0]}: {value:,}", 0.7 + 0.3 * i / len(points))
            shards = curve == "shards"
            source = folder / (curve if shards else f"{curve}_{value}")
            frame = _on_files(spark, source, "src_ip" if shards else "k", value if shards else None)
            yield (curve, value), counted(f"{curve}-{value}", frame, folder)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _on_files(spark: SparkSession, folder: Path, key: str, shards: int | None) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    windowed = stream(files, progress="ts", slack="10 seconds").window(f"{RANGE} seconds", f"{SLIDE} seconds")
    return windowed.group_by(key).agg(n=count(), longest=greatest("len")).to_spark(shards=shards)


def _write_live(folder: Path, groups: int) -> None:
    folder.mkdir(parents=True)
    instants = (pl.col("t") * MICROS + BEGIN).cast(pl.Datetime("us", "UTC")).alias("ts")
    rows = live(groups).select(instants, "k", pl.col("x").alias("len"))
    size = -(-rows.height // FILES)
    for i in range(FILES):
        rows[i * size : (i + 1) * size].write_parquet(folder / f"{i:03d}.parquet")


def steps(figures: dict[str, float], what: str, values: Sequence[int]) -> list[float]:
    """By what factor the cost of a row or result changes from each point of a curve to the next.

    >>> steps({"us_each_groups_1": 2.0, "us_each_groups_10": 3.0}, "groups", (1, 10))
    [1.5]
    """
    costs = [figures[f"us_each_{what}_{v}"] for v in values]
    return [b / a for a, b in pairwise(costs)]


def claims(figures: dict[str, float]) -> dict[str, bool]:
    """No cliff: no step of a curve multiplies the cost of a row or result by more than CLIFF. Between the two points of
    live groups on Spark there are as many steps as in process."""
    curves = {
        f"groups, each step ten times more, {GROUPS[0]} to {GROUPS[-1]:,}": steps(figures, "groups", GROUPS),
        f"live groups, each step ten times more, {LIVE[0]:,} to {LIVE[-1]:,}": steps(figures, "live", LIVE),
        f"disorder {', '.join(map(str, DISORDER))} s": steps(figures, "disorder", DISORDER),
        "shards on Spark, 1 to 2, per row": steps(figures, "shards", SHARDS),
        f"live groups on Spark, {LIVE_ON_SPARK[0]:,} to {LIVE_ON_SPARK[-1]:,}, for each ten times more": [
            step ** (1 / (len(LIVE) - 1)) for step in steps(figures, "live_spark", LIVE_ON_SPARK)
        ],
    }
    return {
        f"no step costs more than {CLIFF:g} times as much per row and result: {name}": max(found) <= CLIFF
        for name, found in curves.items()
    }


def _plot(figure: Any, figures: dict[str, float]) -> None:
    above, below = figure.subplots(2, len(CURVES), width_ratios=[len(v) for _, v in CURVES.values()])
    for rates, costs, (curve, (label, values)) in zip(above, below, CURVES.items(), strict=True):
        places = range(len(values))
        rates.plot(places, [figures[f"rows_per_s_{curve}_{v}"] for v in values], marker="o", color="C1")
        rates.set_xticks(places, [])
        rates.set(yscale="log")
        rates.set_title(label, fontsize=7)
        costs.plot(places, [figures[f"us_each_{curve}_{v}"] for v in values], marker="o", color="C0")
        costs.set_xticks(places, [f"{v:,}" for v in values], rotation=60, fontsize=7)
        costs.set(ylim=(0, None))
        for axes in (rates, costs):
            axes.tick_params(axis="y", labelsize=7)
    above[0].set_ylabel("rows per second", fontsize=8)
    below[0].set_ylabel("µs per row and result\n(shards: per row)", fontsize=8)


GROWTH = Experiment("growth", "cost and state as groups, disorder and shards grow", run)
