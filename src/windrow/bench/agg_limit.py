"""agg-limit: how near aggregation in process comes to a bare Polars group-by over the same data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.api.functions import count
from windrow.api.functions import max as greatest
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.graph import Graph
from windrow.planner.graphs import add_steps

MICROS = 1_000_000
ROWS = 1_000_000  # rows a batch
PANE = 60 * MICROS
RATIO = 60  # RANGE / SLIDE
SPAN = 4 * 3600 * MICROS
SLACK = 3 * MICROS
KEYS = 1000
PANES, WINDOWS = 0.5, 0.25  # the least shares of the rate of Polars


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Count and maximum by pane and key, three variants in turn, medians. All use the thread pool of this process."""
    rounds = 7 if quick else 15
    say("generating data", 0.0)
    batches = generate(2 if quick else 5)
    variants: dict[str, Callable[[Sequence[pa.Table]], int]] = {"polars": bare, "panes": panes, "windows": windows}
    seconds: dict[str, list[float]] = {variant: [] for variant in variants}
    results: dict[str, int] = {}
    for i in range(rounds + 1):
        for variant, go in variants.items():
            say(f"{variant}, round {i} of {rounds}", i / (rounds + 1))
            began = time.perf_counter()
            results[variant] = go(batches)
            if i:  # the first round warms up
                seconds[variant].append(time.perf_counter() - began)
    rows = sum(b.num_rows for b in batches)
    figures: dict[str, float] = {"threads": pl.thread_pool_size(), "rows": rows}
    for variant in variants:
        figures[f"rows_per_s_{variant}"] = round(rows / median(seconds[variant]))
        figures[f"results_{variant}"] = results[variant]
    for variant in ("panes", "windows"):
        figures[f"{variant}_over_polars"] = round(median(seconds["polars"]) / median(seconds[variant]), 3)
    holds = {
        f"admission and panes run at {PANES:.0%} of the rate of Polars or more": figures["panes_over_polars"] >= PANES,
        f"whole windows at RANGE/SLIDE {RATIO} run at {WINDOWS:.0%} of it or more": (
            figures["windows_over_polars"] >= WINDOWS
        ),
    }
    return Outcome(figures, holds, lambda figure: _plot(figure, figures))


def generate(batches: int, rows: int = ROWS) -> list[pa.Table]:
    """Packets over four hours as Arrow tables, text keys, Zipf, each up to SLACK late."""
    rng = np.random.default_rng(1)
    total = batches * rows
    ts = np.sort(rng.integers(0, SPAN, total))
    order = np.argsort(ts + rng.integers(0, SLACK, total), kind="stable")
    frame = pl.DataFrame(
        {
            "ts": pl.Series(ts[order]).cast(pl.Datetime("us", "UTC")),
            "k": pl.Series(rng.zipf(1.2, total) % KEYS).cast(pl.String).str.zfill(4).str.replace("^", "10.0."),
            "len": rng.integers(40, 1501, total),
        }
    )
    newest = pl.CompatLevel.newest()  # text as Polars stores it, so that no variant pays for a conversion
    return [frame[i * rows : (i + 1) * rows].to_arrow(compat_level=newest) for i in range(batches)]


def query(batches: Sequence[pa.Table]) -> Stream:
    """The query that all of this is about."""
    s = stream(pl.DataFrame(batches[0]).clear(), progress="ts", slack=f"{SLACK // MICROS} seconds", name="s")
    windowed = s.window(f"{RATIO} minutes", "1 minute")
    return windowed.group_by("k").agg(n=count(), longest=greatest("len"))


def bare(batches: Sequence[pa.Table]) -> int:
    """Polars alone, batch by batch: what no query over these batches can do without."""
    pane = (pl.col("ts").to_physical() // PANE).alias("pane")
    longest = pl.col("len").max().alias("longest")
    return sum(pl.DataFrame(b).group_by(pane, "k").agg(pl.len().alias("n"), longest).height for b in batches)


def panes(batches: Sequence[pa.Table]) -> int:
    """Admission and the pane level: what runs before the exchange on Spark."""
    graph = Graph()
    add_steps(graph, query(batches).plan().stages()[0].inputs[0].whole, None)
    out = [item for b in batches for item in graph.on_batch(0, pl.DataFrame(b))]
    return sum(item.height for item in out if isinstance(item, pl.DataFrame))


def windows(batches: Sequence[pa.Table]) -> int:
    """The whole query to its results."""
    running = query(batches).run()
    results = 0
    for batch in batches:
        results += running.push("s", batch).results().height
    return results + running.end().results().height


def _plot(figure: Any, figures: dict[str, float]) -> None:
    axes = figure.subplots()
    names = {"polars": "bare Polars group-by", "panes": "admission + panes", "windows": f"windows, R/S {RATIO}"}
    bars = axes.bar(list(names.values()), [figures[f"rows_per_s_{variant}"] for variant in names])
    axes.bar_label(bars, ["", f"{figures['panes_over_polars']:.2f}", f"{figures['windows_over_polars']:.2f}"])
    axes.set(ylabel=f"rows per second, one process, {figures['threads']} threads each")


AGG_LIMIT = Experiment("agg-limit", "panes and windows in process against a bare Polars group-by", run)
