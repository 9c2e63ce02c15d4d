"""spark-sliding: the same window query by Spark's own ``window()`` and by Windrow on Spark, side by side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome
from windrow.language.builder import stream
from windrow.language.functions import count
from windrow.language.functions import max as greatest
from windrow.sinks.parquet import read_committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICROS = 1_000_000
START = 1_700_000_040 * MICROS
ROWS_PER_BATCH = 1_000_000
FILES_PER_BATCH = 4  # so that both cores map
KEYS = 1000
SLACK = 3  # seconds, and the disorder of the data


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Both queries over the same files in one session, warm, both cores mapping, results to Parquet."""
    from windrow.hosts.spark.session import session

    batches = 3 if quick else 5
    ratios = (1, 10, 60) if quick else (1, 10, 60, 240)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("generating data", 0.0)
        generate(folder / "warm", 100_000, files=FILES_PER_BATCH)
        generate(folder / "data", batches * ROWS_PER_BATCH, files=FILES_PER_BATCH * batches)
        spark = session("windrow-bench", log=folder / "spark.log")
        outcome = _measure(spark, folder, ratios, say)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def generate(folder: Path, rows: int, files: int) -> None:
    """Packets over four hours, Zipf keys, each up to SLACK seconds late."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    ts = np.sort(rng.integers(0, 4 * 3600 * MICROS, rows))
    order = np.argsort(ts + rng.integers(0, SLACK * MICROS, rows), kind="stable")
    key = rng.zipf(1.2, rows) % KEYS
    frame = pl.DataFrame(
        {
            "ts": pl.Series(ts[order] + START).cast(pl.Datetime("us", "UTC")),
            "src_ip": pl.Series(key).cast(pl.String).str.zfill(4).str.replace("^", "10.0."),
            "len": rng.integers(40, 1501, rows),
        }
    )
    size = -(-rows // files)
    for i in range(files):
        frame[i * size : (i + 1) * size].write_parquet(folder / f"{i:03d}.parquet")


def _measure(
    spark: SparkSession,
    folder: Path,
    ratios: tuple[int, ...],
    say: Callable[[str, float], None],
) -> Outcome:
    schema = spark.read.parquet(str(folder / "data")).schema

    def source(name: str = "data") -> DataFrame:
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH if name == "data" else 1)
        return files.parquet(str(folder / name))

    say("warming up", 0.05)
    rate("warm-windrow", windrow_query(source("warm"), 10), folder)
    rate("warm-spark", spark_query(source("warm"), 10), folder)
    figures: dict[str, float] = {}
    equal = True
    for i, ratio in enumerate(ratios):
        share = 0.15 + 0.85 * i / len(ratios)
        say(f"RANGE/SLIDE = {ratio}: Windrow", share)
        ours = rate(f"windrow-{ratio}", windrow_query(source(), ratio), folder)
        say(f"RANGE/SLIDE = {ratio}: Spark's own window()", share + 0.2 / len(ratios))
        theirs = rate(f"spark-{ratio}", spark_query(source(), ratio), folder)
        figures[f"rows_per_s_windrow_{ratio}"] = round(ours)
        figures[f"rows_per_s_spark_{ratio}"] = round(theirs)
        figures[f"speedup_{ratio}"] = round(ours / theirs, 2)
        equal = equal and _agree(folder, ratio)
    figures["growth"] = round(figures["rows_per_s_windrow_1"] / figures[f"rows_per_s_windrow_{ratios[-1]}"], 2)
    holds = {
        "at RANGE/SLIDE = 60 Windrow is at least 5 times as fast": figures["speedup_60"] >= 5,
        "both give the same windows": equal,
    }
    return Outcome(figures, holds, lambda figure: _plot(figure, figures, ratios))


def windrow_query(source: DataFrame, ratio: int) -> DataFrame:
    """Count and maximum by key with Windrow."""
    packets = stream(source, progress="ts", slack=f"{SLACK} seconds")
    grouped = packets.window(range=f"{ratio} minutes", slide="1 minute").group_by("src_ip")
    return grouped.agg(n=count(), longest=greatest("len")).to_spark()


def spark_query(source: DataFrame, ratio: int) -> DataFrame:
    """The same with Spark's window()."""
    from pyspark.sql import functions as f

    window = f.window("ts", f"{ratio} minutes", "1 minute")
    grouped = source.withWatermark("ts", f"{SLACK} seconds").groupBy(window, "src_ip")
    named = grouped.agg(f.count("*").alias("n"), f.max("len").alias("longest"))
    return named.select("src_ip", "window.start", "window.end", "n", "longest").toDF(
        "src_ip", "window_start", "window_end", "n", "longest"
    )


def rate(name: str, frame: DataFrame, folder: Path) -> float:
    """Rows per second over all micro-batches but the first, which also starts the query; results are written out."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / name))
    query = writer.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p.numInputRows][1:]
    milliseconds = sum(p.durationMs["triggerExecution"] for p in batches)
    return float(1000 * sum(p.numInputRows for p in batches) / milliseconds)


def _agree(folder: Path, ratio: int) -> bool:
    """The windows that both have released are the same (Spark's watermark is a micro-batch behind ours)."""
    ours, theirs = (read_committed(folder / f"{who}-{ratio}") for who in ("windrow", "spark"))
    if not theirs.height:
        return True
    last: Any = theirs["window_end"].max()
    order = ["window_end", "src_ip"]
    return ours.filter(pl.col("window_end") <= last).sort(order).equals(theirs.sort(order))


def _plot(figure: Any, figures: dict[str, float], ratios: tuple[int, ...]) -> None:
    axes = figure.subplots()
    for who, label in (("windrow", "Windrow on Spark"), ("spark", "Spark's own window()")):
        axes.plot(ratios, [figures[f"rows_per_s_{who}_{r}"] for r in ratios], marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="RANGE / SLIDE", ylabel="rows per second")
    axes.legend()


SPARK_SLIDING = Experiment("spark-sliding", "Spark's own window() against Windrow on Spark, RANGE/SLIDE 1..240", run)
