"""spark-sliding: the same window query by Spark's own ``window()`` and by Windrow on Spark, side by side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome
from windrow.hosts.spark.exchange import METRICS
from windrow.language.builder import Stream, read_parquet, stream
from windrow.language.functions import count
from windrow.language.functions import max as greatest
from windrow.sinks.parquet import read_committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

MICROS = 1_000_000
START = 1_700_000_040 * MICROS
ROWS_PER_BATCH = 1_000_000
FILES_PER_BATCH = 4  # so that both cores map
KEYS = 1000
SLACK = 3  # seconds, and the disorder of the data
WAYS = {"windrow": "Windrow", "spark": "Spark's own window()", "source": "Windrow with its file source"}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Both queries over the same files in one session, warm, both cores mapping, results to Parquet."""
    from windrow.hosts.spark.session import session

    batches, rows = 3 if quick else 5, ROWS_PER_BATCH
    ratios = (1, 10, 60) if quick else (1, 10, 60, 240)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("generating data", 0.0)
        generate(folder / "warm", batches * rows, files=FILES_PER_BATCH * batches)
        generate(folder / "data", batches * rows, files=FILES_PER_BATCH * batches)
        spark = session("windrow-bench", log=folder / "spark.log")
        outcome = _Bench(spark, folder, ratios, say).measure()
        outcome.figures["rows_per_batch"] = rows
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


@dataclass
class _Bench:
    spark: SparkSession
    folder: Path
    ratios: tuple[int, ...]
    say: Callable[[str, float], None]
    runs: int = 0

    def measure(self) -> Outcome:
        self.say("warming up", 0.05)
        for way in ("windrow", "source", "spark") * 2:  # with as many rows as are measured: the JVM compiles for long
            self._rate(way, 10, "warm")
        figures: dict[str, float] = {}
        equal = True
        steps = [(w, r) for r in self.ratios for w in ("windrow", "spark")] + [("source", 60)]
        for i, (way, ratio) in enumerate(steps):
            self.say(f"RANGE/SLIDE = {ratio}: {WAYS[way]}", 0.15 + 0.85 * i / len(steps))
            figures[f"rows_per_s_{way}_{ratio}"] = round(self._rate(way, ratio, "data"))
        for ratio in self.ratios:
            ours, theirs = figures[f"rows_per_s_windrow_{ratio}"], figures[f"rows_per_s_spark_{ratio}"]
            figures[f"speedup_{ratio}"] = round(ours / theirs, 2)
            equal = equal and _agree(self.folder, "windrow", ratio)
        figures["speedup_60_source"] = round(figures["rows_per_s_source_60"] / figures["rows_per_s_spark_60"], 2)
        equal = equal and _agree(self.folder, "source", 60)
        last = figures[f"rows_per_s_windrow_{self.ratios[-1]}"]
        figures["growth"] = round(figures["rows_per_s_windrow_1"] / last, 2)
        return Outcome(figures, _claims(figures, equal), lambda figure: _plot(figure, figures, self.ratios))

    def _rate(self, way: str, ratio: int, data: str) -> float:
        path = self.folder / data
        if way == "source":
            packets = read_parquet(path, "ts", slack=f"{SLACK} seconds", streaming=True, max_files=FILES_PER_BATCH)
            query = windrow_query(packets, ratio)
        else:
            schema = self.spark.read.parquet(str(path)).schema
            files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH)
            frame = files.parquet(str(path))
            packets = stream(frame, progress="ts", slack=f"{SLACK} seconds")
            query = spark_query(frame, ratio) if way == "spark" else windrow_query(packets, ratio)
        self.runs += 1
        name = f"{way}-{ratio}" if data == "data" else f"{data}-{self.runs}"
        return rate(name, query, self.folder)


def _claims(figures: dict[str, float], equal: bool) -> dict[str, bool]:
    floors = {1: 1.0, 60: 8.0, 240: 30.0}
    found = {
        f"over any DataFrame at least {floor:g} times as fast as Spark at RANGE/SLIDE = {r}": figures[f"speedup_{r}"]
        >= floor
        for r, floor in floors.items()
        if f"speedup_{r}" in figures
    }
    found["with the file source at least 12 times at 60"] = figures["speedup_60_source"] >= 12
    found["the cost at the largest RANGE/SLIDE is at most 1.5 times that at 1"] = figures["growth"] <= 1.5
    return found | {"all give the same windows": equal}


def windrow_query(packets: Stream, ratio: int) -> DataFrame:
    """Count and maximum by key with Windrow."""
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
    return float(1000 * sum(rows_read(p) for p in batches) / milliseconds)


def rows_read(progress: StreamingQueryProgress) -> int:
    """The rows of a micro-batch; of a source of ours Spark counts the blobs, and Windrow the rows."""
    metrics: Any = (progress.observedMetrics or {}).get(METRICS)
    return int(progress.numInputRows if metrics is None else metrics["rows_in"])


def _agree(folder: Path, way: str, ratio: int) -> bool:
    """The windows that both have released are the same (Spark's watermark is a micro-batch behind ours)."""
    ours, theirs = (read_committed(folder / f"{who}-{ratio}") for who in (way, "spark"))
    if not theirs.height:
        return True
    last: Any = theirs["window_end"].max()
    order = ["window_end", "src_ip"]
    return ours.filter(pl.col("window_end") <= last).sort(order).equals(theirs.sort(order))


def _plot(figure: Any, figures: dict[str, float], ratios: tuple[int, ...]) -> None:
    axes = figure.subplots()
    for who, label in (("windrow", "Windrow on Spark"), ("spark", "Spark's own window()")):
        axes.plot(ratios, [figures[f"rows_per_s_{who}_{r}"] for r in ratios], marker="o", label=label)
    axes.plot([60], [figures["rows_per_s_source_60"]], marker="*", label="Windrow with its file source")
    axes.set(xscale="log", yscale="log", xlabel="RANGE / SLIDE", ylabel="rows per second")
    axes.legend()


SPARK_SLIDING = Experiment("spark-sliding", "Spark's own window() against Windrow on Spark, RANGE/SLIDE 1..240", run)
