"""spark-sliding: the same window query by Spark's own ``window()`` and by Windrow on Spark, side by side.

Spark runs it as it comes, with its default state store, and with the settings of ``wr.session``; the faster one counts.
Windrow runs it in ``wr.session`` and in a foreign session, which has none of our settings.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.api.functions import count
from windrow.api.functions import max as greatest
from windrow.api.sources import read_parquet, stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.hosts.spark.exchange import METRICS
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
VARIANTS = {
    "windrow": "Windrow",
    "spark_default": "Spark's own window(), default state store",
    "spark_rocksdb": "Spark's own window(), RocksDB",
    "foreign": "Windrow in a foreign session",
    "source": "Windrow with its file source",
}
SPARKS = ("spark_default", "spark_rocksdb")
FLOORS = {1: 0.8, 60: 5.0, 240: 20.0}  # of the claims: how many times as fast as the faster Spark
SOURCE_FLOOR = 7.0  # at 60
THAN = "times as fast as the faster of Spark's two state stores at RANGE/SLIDE ="
AFTER = f"batches of {ROWS_PER_BATCH:,} rows and this floor"  # as the line of each of these claims says


@dataclass(frozen=True)
class Scope:
    """How much is measured. ``rounds``: how often each side runs; the order is turned round from one to the next."""

    batches: int
    rounds: dict[int, int]  # by RANGE/SLIDE
    both: tuple[int, ...]  # where both of Spark's state stores run; elsewhere the one that was faster before
    foreign: tuple[int, ...]  # where the foreign session runs
    sizes: tuple[int, ...] = ()  # other micro-batches, in files, for the curves

    @property
    def ratios(self) -> tuple[int, ...]:
        return tuple(self.rounds)


WHOLE = Scope(5, {1: 3, 10: 3, 60: 3, 240: 1}, both=(1, 10, 60, 240), foreign=(1, 10, 60, 240), sizes=(2, 8))
QUICK = Scope(2, {1: 1, 10: 1, 60: 1}, both=(1, 10), foreign=(60,))


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All queries over the same files in one JVM, warm, both cores mapping, results to Parquet."""
    from windrow.hosts.spark.session import session

    scope = QUICK if quick else WHOLE
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("generating data", 0.0)
        generate(folder / "data", scope.batches * ROWS_PER_BATCH, files=FILES_PER_BATCH * scope.batches)
        spark = session("windrow-bench", log=folder / "spark.log")
        try:
            outcome = _Bench(sessions(spark), folder, scope, say).measure()
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.figures["rows_per_batch"] = ROWS_PER_BATCH
    return outcome


def sessions(spark: SparkSession) -> dict[str, SparkSession]:
    """The session of each variant, all in one JVM. Those that are not ours have Spark's default for every setting of
    SQL and streaming; but Spark's own query gets as many shuffle partitions as ours: its 200 would only make it slower.
    """
    from windrow.hosts.spark.session import SHUFFLE_PARTITIONS

    stock = _stock(spark)
    stock.conf.set(SHUFFLE_PARTITIONS, spark.conf.get(SHUFFLE_PARTITIONS))
    return {**dict.fromkeys(VARIANTS, spark), "spark_default": stock, "foreign": _stock(spark)}


def _stock(spark: SparkSession) -> SparkSession:
    """Another session of the same JVM without what the first was given."""
    from pyspark.errors import AnalysisException

    other = spark.newSession()
    for key in [key for key in other.conf.getAll if key.startswith("spark.sql.")]:
        with suppress(AnalysisException):  # of the few that the whole JVM has, such as the place of tables
            other.conf.unset(key)
    return other


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
    sessions: dict[str, SparkSession]
    folder: Path
    scope: Scope
    say: Callable[[str, float], None]
    rates: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    equal: bool = True

    def measure(self) -> Outcome:
        self.say("warming up", 0.02)
        for i, variant in enumerate(VARIANTS):  # with as many rows as are measured: the JVM compiles for long
            self._rate(variant, 10, f"warm-{i}")
        turn = 0
        for ratio, rounds in self.scope.rounds.items():
            for number in range(rounds):
                variants = self._variants(ratio)
                self._round(ratio, variants if turn % 2 == 0 else variants[::-1], number)
                turn += 1
        figures = figures_of(self.rates, self.scope.ratios)
        curves = self._by_size(figures)
        holds = _claims(figures, self.equal)
        return Outcome(figures, holds, lambda figure: _plot(figure, figures, self.scope.ratios), curves)

    def _by_size(self, figures: dict[str, float]) -> dict[str, dict[str, float]]:
        found = {}
        for ratio in (1, 60) if self.scope.sizes else ():
            spark, curve = faster(self.rates, ratio), {}
            for files in self.scope.sizes:
                self.say(f"RANGE/SLIDE = {ratio}: micro-batches of {files} files", 0.95)
                ours, theirs = (self._rate(w, ratio, f"{w}-{ratio}-of-{files}", files) for w in ("windrow", spark))
                curve[f"micro-batches of {files * ROWS_PER_BATCH // FILES_PER_BATCH:,} rows"] = round(ours / theirs, 2)
            curve[f"micro-batches of {ROWS_PER_BATCH:,} rows"] = figures[f"speedup_{ratio}"]
            found[_floor(ratio)] = curve
        return found

    def _variants(self, ratio: int) -> list[str]:
        """Who runs here, the two that are compared first next to each other."""
        sparks = SPARKS if ratio in self.scope.both else (faster(self.rates, self.scope.both[-1]),)
        more = [w for w, here in (("foreign", ratio in self.scope.foreign), ("source", ratio == 60)) if here]
        return ["windrow", *sparks, *more]

    def _round(self, ratio: int, variants: Sequence[str], number: int) -> None:
        names = []
        for variant in variants:
            ratios = self.scope.ratios
            self.say(f"RANGE/SLIDE = {ratio}: {VARIANTS[variant]}", 0.15 + 0.85 * ratios.index(ratio) / len(ratios))
            names.append(f"{variant}-{ratio}-{number}")
            self.rates.setdefault((variant, ratio), []).append(self._rate(variant, ratio, names[-1]))
        found = {name: read_committed(self.folder / name) for name in names}
        behind = next(name for name in names if name.startswith("spark"))  # Spark's watermark is a batch behind
        self.equal = self.equal and all(agree(each, found[behind]) for each in found.values())
        for name in names:  # or the results of a whole run would fill the disk
            shutil.rmtree(self.folder / name)
            shutil.rmtree(self.folder / f"{name}-state")

    def _rate(self, variant: str, ratio: int, name: str, files: int = FILES_PER_BATCH) -> float:
        spark, path = self.sessions[variant], self.folder / "data"
        if variant == "source":
            packets = read_parquet(path, "ts", slack=f"{SLACK} seconds", streaming=True, max_files=files)
            return rate(name, windrow_query(packets, ratio), self.folder)
        schema = spark.read.parquet(str(path)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(path))
        if variant in SPARKS:
            return rate(name, spark_query(frame, ratio), self.folder)
        return rate(name, windrow_query(stream(frame, progress="ts", slack=f"{SLACK} seconds"), ratio), self.folder)


def faster(rates: dict[tuple[str, int], list[float]], ratio: int) -> str:
    """With which state store Spark's own query was faster."""
    return max(
        (variant for variant in SPARKS if (variant, ratio) in rates), key=lambda variant: max(rates[variant, ratio])
    )


def figures_of(rates: dict[tuple[str, int], list[float]], ratios: Sequence[int]) -> dict[str, float]:
    """The best run of each side, and ratios to the best of Spark. ``noise``: the most by which runs of one differ."""
    figures: dict[str, float] = {
        f"rows_per_s_{variant}_{r}": round(max(found)) for (variant, r), found in rates.items()
    }
    for r in ratios:
        spark = figures[f"rows_per_s_{faster(rates, r)}_{r}"]
        figures[f"rows_per_s_spark_{r}"] = spark
        figures[f"speedup_{r}"] = round(figures[f"rows_per_s_windrow_{r}"] / spark, 2)
        for variant in (w for w in SPARKS if (w, r) in rates):
            ours = figures[f"rows_per_s_windrow_{r}"]
            figures[f"speedup_{r}_over_{variant}"] = round(ours / figures[f"rows_per_s_{variant}_{r}"], 2)
        for variant in (w for w in ("foreign", "source") if (w, r) in rates):
            figures[f"speedup_{r}_{variant}"] = round(figures[f"rows_per_s_{variant}_{r}"] / spark, 2)
    last = figures[f"rows_per_s_windrow_{ratios[-1]}"]
    figures["growth"] = round(figures[f"rows_per_s_windrow_{ratios[0]}"] / last, 2)
    figures["noise"] = round(max(max(found) / min(found) for found in rates.values()), 2)
    return figures


def _floor(ratio: int) -> str:
    return afterwards(f"over any DataFrame at least {FLOORS[ratio]:g} {THAN} {ratio}", AFTER)


def _claims(figures: dict[str, float], equal: bool) -> dict[str, bool]:
    found = {_floor(r): figures[f"speedup_{r}"] >= floor for r, floor in FLOORS.items() if f"speedup_{r}" in figures}
    source = afterwards(f"with the file source at least {SOURCE_FLOOR:g} {THAN} 60", AFTER)
    found[source] = figures["speedup_60_source"] >= SOURCE_FLOOR
    found["the cost at the largest RANGE/SLIDE is at most 1.5 times that at 1"] = figures["growth"] <= 1.5
    return found | {"all sides write results, and the same windows": equal}


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
    """Rows per second."""
    seconds, rows, _ = counted(name, frame, folder)
    return rows / seconds


def counted(name: str, frame: DataFrame, folder: Path) -> tuple[float, int, int]:
    """Seconds, rows and Windrow's results of all micro-batches but the first, which also starts the query; results are
    written out."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / name))
    query = writer.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p.numInputRows][1:]
    seconds = sum(p.durationMs["triggerExecution"] for p in batches) / 1000
    return seconds, sum(rows_read(p) for p in batches), sum(_metric(p, "rows_out", 0) for p in batches)


def rows_read(progress: StreamingQueryProgress) -> int:
    """The rows of a micro-batch; of a source of ours Spark counts the blobs, and Windrow the rows."""
    return _metric(progress, "rows_in", progress.numInputRows)


def _metric(progress: StreamingQueryProgress, name: str, otherwise: int) -> int:
    metrics: Any = (progress.observedMetrics or {}).get(METRICS)
    return int(otherwise if metrics is None else metrics[name])


def agree(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Whether both wrote something, and the windows that both have released are the same. ``theirs`` may be behind."""
    if not ours.height or not theirs.height:
        return False
    a, b = _plain(ours), _plain(theirs)
    return a.filter(pl.col("window_end") <= b["window_end"].max()).equals(b)


def _plain(results: pl.DataFrame) -> pl.DataFrame:
    """In one order, and instants as numbers: what Spark writes by default does not tell the time zone."""
    found = results.select("window_end", "window_start", "src_ip", "n", "longest")
    return found.with_columns(pl.selectors.datetime().to_physical()).sort("window_end", "src_ip")


def _plot(figure: Any, figures: dict[str, float], ratios: tuple[int, ...]) -> None:
    axes = figure.subplots()
    for variant, label in VARIANTS.items():
        known = [r for r in ratios if f"rows_per_s_{variant}_{r}" in figures]
        axes.plot(known, [figures[f"rows_per_s_{variant}_{r}"] for r in known], marker="o", label=label)
    axes.set(xscale="log", yscale="log", xlabel="RANGE / SLIDE", ylabel="rows per second")
    axes.legend(fontsize=8)


SPARK_SLIDING = Experiment("spark-sliding", "Spark's own window() against Windrow on Spark, RANGE/SLIDE 1..240", run)
