"""window-types: what each window type and kind of aggregate costs in process, beside tumbling windows of counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from windrow.api import functions as wr
from windrow.api.functions import AggregateExpr
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.api.windowed import Windowed
from windrow.bench.experiment import Experiment, Outcome

KEYS = 1000
SPAN = 3600  # seconds of data, with integer seconds as progress values
SLACK = 3
BATCHES = 20

TYPES: dict[str, Callable[[Stream], Windowed]] = {
    "tumbling": lambda s: s.window(60),
    "sliding_60": lambda s: s.window(600, 10),
    "landmark": lambda s: s.landmark(60),
    "rows": lambda s: s.rows(10_000, 1_000),
    "partitioned": lambda s: s.rows(100, 10, partition_by="k"),
    "slide_by_tuple": lambda s: s.each_row(60, 1000),
    "session": lambda s: s.session(5),
    "early": lambda s: s.window(60).emit_early(10),
    "revise": lambda s: s.window(60).late("revise", keep=120),
    "side": lambda s: s.window(60).late("side"),
}
AGGREGATES: dict[str, AggregateExpr] = {
    "first": wr.first("x"),
    "count_distinct": wr.count_distinct("x"),
    "median": wr.median("x"),
    "top_k": wr.top_k("x", 3),
    "collect_list": wr.collect_list("x"),
    "approx_count_distinct": wr.approx_count_distinct("x"),
    "approx_quantile": wr.approx_quantile("x", 0.5),
    "user_defined": wr.aggregate("total", int, lambda a, b: a + b, int, state="BIGINT", result="BIGINT")("x"),
}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Rows per second of one core, results taken out as they are released."""
    rows = 200_000 if quick else 1_000_000
    data = generate(rows)
    figures: dict[str, float] = {}
    plans: dict[str, Stream] = {}
    for name, shape in TYPES.items():
        windowed = shape(source(data))
        grouped = windowed if windowed.parts else windowed.group_by("k")
        plans[name] = grouped.agg(n=wr.count(), top=wr.max("x"))
    for name, aggregate in AGGREGATES.items():
        plans[f"with_{name}"] = source(data).window(60).group_by("k").agg(r=aggregate)
    fed(plans["tumbling"], data[: rows // 10])  # warm
    for i, (name, query) in enumerate(plans.items()):
        say(name, i / len(plans))
        seconds, results, state = fed(query, data)
        figures[f"rows_per_s_{name}"] = round(rows / seconds)
        figures[f"results_{name}"] = results
        figures[f"state_kib_{name}"] = round(state / 1024)
    figures["sliding_over_tumbling"] = round(figures["rows_per_s_sliding_60"] / figures["rows_per_s_tumbling"], 2)
    figures["side_over_drop"] = round(figures["rows_per_s_side"] / figures["rows_per_s_tumbling"], 2)
    return Outcome(figures, {}, lambda figure: _plot(figure, figures, list(plans)))


def generate(rows: int) -> pl.DataFrame:
    """Rows in order of arrival, at most SLACK out of order, Zipf keys."""
    rng = np.random.default_rng(1)
    at = np.sort(rng.integers(0, SPAN, rows))
    order = np.argsort(at + rng.integers(0, SLACK + 1, rows), kind="stable")
    return pl.DataFrame(
        {
            "t": at[order],
            "n": np.arange(rows),
            "k": (rng.zipf(1.2, rows) % KEYS).astype(np.int64),
            "x": rng.integers(0, 100, rows),
        }
    )


def source(data: pl.DataFrame) -> Stream:
    """A stream of such rows; the rows themselves are pushed."""
    return stream(data.clear(), progress="t", slack=SLACK, row_num="n", name="s")


def fed(query: Stream, data: pl.DataFrame) -> tuple[float, int, int]:
    """Seconds, results, and the greatest state in bytes."""
    running = query.run()
    size = -(-data.height // BATCHES)
    results = state = 0
    began = time.perf_counter()
    for start in range(0, data.height, size):
        running.push("s", data[start : start + size])
        results += running.results().height
        state = max(state, running.state_bytes())
    return time.perf_counter() - began, results, state


def _plot(figure: Any, figures: dict[str, float], names: list[str]) -> None:
    axes = figure.subplots()
    axes.barh(names[::-1], [figures[f"rows_per_s_{n}"] for n in names[::-1]])
    axes.set(xscale="log", xlabel="rows per second, one process")


WINDOW_TYPES = Experiment("window-types", "each window type, late policy and kind of aggregate, in process", run)
