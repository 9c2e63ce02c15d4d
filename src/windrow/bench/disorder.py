"""What band-disorder and block-disorder share: latency and error of windows under slack and under punctuation.

In virtual time: a window's latency is the arrival of the row or marker that releases it minus the window's end. The
thesis measures wall-clock time from a punctuation to the result, at the greatest speed at which files can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.api.functions import AggregateExpr
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.api.windowed import Windowed
from windrow.sources.links import START, Link, packets
from windrow.windows.tuples import Ints

SECOND = 1_000_000
MARKER = "marker"
POLICIES = ("consistent", "generous")


@dataclass(frozen=True)
class Windows:
    """Which windows, and the aggregate of them."""

    range: int
    slide: int
    aggregate: AggregateExpr

    def query(self, s: Stream, policy: str = "consistent") -> Stream:
        windowed: Windowed = s.window(self.range, self.slide).late("drop", generous=policy == "generous")
        return windowed.agg(r=self.aggregate)


def arrivals(link: Link, seconds: float) -> pl.DataFrame:
    """Rows in order of arrival: ``t`` and ``arrival`` in microseconds from 0, ``len``."""
    frame = packets(link, seconds)
    return frame.select(
        (pl.col("ts").cast(pl.Int64) - START).alias("t"), "len", (pl.col("arrival") - START).alias("arrival")
    )


def marked(rows: pl.DataFrame, slide: int) -> pl.DataFrame:
    """With a marker for the end of each window, once the last row before it has arrived and its time has come.

    >>> rows = pl.DataFrame({"t": [3, 12, 8, 15], "len": [1, 1, 1, 1], "arrival": [4, 12, 13, 21]})
    >>> marked(rows, 10).select("t", "marker", "arrival").rows()
    [(3, None, 4), (12, None, 12), (8, None, 13), (None, 10, 13), (15, None, 21)]
    """
    ordered = rows.sort("t")
    upto = np.maximum.accumulate(ordered["arrival"].to_numpy())  # when all rows up to this one have arrived
    ends = np.arange(1, int(rows["t"].max()) // slide + 1) * slide  # type: ignore[arg-type]
    before = np.searchsorted(ordered["t"].to_numpy(), ends)
    at = np.maximum(np.where(before > 0, upto[before - 1], 0), ends)
    markers = pl.DataFrame({MARKER: ends, "arrival": at}, schema={MARKER: pl.Int64, "arrival": pl.Int64})
    return pl.concat([rows, markers], how="diagonal").sort("arrival", maintain_order=True)


def by_slack(rows: pl.DataFrame, windows: Windows, slack: int, policy: str) -> pl.DataFrame:
    """The windows that slack releases: ``window_end``, ``r`` and ``released``, the arrival that released it."""
    promised = (np.maximum.accumulate(rows["t"].to_numpy()) - slack) // windows.slide
    s = stream(rows.clear().drop("arrival"), progress="t", slack=slack, name="s")
    more = np.diff(promised, prepend=promised[0] - 1) > 0
    return _fed(windows.query(s, policy), rows, np.flatnonzero(more) + 1)


def by_punctuation(rows: pl.DataFrame, windows: Windows) -> pl.DataFrame:
    """The same for markers in the data."""
    data = marked(rows, windows.slide)
    s = stream(data.clear().drop("arrival"), progress="t", punctuation=MARKER, name="s")
    return _fed(windows.query(s), data, np.flatnonzero(data[MARKER].is_not_null().to_numpy()) + 1)


def _fed(query: Stream, data: pl.DataFrame, cuts: Ints) -> pl.DataFrame:
    """Cut after each row that can release windows, so that batches change nothing and tell which row it was."""
    running = query.run()
    found = []
    for low, high in _between(cuts, data.height):
        running.push("s", data[low:high].drop("arrival"))
        found.append(running.results().with_columns(released=pl.lit(data["arrival"][high - 1], pl.Int64)))
    return pl.concat(found).select("window_end", "r", "released")


def _between(cuts: Ints, height: int) -> Iterator[tuple[int, int]]:
    edges = np.unique(np.concatenate([[0], cuts, [height]])).tolist()
    yield from pairwise(edges)


def latency(found: pl.DataFrame) -> float:
    """Mean over the windows, in seconds."""
    return float((found["released"] - found["window_end"]).mean()) / SECOND  # type: ignore[arg-type]


def trade_off(
    rows: pl.DataFrame,
    windows: Windows,
    slacks: tuple[float, ...],
    error: Callable[[pl.DataFrame], float],
    say: Callable[[str, float], None],
) -> dict[str, float]:
    """``latency_s_WHO`` and ``error_WHO`` for punctuation, and for each policy and slack in milliseconds."""
    figures: dict[str, float] = {}

    def note(who: str, found: pl.DataFrame) -> None:
        figures[f"latency_s_{who}"] = round(latency(found), 3)
        figures[f"error_{who}"] = round(error(found), 6)

    say("punctuation", 0.0)
    note("punctuation", by_punctuation(rows, windows))
    for i, slack in enumerate(slacks):
        for policy in POLICIES:
            say(f"{policy} slack of {slack} s", (i + 0.5) / (len(slacks) + 0.5))
            note(named(policy, slack), by_slack(rows, windows, round(slack * SECOND), policy))
    return figures


def named(policy: str, slack: float) -> str:
    return f"{policy}_{round(slack * 1000)}"


def plot(figure: Any, figures: dict[str, float], slacks: tuple[float, ...], ylabel: str) -> None:
    """Error against latency, a curve per policy, labelled with the slack; punctuation as a point."""
    axes = figure.subplots()
    for policy in POLICIES:
        xs = [figures[f"latency_s_{named(policy, s)}"] for s in slacks]
        ys = [figures[f"error_{named(policy, s)}"] for s in slacks]
        axes.plot(xs, ys, marker="o", label=f"{policy} slack, in seconds")
        for x, y, slack in zip(xs, ys, slacks, strict=True):
            axes.annotate(f"{slack:g}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.plot(figures["latency_s_punctuation"], figures["error_punctuation"], "k*", markersize=14, label="punctuation")
    axes.set(xlabel="mean latency in seconds of stream time (the thesis: wall-clock)", ylabel=ylabel)
    axes.legend()
