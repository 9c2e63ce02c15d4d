"""growth: what a row and a result cost as groups, disorder and shards grow. Looks for cliffs."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.spark_sliding import generate as write_files
from windrow.bench.spark_sliding import rate
from windrow.language.builder import Stream, stream
from windrow.language.functions import count
from windrow.language.functions import max as greatest

GROUPS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)  # keys to draw from: with --quick not all of the most come up
DISORDER = (0, 1, 10, 60, 600)  # seconds, and the slack
SHARDS = (1, 2)
SPAN = 3600  # seconds of data, in whole seconds
RANGE, SLIDE = 600, 60
CLIFF = 3.0  # what the next point of a curve may cost at most, as a multiple of the one before
FILES = 4  # a micro-batch each


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """In process one thing grows at a time, with 1,000 groups and 10 s of disorder otherwise; shards are on Spark."""
    rows, rounds = (200_000, 3) if quick else (2_000_000, 3)
    figures: dict[str, float] = {}
    points: list[tuple[str, int, pl.DataFrame, int]] = [
        *(("groups", g, generate(rows, g, 10), 10) for g in GROUPS),
        *(("disorder", d, generate(rows, 1000, d), d) for d in DISORDER),
    ]
    for i, (what, value, data, slack) in enumerate(points):
        say(f"{what}: {value:,}", 0.6 * i / len(points))
        runs = [fed(query(data, slack), data) for _ in range(rounds)]
        _, results, state = runs[0]
        seconds = min(s for s, _, _ in runs)  # the least disturbed by whatever else this machine does
        figures[f"rows_per_s_{what}_{value}"] = round(rows / seconds)
        figures[f"results_{what}_{value}"] = results
        figures[f"us_each_{what}_{value}"] = round(seconds / (rows + results) * 1e6, 4)
        figures[f"state_kib_{what}_{value}"] = round(state / 1024)
    for shards, per_second in on_spark(rows // 2, say).items():
        figures[f"rows_per_s_shards_{shards}"] = round(per_second)
        figures[f"us_each_shards_{shards}"] = round(1e6 / per_second, 4)
    return Outcome(figures, claims(figures), lambda figure: _plot(figure, figures))


def generate(rows: int, groups: int, disorder: int) -> pl.DataFrame:
    """Rows in order of arrival, at most ``disorder`` seconds late, keys uniform."""
    rng = np.random.default_rng(1)
    at = np.sort(rng.integers(0, SPAN, rows))
    order = np.argsort(at + rng.integers(0, disorder + 1, rows), kind="stable")
    return pl.DataFrame({"t": at[order], "k": rng.integers(0, groups, rows), "x": rng.integers(0, 1000, rows)})


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


def on_spark(rows: int, say: Callable[[str, float], None]) -> dict[int, float]:
    """Rows per second by number of shards: the query of spark-sliding at RANGE/SLIDE 10."""
    from windrow.hosts.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        write_files(folder / "few", 20_000, files=2)
        write_files(folder / "data", rows * FILES, files=FILES)
        spark = session("windrow-bench", log=folder / "spark.log")
        schema = spark.read.parquet(str(folder / "data")).schema
        found = {}
        for i, (name, shards) in enumerate([("warm", SHARDS[-1]), *((str(s), s) for s in SHARDS)]):
            say(f"Spark, shards: {shards}", 0.6 + 0.4 * i / (len(SHARDS) + 1))
            source = folder / ("few" if name == "warm" else "data")
            files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
            windowed = stream(files, progress="ts", slack="3 seconds").window("10 minutes", "1 minute")
            grouped = windowed.group_by("src_ip").agg(n=count(), longest=greatest("len"))
            found[name] = rate(name, grouped.to_spark(shards=shards), folder)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {s: found[str(s)] for s in SHARDS}


def steps(figures: dict[str, float], what: str, values: Sequence[int]) -> list[float]:
    """By what factor the cost of a row or result changes from each point of a curve to the next.

    >>> steps({"us_each_groups_1": 2.0, "us_each_groups_10": 3.0}, "groups", (1, 10))
    [1.5]
    """
    costs = [figures[f"us_each_{what}_{v}"] for v in values]
    return [b / a for a, b in pairwise(costs)]


def claims(figures: dict[str, float]) -> dict[str, bool]:
    """No cliff: no step of a curve multiplies the cost of a row or result by more than CLIFF."""
    curves = {
        f"groups, each step ten times more, {GROUPS[0]} to {GROUPS[-1]:,}": steps(figures, "groups", GROUPS),
        f"disorder {', '.join(map(str, DISORDER))} s": steps(figures, "disorder", DISORDER),
        "shards on Spark, 1 to 2, per row": steps(figures, "shards", SHARDS),
    }
    return {
        f"no step costs more than {CLIFF:g} times as much per row and result: {name}": max(found) <= CLIFF
        for name, found in curves.items()
    }


def _plot(figure: Any, figures: dict[str, float]) -> None:
    curves = (("groups", GROUPS), ("disorder", DISORDER), ("shards", SHARDS))
    labels = {"groups": "groups", "disorder": "disorder in seconds", "shards": "shards"}
    for axes, (what, values) in zip(figure.subplots(1, 3, width_ratios=[3, 3, 1]), curves, strict=True):
        places = range(len(values))
        axes.plot(places, [figures[f"us_each_{what}_{v}"] for v in values], marker="o", color="C0")
        axes.set_xticks(places, [f"{v:,}" for v in values], rotation=45)
        axes.set(xlabel=labels[what], ylim=(0, None))
        if what != "shards":
            beside = axes.twinx()
            beside.plot(places, [figures[f"state_kib_{what}_{v}"] for v in values], marker="s", ls="--", color="C1")
            beside.set(yscale="log")
            if what == "disorder":
                beside.set_ylabel("greatest state in KiB (dashed)", color="C1")
    figure.axes[0].set_ylabel("µs per row and result (shards: per row, on Spark)", color="C0")


GROWTH = Experiment("growth", "cost and state as groups, disorder and shards grow", run)
