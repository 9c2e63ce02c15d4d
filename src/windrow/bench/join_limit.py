"""join-limit: how near a band join in process comes to a Polars batch join of the same data, and how its cost grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.join_data import BAND, BATCH, HOUR, KEYS, MICROS, ROWS, SLACK, side

LEAST = 1 / 3  # of the rate of Polars
SLICES = (10, 20, 40)  # seconds: Polars joins by key and slice of time; the fastest of them counts
SMALL = 200_000  # rows of a side, for the curves
Sides = tuple[pl.DataFrame, pl.DataFrame]


class Point(NamedTuple):
    """Of a curve: what varies, its value, and the join. ``band`` in seconds."""

    curve: str
    value: float
    keys: int = KEYS
    band: float = BAND
    batch: int = 50_000


# Bands give 0.3, 3 and 28 partners a row over an hour of a million rows; more keys have as much longer bands, so that
# the number of pairs stays the same and the rows that are kept grow.
POINTS = (
    *(Point("band", band, band=band) for band in (0.5, 5, 50)),
    *(Point("keys", keys, keys=keys, band=BAND * keys / KEYS) for keys in (10, 100, 1000, 10_000)),
    *(Point("batch", rows, batch=rows) for rows in (1000, 10_000, 100_000)),
)


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Both join the same rows in turn; the best run of each counts. Both use the thread pool of this process."""
    rounds = 3 if quick else 7
    say("generating data", 0.0)
    sides = side(0), side(1)
    ways: dict[str, Callable[[], int]] = {"windrow": lambda: pushed(query(sides), sides, BATCH)}
    ways |= {f"polars_{s}": lambda s=s: batch_join(sides, BAND, s).height for s in SLICES}  # type: ignore[misc]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    pairs: dict[str, int] = {}
    for i in range(rounds + 1):  # the first one warms up
        for way in ways if i % 2 else reversed(ways):
            say(f"{way}, round {i} of {rounds}", 0.7 * i / (rounds + 1))
            began = time.perf_counter()
            pairs[way] = ways[way]()
            seconds[way].append(time.perf_counter() - began)
    best = {way: min(found[1:]) for way, found in seconds.items()}
    polars = min(best[way] for way in ways if way != "windrow")
    figures: dict[str, float] = {"threads": pl.thread_pool_size(), "rows": 2 * ROWS, "pairs": pairs["windrow"]}
    figures |= {f"rows_per_s_{way}": round(2 * ROWS / took) for way, took in best.items()}
    figures["over_batch"] = round(polars / best["windrow"], 3)
    for i, point in enumerate(POINTS):
        say(f"{point.curve} {point.value:g}", 0.7 + 0.3 * i / len(POINTS))
        figures |= grown(point, 1 if quick else 3)
    return Outcome(figures, claims(figures, pairs), lambda figure: _plot(figure, figures))


def query(sides: Sides, band: float = BAND) -> Stream:
    """The join that all of this is about."""
    left, right = (
        stream(frame.clear(), "ts", slack=f"{SLACK} seconds", name=name)
        for name, frame in zip("lr", sides, strict=True)
    )
    near = f"{round(band * MICROS)} microseconds"
    return left.join(right, on="k", within=(f"-{near}", near)).select("ts", "k", "a", "ts_right", "b")


def pushed(asked: Stream, sides: Sides, rows: int) -> int:
    """Both sides in turn through the public interface, and all results taken: how many there are."""
    running = asked.run()
    found = []
    for at in range(0, sides[0].height, rows):
        for name, frame in zip("lr", sides, strict=True):
            found.append(running.push(name, frame[at : at + rows]).results())
    return pl.concat([*found, running.end().results()]).height


def batch_join(sides: Sides, band: float, slice_: float) -> pl.DataFrame:
    """The same pairs by Polars, of all rows at once: an equality join by key and slice of time, in one integer, then
    the band. ``join_where``, and a join by key alone, look at a thousand times as many pairs.
    """
    near, length = round(band * MICROS), round(slice_ * MICROS)
    time_, key = pl.col("ts").to_physical(), pl.col("k") * (1 << 32)
    left, right = (frame.lazy() for frame in sides)
    first, last = (time_ - near) // length, (time_ + near) // length
    copies = [
        left.filter(first + i <= last).with_columns((key + first + i).alias("at")) for i in range(span(near, length))
    ]
    there = right.select(pl.col("ts").alias("ts_right"), "b", (key + time_ // length).alias("at"))
    apart = (pl.col("ts_right") - pl.col("ts")).dt.total_microseconds()
    both = pl.concat(copies).join(there, on="at").filter(apart.is_between(-near, near))
    return both.select("ts", "k", "a", "ts_right", "b").collect()


def span(near: int, length: int) -> int:
    """In how many slices the partners of a row can be.

    >>> span(5, 10), span(5, 9), span(5, 20)
    (2, 3, 2)
    """
    return -(-2 * near // length) + 1


def grown(point: Point, rounds: int) -> dict[str, float]:
    """What a row and a pair cost at one point of a curve; the fastest run counts."""
    sides = tuple(side(i, SMALL, point.keys, HOUR * SMALL / ROWS) for i in (0, 1))
    asked = query(sides, point.band)  # type: ignore[arg-type]
    least = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        pairs = pushed(asked, sides, point.batch)  # type: ignore[arg-type]
        least = min(least, time.perf_counter() - began)
    at = f"{point.curve}_{point.value:g}"
    rows = 2 * SMALL
    return {
        f"rows_per_s_{at}": round(rows / least),
        f"us_each_{at}": round(1e6 * least / (rows + pairs), 3),
        f"pairs_{at}": pairs,
    }


def claims(figures: Mapping[str, float], pairs: Mapping[str, int]) -> dict[str, bool]:
    """How near it comes, and that all find the same."""
    return {
        "the join runs at a third of the rate of a Polars batch join or more": figures["over_batch"] >= LEAST,
        "all give as many pairs": len(set(pairs.values())) == 1 and min(pairs.values()) > 0,
    }


def _plot(figure: Any, figures: Mapping[str, float]) -> None:
    curves = list(dict.fromkeys(point.curve for point in POINTS))
    axes = figure.subplots(1, 1 + len(curves))
    names = {"windrow": "Windrow", **{f"polars_{s}": f"Polars, {s} s" for s in SLICES}}
    bars = axes[0].bar(list(names.values()), [figures[f"rows_per_s_{name}"] for name in names])
    axes[0].bar_label(bars, [f"{figures['over_batch']:.2f}", *("" for _ in SLICES)])
    axes[0].set(title="rows per second")
    axes[0].tick_params(axis="x", rotation=90, labelsize=7)
    labels = {"band": "band in s", "keys": "keys", "batch": "rows a batch"}
    for each, curve in zip(axes[1:], curves, strict=True):
        values = [point.value for point in POINTS if point.curve == curve]
        each.plot(values, [figures[f"us_each_{curve}_{v:g}"] for v in values], marker="o")
        each.set(xscale="log", xlabel=labels[curve], title="µs per row and pair", ylim=(0, None))


JOIN_LIMIT = Experiment("join-limit", "a band join in process against a Polars batch join", run)
