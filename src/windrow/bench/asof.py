"""asof: an as-of join of out-of-order streams against Polars ``join_asof`` on sorted data, and the same join on Spark.

Trades on the left, a tenth as many quotes on the right: each trade beside the latest quote of its key. Spark itself
refuses a streaming right side, so on Spark there is nothing to compare with but the results of Polars.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.join_data import BATCH, HOUR, KEYS, MICROS, ROWS, SLACK, side
from windrow.bench.spark_join import FILES, Measured, measured, write
from windrow.sinks.parquet import read_committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUOTES = 10  # trades to a quote
LEAST, LEAST_ON_SPARK = 1 / 3, 400_000  # of the rate of Polars; rows of both sides a second
CLIFF = 3.0  # a step of a curve, a factor of ten or a hundred seconds, may make a row this many times as expensive
MICRO_BATCH = 2_000_000  # trades; half of it, as the rows of a micro-batch of spark-sliding, is measured, too
SMALL = 200_000  # trades, for the curve by size of a batch
Sides = tuple[pl.DataFrame, pl.DataFrame]


class Point(NamedTuple):
    """Of a curve: what varies, its value, and the join. ``disorder`` in seconds."""

    curve: str
    value: float
    keys: int = KEYS
    disorder: float = SLACK
    batch: int = 50_000
    trades: int = ROWS


POINTS = (
    *(Point("keys", keys, keys=keys) for keys in (10, 100, 1000, 10_000, 100_000)),
    *(Point("disorder", seconds, disorder=seconds) for seconds in (0, 3, 30, 300)),
    *(Point("batch", rows, batch=rows, trades=SMALL) for rows in (1000, 10_000, 100_000)),
)


class Scope(NamedTuple):
    """How much is measured. ``sizes``: trades of a micro-batch on Spark; the first one is that of the claim."""

    rounds: int
    batches: int
    sizes: tuple[int, ...]


WHOLE, QUICK = Scope(7, 4, (MICRO_BATCH, MICRO_BATCH // 2)), Scope(3, 2, (MICRO_BATCH,))


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """In process, then its curves, then on Spark."""
    scope = QUICK if quick else WHOLE
    say("generating data", 0.0)
    figures, same = in_process(trades_and_quotes(), scope.rounds, say)
    for i, point in enumerate(POINTS):
        say(f"{point.curve} {point.value:g}", 0.3 + 0.3 * i / len(POINTS))
        figures |= grown(point, 1 if quick else 3)
    more, same_on_spark = on_spark(scope, say)
    figures |= more
    return Outcome(figures, claims(figures, same and same_on_spark), lambda figure: _plot(figure, figures))


def trades_and_quotes(
    trades: int = ROWS, keys: int = KEYS, span: float = HOUR, disorder: float = SLACK
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both sides in order of arrival."""
    return (
        side(0, trades, keys, span, slack=disorder),
        side(1, trades // QUOTES, keys, span, slack=disorder),
    )


def query(sides: Sides, keys: int = KEYS, disorder: float = SLACK) -> Stream:
    """The join that all of this is about."""
    trades, quotes = (_stream(frame.clear(), name, disorder) for name, frame in zip("lr", sides, strict=True))
    return joined(trades, quotes, keys)


def _stream(frame: Any, name: str, disorder: float = SLACK) -> Stream:
    return stream(frame, "ts", slack=f"{round(disorder * MICROS)} microseconds", name=name)


def joined(trades: Stream, quotes: Stream, keys: int = KEYS) -> Stream:
    """Each trade with the latest quote of its key; no row of a key is ever too old, so the number of keys bounds it."""
    return trades.join_asof(quotes, by="k", max_keys=keys)


# -- in process --------------------------------------------------------------------------------------------------------
def in_process(
    sides: Sides, rounds: int, say: Callable[[str, float], None], batch: int = BATCH
) -> tuple[dict[str, float], bool]:
    """Both in turn over the same rows, with the thread pool of this process; medians. Ours takes them as they arrive,
    Polars sorted. Also whether the results are the same.
    """
    ordered = in_order(sides)
    ways: dict[str, Callable[[], pl.DataFrame]] = {
        "local": lambda: pushed(query(sides), sides, batch),
        "polars": lambda: by_polars(ordered),
        "polars_sorting": lambda: by_polars(in_order(sides)),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    found: dict[str, pl.DataFrame] = {}
    for i in range(rounds + 1):  # the first one warms up
        for way in ways if i % 2 else reversed(ways):
            say(f"{way}, round {i} of {rounds}", 0.3 * i / (rounds + 1))
            began = time.perf_counter()
            found[way] = ways[way]()
            seconds[way].append(time.perf_counter() - began)
    rows = sum(frame.height for frame in sides)
    took = {way: median(each[1:]) for way, each in seconds.items()}
    figures: dict[str, float] = {"threads": pl.thread_pool_size(), "rows": rows}
    figures |= {f"rows_per_s_{way}": round(rows / each) for way, each in took.items()}
    figures["over_polars"] = round(took["polars"] / took["local"], 3)
    figures["over_polars_sorting"] = round(took["polars_sorting"] / took["local"], 3)
    figures["state_bytes_local"] = greatest_state(query(sides), sides, batch)
    return figures, agree(found["local"], found["polars"])


def in_order(sides: Sides) -> Sides:
    """Sorted by time; of quotes with equal times the last in the order of all columns comes last."""
    return sides[0].sort("ts"), sides[1].sort("ts", "k", "b")


def by_polars(ordered: Sides) -> pl.DataFrame:
    """The same join of all rows at once. Polars cannot check the order within keys, and need not."""
    return ordered[0].join_asof(ordered[1], on="ts", by="k", check_sortedness=False)


def steps(sides: Sides, batch: int) -> list[tuple[str, pl.DataFrame]]:
    """What is pushed: so many trades, then the quotes of about the same time."""
    trades, quotes = sides
    found = []
    for at in range(0, trades.height, batch):
        upto = at + batch
        found.append(("l", trades[at:upto]))
        found.append(("r", quotes[at // QUOTES : upto // QUOTES if upto < trades.height else None]))
    return found


def pushed(asked: Stream, sides: Sides, batch: int) -> pl.DataFrame:
    """Both sides in turn through the public interface, and all results."""
    running = asked.run()
    found = [running.push(name, rows).results() for name, rows in steps(sides, batch)]
    return pl.concat([*found, running.end().results()])


def greatest_state(asked: Stream, sides: Sides, batch: int) -> int:
    """In bytes, after any push."""
    running = asked.run()
    return max(running.push(name, rows).state_bytes() for name, rows in steps(sides, batch))


def grown(point: Point, rounds: int) -> dict[str, float]:
    """What a row costs at one point of a curve, by the fastest run, and the greatest state."""
    sides = trades_and_quotes(point.trades, point.keys, HOUR * point.trades / ROWS, point.disorder)
    asked = query(sides, point.keys, point.disorder)
    least = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        pushed(asked, sides, point.batch)
        least = min(least, time.perf_counter() - began)
    at, rows = f"{point.curve}_{point.value:g}", sum(frame.height for frame in sides)
    return {
        f"rows_per_s_{at}": round(rows / least),
        f"us_per_row_{at}": round(1e6 * least / rows, 3),
        f"state_bytes_{at}": greatest_state(asked, sides, point.batch),
    }


def agree(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Whether each trade has the same quote, or none, on both sides, and some have one."""
    columns = ["a", "b"]
    a, b = (frame.select(columns).sort(columns) for frame in (ours, theirs))
    return a.equals(b) and a["b"].count() > 0


# -- on Spark ----------------------------------------------------------------------------------------------------------
def on_spark(scope: Scope, say: Callable[[str, float], None]) -> tuple[dict[str, float], bool]:
    """The join over files in the session of ``wr.session``, warm; the best run of each size counts."""
    from windrow.hosts.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        say("files for Spark", 0.6)
        sides = trades_and_quotes(scope.batches * MICRO_BATCH, span=scope.batches * HOUR)
        for size in scope.sizes:
            for name, frame in zip("lr", sides, strict=True):
                write(frame, folder / str(size) / name, scope.batches * MICRO_BATCH // size)
        # With 1 GB, the default, the driver did not survive eight runs of micro-batches as large as these.
        spark = session("windrow-bench", log=folder / "spark.log", **{"spark.driver.memory": "4g"})
        try:
            return _measured(spark, folder, scope, sides, say)
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(
    spark: SparkSession, folder: Path, scope: Scope, sides: Sides, say: Callable[[str, float], None]
) -> tuple[dict[str, float], bool]:
    expected = by_polars(in_order(sides))
    final = min(frame["ts"].max() for frame in sides)  # type: ignore[type-var]
    runs: dict[int, list[Measured]] = {size: [] for size in scope.sizes}
    same = True
    rounds = 2 if len(scope.sizes) == 1 else 3  # the first one warms up
    for i in range(rounds):
        for size in scope.sizes if i % 2 else scope.sizes[::-1]:
            say(f"Spark, micro-batches of {size:,} trades, round {i}", 0.7 + 0.3 * i / rounds)
            out = folder / f"out-{size}-{i}"
            runs[size].append(streamed(spark, folder / str(size), out))
            same = same and released(read_committed(out), expected, final)
            shutil.rmtree(out)
    best = {size: max(found[1:], key=lambda m: m.rate) for size, found in runs.items()}
    figures: dict[str, float] = {f"rows_per_s_spark_{size}": round(m.rate) for size, m in best.items()}
    first = best[scope.sizes[0]]
    return {"rows_per_s_spark": round(first.rate), "state_bytes_spark": first.state, **figures}, same


def streamed(spark: SparkSession, data: Path, out: Path) -> Measured:
    """One run of the join over all files, results to Parquet."""
    trades, quotes = (_stream(_read(spark, data / name), name) for name in "lr")
    writer = joined(trades, quotes).to_spark().writeStream.format("parquet").option("path", str(out))
    started = writer.option("checkpointLocation", f"{out}-state").trigger(availableNow=True).start()
    started.awaitTermination()
    return measured(started.recentProgress)


def _read(spark: SparkSession, path: Path) -> DataFrame:
    schema = spark.read.parquet(str(path)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(path))


def released(found: pl.DataFrame, expected: pl.DataFrame, last: Any) -> bool:
    """Whether a stream that has not ended has released each trade that its promises cover, with the right quote, and of
    the others none with a wrong one.
    """
    promised = last - pl.duration(seconds=SLACK)
    due = expected.filter(pl.col("ts") < promised)["a"]
    if not found.height or not due.is_in(found["a"].implode()).all():
        return False
    return agree(found, expected.filter(pl.col("a").is_in(found["a"].implode())))


# -- what it shows -----------------------------------------------------------------------------------------------------
def claims(figures: Mapping[str, float], same: bool) -> dict[str, bool]:
    """What the figures must show."""
    cost = {
        curve: [figures[f"us_per_row_{curve}_{p.value:g}"] for p in POINTS if p.curve == curve]
        for curve in ("keys", "disorder")
    }
    return {
        "in process, out of order, at a third of the rate of Polars join_asof on sorted data or more": (
            figures["over_polars"] >= LEAST
        ),
        afterwards(
            f"on Spark at least {LEAST_ON_SPARK:,} rows of both sides a second", f"{MICRO_BATCH:,} trades a micro-batch"
        ): figures["rows_per_s_spark"] >= LEAST_ON_SPARK,
        **{
            f"no cliff in {curve}: a row costs at most {CLIFF:g} times as much from one point to the next": all(
                b <= CLIFF * a for a, b in pairwise(line)
            )
            for curve, line in cost.items()
        },
        "all give the same quote for each trade": same,
    }


def _plot(figure: Any, figures: Mapping[str, float]) -> None:
    curves = list(dict.fromkeys(point.curve for point in POINTS))
    axes = figure.subplots(1, 1 + len(curves))
    names = {"local": "Windrow", "polars": "Polars,\nsorted", "polars_sorting": "Polars\nand sort", "spark": "on Spark"}
    bars = axes[0].bar(list(names.values()), [figures[f"rows_per_s_{name}"] for name in names])
    axes[0].bar_label(bars, [f"{figures['over_polars']:.2f}", "", "", ""])
    axes[0].set(title="rows per second")
    axes[0].tick_params(axis="x", rotation=90, labelsize=7)
    labels = {"keys": "keys", "disorder": "disorder in s", "batch": "trades a batch"}
    for each, curve in zip(axes[1:], curves, strict=True):
        values = [point.value for point in POINTS if point.curve == curve]
        each.plot(values, [figures[f"us_per_row_{curve}_{v:g}"] for v in values], marker="o")
        each.set(xscale="symlog" if curve == "disorder" else "log", xlabel=labels[curve])
        each.set(title="µs per row", ylim=(0, None))


ASOF = Experiment("asof", "an as-of join, out of order, against Polars join_asof on sorted data; and on Spark", run)
