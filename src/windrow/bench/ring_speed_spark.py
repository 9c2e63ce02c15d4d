"""The join of ring-speed on Spark: a ring in a barrier stage of one and of two tasks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from windrow.api.functions import udf
from windrow.api.multi_join import multi_join
from windrow.api.sources import stream
from windrow.bench.ring_work import NAMES, Burn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = (1, 2)


def on_spark(burn: Burn, window: int, units: int, rounds: int, say: Callable[[str, float], None]) -> dict[str, float]:
    """A finite query in one JVM, rings in turn. With a predicate that takes no time the same query is the start of the
    job and of its workers, which no ring changes: it is taken off.
    """
    from windrow.hosts.spark.session import session

    free = Burn(0)
    took: dict[tuple[int, Burn], list[float]] = {(nodes, each): [] for nodes in SIZES for each in (free, burn)}
    found = set[int]()
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        spark = session("windrow-bench", master="local[2]", log=Path(folder) / "spark.log")
        try:
            for number in range(rounds + 1):
                every = list(took) if number % 2 else list(reversed(took))
                for nodes, each in every if number else [key for key in every if key[1] == free]:  # the first warms up
                    say(f"Spark, {nodes} nodes, run {number}", 0.7 + 0.3 * number / (rounds + 1))
                    began = time.perf_counter()
                    found.add(joined(spark, each, window, units, nodes))
                    took[nodes, each].append(time.perf_counter() - began)
        finally:
            spark.stop()
    return figures_of({key: seconds[1:] if key[1] == free else seconds for key, seconds in took.items()}, burn, found)


def joined(spark: SparkSession, burn: Burn, window: int, units: int, nodes: int) -> int:
    """How many results there are. A row in each unit of time, as at the nodes of ring-speed."""
    streams = []
    for name in NAMES:
        rows = pl.DataFrame({"t": range(units), name: range(units)})
        frame = spark.createDataFrame(rows.to_arrow()).coalesce(1)
        streams.append(stream(frame, "t", slack=0, name=name))
    where = [udf(burn, "BOOLEAN", x, y) for x, y in ("ab", "bc")]
    asked = multi_join(*streams, within=window, where=where, using="ring", nodes=nodes)
    return int(asked.to_spark().toArrow().num_rows)


def figures_of(took: dict[tuple[int, Burn], list[float]], burn: Burn, found: set[int]) -> dict[str, float]:
    """The best run of each."""
    figures: dict[str, float] = {}
    work = dict[int, float]()
    for nodes in SIZES:
        [start] = [min(seconds) for (n, each), seconds in took.items() if n == nodes and each != burn]
        whole = min(took[nodes, burn])
        figures |= {f"s_spark_{nodes}": round(whole, 2), f"start_s_spark_{nodes}": round(start, 2)}
        work[nodes] = whole - start
    figures["scaling_2_spark"] = round(work[1] / work[2], 3)
    figures["results_spark"] = max(found)
    figures["same_on_spark"] = float(len(found) == 1)
    return figures
