"""one-tuple: how long a single tuple takes in process, through a selection, a union and a window aggregate.

Beside it is what Spark takes for a micro-batch of one row: of a filter alone, which is the least for any query, and of
the same query with Windrow on Spark.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.api.functions import count
from windrow.api.functions import max as greatest
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST, GOAL = 500, 200  # microseconds, of the median
SOURCES = ("a", "b")
RANGE, SLIDE, SLACK = 60, 10, 5
KEYS = 10
PER_UNIT = 10  # tuples for each unit of the progressing attribute
SHARE = 0.9  # of the tuples pass the selection
WARM = 200  # tuples at the start of a run that are not counted
ON_SPARK = ("us_spark_floor", "us_spark_windrow")
MICRO_BATCHES = 25  # of each source on Spark; the first five are not counted
Tuple = tuple[str, dict[str, Any]]  # its source, and its columns
Times = list[tuple[float, int]]  # microseconds for each tuple, and how many results it released


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Frames of one row, and dicts, in turn. The best run of each counts."""
    rounds, tuples = (5, 1500) if quick else (9, 4000)
    rows = generate(tuples + WARM)
    given: dict[str, list[tuple[str, Any]]] = {
        "frame": [(s, pl.DataFrame([row])) for s, row in rows],
        "dict": [(s, [row]) for s, row in rows],
    }
    runs: dict[str, list[Times]] = {how: [] for how in given}
    for i in range(rounds):
        for how, fed in given.items():
            say(f"{how}, round {i + 1} of {rounds}", (0.9 if quick else 0.5) * i / rounds)
            runs[how].append(timed(query(*streams()), fed))
    figures = figures_of(runs)
    if not quick:
        say("micro-batches of one row on Spark", 0.6)
        figures |= on_spark(rows[: len(SOURCES) * MICRO_BATCHES])
    missing = tuple(name for name in ON_SPARK if name not in figures)
    return Outcome(figures, claims(figures), lambda figure: _plot(figure, figures), not_measured=missing)


def generate(tuples: int) -> list[Tuple]:
    """Tuples of the sources in turn, each up to three units late."""
    rng = np.random.default_rng(1)
    at = np.arange(tuples) // PER_UNIT + rng.integers(0, 3, tuples)
    columns = at.tolist(), rng.integers(0, KEYS, tuples).tolist(), rng.uniform(0, 1, tuples).tolist()
    rows = [{"t": t, "k": k, "v": v} for t, k, v in zip(*columns, strict=True)]
    return [(SOURCES[i % len(SOURCES)], row) for i, row in enumerate(rows)]


def streams() -> list[Stream]:
    """The sources, as they are declared in process."""
    empty = pl.DataFrame(schema={"t": pl.Int64, "k": pl.Int64, "v": pl.Float64})
    return [stream(empty, "t", slack=SLACK, name=name) for name in SOURCES]


def query(*given: Stream) -> Stream:
    """Selection, union, and count and maximum over sliding windows by an integer key."""
    first, second = (each.where(f"v < {SHARE}") for each in given)
    return first.union(second).window(RANGE, SLIDE).group_by("k").agg(n=count(), top=greatest("v"))


def timed(asked: Stream, fed: Sequence[tuple[str, Any]]) -> Times:
    """Each tuple is pushed and its results are taken before the next one. The collector of garbage runs before."""
    running = asked.run()
    found: Times = []
    gc.collect()
    for source, row in fed:
        began = time.perf_counter()
        results = running.push(source, row).results()
        found.append((1e6 * (time.perf_counter() - began), results.height))
    return found[WARM:]


def figures_of(runs: Mapping[str, Sequence[Times]]) -> dict[str, float]:
    """Of the run with the least median. ``us_median`` and ``us_p95`` are those of frames, over all tuples."""
    figures: dict[str, float] = {}
    for how, repeated in runs.items():
        best = min(repeated, key=lambda times: median(us for us, _ in times))
        parts = {"": best, "_nothing_released": [t for t in best if not t[1]], "_released": [t for t in best if t[1]]}
        for part, times in parts.items():
            took = [us for us, _ in times]
            figures[f"us_median_{how}{part}"] = round(median(took), 1)
            figures[f"us_p95_{how}{part}"] = round(float(np.quantile(took, 0.95)), 1)
    return {"us_median": figures["us_median_frame"], "us_p95": figures["us_p95_frame"], **figures}


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """The bound of the issue holds for both ways to give a tuple."""
    return {
        f"a tuple takes a median of at most {MOST} µs as a frame": figures["us_median"] <= MOST,
        f"a tuple takes a median of at most {MOST} µs as a dict": figures["us_median_dict"] <= MOST,
    }


# -- on Spark ----------------------------------------------------------------------------------------------------------
def on_spark(rows: Sequence[Tuple]) -> dict[str, float]:
    """The median microseconds of micro-batches of one row of each source."""
    from windrow.hosts.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        for number, (source, row) in enumerate(rows):
            place = folder / source
            place.mkdir(exist_ok=True)
            pl.DataFrame([row]).write_parquet(place / f"{number:04d}.parquet")
        spark = session("windrow-bench", log=folder / "spark.log")
        try:
            floor = _read(spark, folder / SOURCES[0]).where(f"v < {SHARE}")
            given = [stream(_read(spark, folder / name), "t", slack=SLACK, name=name) for name in SOURCES]
            ways = dict(zip(ON_SPARK, (floor, query(*given).to_spark()), strict=True))
            return {name: _micro_batch(frame, folder / name) for name, frame in ways.items()}
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _read(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _micro_batch(frame: DataFrame, state: Path) -> float:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(state))
    asked = writer.trigger(availableNow=True).start()
    asked.awaitTermination()
    took = [1000.0 * p.durationMs["triggerExecution"] for p in asked.recentProgress if p.numInputRows]
    return float(median(took[5:]))


def _plot(figure: Any, figures: Mapping[str, float]) -> None:
    names = {"us_median_frame": "in process, frame", "us_median_dict": "in process, dict"}
    names |= {"us_spark_floor": "Spark, filter alone", "us_spark_windrow": "Windrow on Spark"}
    known = {name: label for name, label in names.items() if name in figures}
    axes = figure.subplots()
    bars = axes.bar(list(known.values()), [figures[name] for name in known])
    axes.bar_label(bars, [f"{figures[name]:,.0f}" for name in known])
    for bound, style in ((MOST, "--"), (GOAL, ":")):
        axes.axhline(bound, linestyle=style, color="grey", label=f"{bound} µs")
    axes.set(yscale="log", ylabel="median microseconds for one tuple")
    axes.legend()


ONE_TUPLE = Experiment("one-tuple", "the time of one tuple in process, beside a micro-batch of Spark", run)
