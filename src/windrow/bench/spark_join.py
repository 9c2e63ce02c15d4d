"""spark-join: the same band join by Spark's own stream-stream join and by Windrow on Spark, side by side.

Spark runs it as it comes, with its default state store, and with the settings of ``wr.session``, which has RocksDB; the
faster one counts. Then what Windrow's join does with one key that has half of the rows, and without keys.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.join_data import BAND, BATCH, SLACK, START, hot_span, side
from windrow.bench.spark_sliding import SPARKS, sessions
from windrow.bench.theta import slow, theta_side
from windrow.hosts.spark.exchange import METRICS
from windrow.sinks.parquet import BATCH as FOLDER
from windrow.sinks.parquet import ParquetBatches, read_committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

KEYS, SPAN = 10_000, 600  # and seconds: with 1,000 keys over an hour Spark's join compares a row with 500 of its state
FILES = 2  # of a side in a micro-batch, so that both cores map
THETA = 150_000  # rows of a side in a micro-batch of the theta join: with 50,000 Spark's fixed work is a third
VARIANTS = {
    "windrow": "Windrow",
    "spark_default": "Spark's own join, default state store",
    "spark_rocksdb": "Spark's own join, RocksDB",
}
NEAR = f"{BAND} seconds"
SPEEDUP, STATE, EARLIER, SKEWED, SCALING = 5.0, 0.1, 1, 0.5, 1.7  # the bounds of the claims


@dataclass(frozen=True)
class Scope:
    """How much is measured. ``rounds``: how often each side runs; the order is turned round from one to the next.
    ``more``: with a hot key, and without keys.
    """

    batches: int
    rounds: int
    more: bool


WHOLE, QUICK = Scope(4, 3, more=True), Scope(2, 1, more=False)


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All joins over the same files in one JVM, warm, both cores mapping, results to Parquet."""
    from windrow.hosts.spark.session import session

    scope = QUICK if quick else WHOLE
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("generating data", 0.0)
        generate(folder, scope)
        spark = session("windrow-bench", log=folder / "spark.log")
        try:
            outcome = _Bench(sessions(spark), folder, scope, say).measure()
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def generate(folder: Path, scope: Scope) -> None:
    """The files of all joins. ``hot``: half of the rows have one key, over so long a time that a row has as many
    partners on average; the other rows then have hardly any.
    """
    rows = scope.batches * BATCH
    for i, name in enumerate("lr"):
        span = SPAN * scope.batches / WHOLE.batches
        write(side(i, rows, KEYS, span), folder / "uniform" / name, scope.batches)
        if scope.more:
            hot = side(i, rows, KEYS, hot_span(KEYS, span), hot=0.5)
            write(hot, folder / "hot" / name, scope.batches)
            write(theta_side(i, scope.batches * THETA), folder / "theta" / name, scope.batches)


def write(frame: pl.DataFrame, folder: Path, batches: int) -> None:
    """So many files a micro-batch. Spark takes them in the order of their modification times."""
    folder.mkdir(parents=True)
    files = FILES * batches
    size = -(-frame.height // files)
    for i in range(files):
        path = folder / f"{i:03d}.parquet"
        frame[i * size : (i + 1) * size].write_parquet(path)
        os.utime(path, (START // 1_000_000 + i,) * 2)


@dataclass(frozen=True)
class Measured:
    """Of one run: rows of both sides a second, and the greatest state in bytes."""

    rate: float
    state: int


@dataclass
class _Bench:
    sessions: Mapping[str, SparkSession]
    folder: Path
    scope: Scope
    say: Callable[[str, float], None]
    runs: dict[str, list[Measured]] = field(default_factory=dict)
    equal: bool = True

    def measure(self) -> Outcome:
        self.say("warming up", 0.02)
        for variant in VARIANTS:
            self._run(variant, f"warm-{variant}")
            self._forget(f"warm-{variant}")
        for number in range(self.scope.rounds):
            self._round(list(VARIANTS) if number % 2 == 0 else list(VARIANTS)[::-1], number)
        figures = figures_of(self.runs)
        self.say("outer joins", 0.6)
        figures |= self._outer("spark_default" if figures["spark_default_counts"] else "spark_rocksdb")
        if self.scope.more:
            figures |= self._skew()
            figures |= self._theta()
        return Outcome(figures, claims(figures, self.equal), lambda figure: _plot(figure, figures))

    def _round(self, variants: list[str], number: int) -> None:
        found = []
        for i, variant in enumerate(variants):
            self.say(f"round {number + 1}: {VARIANTS[variant]}", 0.1 + 0.5 * (number + i / 3) / self.scope.rounds)
            name = f"{variant}-{number}"
            self.runs.setdefault(variant, []).append(self._run(variant, name))
            found.append(read_committed(self.folder / name))
            self._forget(name)
        self.equal = self.equal and all(agree(found[0], each) for each in found[1:])

    def _run(self, variant: str, name: str, data: str = "uniform") -> Measured:
        frame = self._joined(variant, data)
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / name))
        query = writer.option("checkpointLocation", self._state(name)).trigger(availableNow=True).start()
        query.awaitTermination()
        return measured(query.recentProgress)

    def _joined(self, variant: str, data: str, how: str = "inner") -> DataFrame:
        left, right = (self._read(variant, data, name) for name in "lr")
        return windrow_join(left, right, how).to_spark() if variant == "windrow" else spark_join(left, right, how)

    def _read(self, variant: str, data: str, name: str) -> DataFrame:
        spark, path = self.sessions[variant], str(self.folder / data / name)
        schema = spark.read.parquet(path).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(path)

    def _state(self, name: str) -> str:
        return str(self.folder / f"{name}-state")

    def _forget(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.rmtree(self._state(name), ignore_errors=True)

    def _outer(self, theirs: str) -> dict[str, float]:
        """The micro-batches in which rows without a partner come out."""
        found = {}
        for variant in ("windrow", theirs):
            name = f"outer-{variant}"
            writer = self._joined(variant, "uniform", "left").writeStream.foreachBatch(
                ParquetBatches(self.folder / name)
            )
            query = writer.option("checkpointLocation", self._state(name)).trigger(availableNow=True).start()
            query.awaitTermination()
            found[variant] = alone(self.folder / name)
        return earlier(found["windrow"], found[theirs])

    def _skew(self) -> dict[str, float]:
        """Uniform keys and a hot one in turn."""
        rates: dict[str, list[float]] = {"uniform": [], "hot": []}
        for number in range(self.scope.rounds + 1):  # the first one warms up
            for data in rates if number % 2 else reversed(rates):
                self.say(f"one key with half of the rows: {data}", 0.7 + 0.15 * number / (self.scope.rounds + 1))
                rates[data].append(self._run("windrow", f"{data}-{number}", data).rate)
                self._forget(f"{data}-{number}")
        best = {data: max(found[1:]) for data, found in rates.items()}
        return {
            "rows_per_s_hot": round(best["hot"]),
            "rows_per_s_uniform": round(best["uniform"]),
            "skew_over_uniform": round(best["hot"] / best["uniform"], 2),
        }

    def _theta(self) -> dict[str, float]:
        """One shard and two in turn."""
        condition, nanos = slow()
        rates: dict[int, list[float]] = {1: [], 2: []}
        for number in range(3):  # the first one warms up
            for shards in rates if number % 2 else reversed(rates):
                self.say(f"without keys: {shards} shards", 0.85 + 0.15 * number / 3)
                left, right = (_stream(self._read("windrow", "theta", name), name, 0) for name in "lr")
                asked = left.join(right, within=(f"-{NEAR}", NEAR), where=condition)
                name = f"theta-{shards}-{number}"
                writer = asked.to_spark(shards=shards).writeStream.format("parquet")
                writer = writer.option("path", str(self.folder / name)).option("checkpointLocation", self._state(name))
                query = writer.trigger(availableNow=True).start()
                query.awaitTermination()
                rates[shards].append(measured(query.recentProgress).rate)
        one, two = (max(found[1:]) for found in rates.values())
        figures = {"rows_per_s_theta_1": round(one), "rows_per_s_theta_2": round(two), "ns_per_pair": nanos}
        return {**figures, "theta_scaling_2": round(two / one, 2)}


def _stream(frame: DataFrame, name: str, slack: int = SLACK) -> Stream:
    return stream(frame, progress="ts", slack=f"{slack} seconds", name=name)


def windrow_join(left: DataFrame, right: DataFrame, how: str = "inner") -> Stream:
    """Pairs with the same key and times at most BAND apart, with Windrow."""
    both = _stream(left, "l").join(_stream(right, "r"), on="k", within=(f"-{NEAR}", NEAR), how=how)
    return both.select("ts", "k", "a", "ts_right", "b")


def spark_join(left: DataFrame, right: DataFrame, how: str = "inner") -> DataFrame:
    """The same with Spark's stream-stream join, which needs watermarks on both sides to free its state."""
    from pyspark.sql import functions as f

    slack = f"{SLACK} seconds"
    mine = left.withWatermark("ts", slack)
    others = right.toDF("ts_right", "k_right", "b").withWatermark("ts_right", slack)
    near = f"ts_right BETWEEN ts - INTERVAL {NEAR} AND ts + INTERVAL {NEAR}"
    both = mine.join(others, f.expr(f"k = k_right AND {near}"), "leftOuter" if how == "left" else how)
    return both.select("ts", "k", "a", "ts_right", "b")


def measured(progress: list[StreamingQueryProgress]) -> Measured:
    """Of all micro-batches but the first, which also starts the query; the state of all of them."""
    batches = [p for p in progress if p.numInputRows]
    seconds = sum(p.durationMs["triggerExecution"] for p in batches[1:]) / 1000
    return Measured(sum(p.numInputRows for p in batches[1:]) / seconds, max(_state_bytes(p) for p in progress))


def _state_bytes(progress: StreamingQueryProgress) -> int:
    """Ours as we count it; Spark's as its state store says."""
    metrics: Any = (progress.observedMetrics or {}).get(METRICS)
    if metrics is not None:
        return int(metrics["state_bytes"])
    return sum(op.memoryUsedBytes for op in progress.stateOperators)


def agree(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Whether both wrote the same pairs, and some at all."""
    if not ours.height or not theirs.height:
        return False
    return ours.select("a", "b").sort("a", "b").equals(theirs.select("a", "b").sort("a", "b"))


def alone(folder: Path) -> pl.DataFrame:
    """Left rows that came out without a partner, each with the number of its micro-batch."""
    found = [pl.DataFrame(schema={"a": pl.Int64, "batch": pl.Int64})]
    for part in sorted(folder.glob(f"{FOLDER}*")):
        rows = pl.read_parquet(part / "*.parquet", missing_columns="insert")
        number = int(part.name.removeprefix(FOLDER))
        found.append(rows.filter(pl.col("b").is_null()).select("a", pl.lit(number, pl.Int64).alias("batch")))
    return pl.concat(found)


def earlier(ours: pl.DataFrame, theirs: pl.DataFrame) -> dict[str, float]:
    """How many micro-batches earlier the last row comes out that both have, and the median of all such rows.

    Rows are numbered as they arrive.
    """
    both = ours.join(theirs, on="a", suffix="_theirs").sort("a")
    if not both.height:
        return {"batches_earlier": 0, "rows_alone": 0}
    less = both["batch_theirs"] - both["batch"]
    median = less.median()
    return {"batches_earlier": less[-1], "batches_earlier_median": float(median), "rows_alone": both.height}  # type: ignore[arg-type]


def figures_of(runs: Mapping[str, list[Measured]]) -> dict[str, float]:
    """The best run of each side, and ratios to the faster Spark. ``noise``: the most by which runs of one differ."""
    figures: dict[str, float] = {}
    for variant, found in runs.items():
        figures[f"rows_per_s_{variant}"] = round(max(m.rate for m in found))
        figures[f"state_bytes_{variant}"] = max(m.state for m in found)
    faster = max(SPARKS, key=lambda variant: figures[f"rows_per_s_{variant}"])
    figures["spark_default_counts"] = int(faster == "spark_default")
    ours, state = figures["rows_per_s_windrow"], figures["state_bytes_windrow"]
    figures["speedup"] = round(ours / figures[f"rows_per_s_{faster}"], 2)
    figures["state_ratio"] = round(state / max(1, figures[f"state_bytes_{faster}"]), 4)
    for variant in SPARKS:
        figures[f"speedup_over_{variant}"] = round(ours / figures[f"rows_per_s_{variant}"], 2)
        figures[f"state_ratio_{variant}"] = round(state / max(1, figures[f"state_bytes_{variant}"]), 4)
    figures["noise"] = round(max(max(m.rate for m in f) / min(m.rate for m in f) for f in runs.values()), 2)
    return figures


def claims(figures: Mapping[str, float], equal: bool) -> dict[str, bool]:
    """What the figures must show."""
    found = {
        afterwards(
            f"at least {SPEEDUP:g} times as fast as the faster of Spark's two state stores",
            f"{KEYS:,} keys over {SPAN // 60} minutes",
        ): figures["speedup"] >= SPEEDUP,
        f"at most {STATE:g} of its state": figures["state_ratio"] <= STATE,
        "rows without a partner come out at least one micro-batch earlier": figures["batches_earlier"] >= EARLIER,
        "all sides write the same pairs": equal,
    }
    if "skew_over_uniform" in figures:
        hot = f"with one key that has half of the rows at least {SKEWED:g} of the rate with uniform keys"
        found[hot] = figures["skew_over_uniform"] >= SKEWED
        two = f"without keys, with a condition of 1 µs, two shards have at least {SCALING:g} times the rate of one"
        two = afterwards(two, f"{THETA:,} rows of a side in a micro-batch")
        found[two] = figures["theta_scaling_2"] >= SCALING
    return found


def _plot(figure: Any, figures: Mapping[str, float]) -> None:
    rates, state = figure.subplots(1, 2)
    for axes, what, label in (
        (rates, "rows_per_s", "rows per second"),
        (state, "state_bytes", "greatest state, bytes"),
    ):
        bars = axes.bar(["Windrow", "Spark", "Spark,\nRocksDB"], [figures[f"{what}_{variant}"] for variant in VARIANTS])
        axes.bar_label(bars, fontsize=7)
        axes.set(title=label, yscale="log")


SPARK_JOIN = Experiment("spark-join", "Spark's own stream-stream join against Windrow on Spark, band and equality", run)
