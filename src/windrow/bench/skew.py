"""What experiments about skew share: links of which some are behind, and the greatest state of a query over them.

In virtual time: a row is pushed when it arrives, a link that is behind has all its rows and heartbeats that much later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.api.promise import heartbeats
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Outcome, afterwards
from windrow.sources.links import MICROS, START, Link, packets
from windrow.sql.select import sql

BAND = 3.2  # seconds of disorder within a link, as in the thesis's band disorder
CLOCK = "clock"  # the column of heartbeats
STEP = 2 * MICROS  # of arrival: what is pushed at once
PLANS = {"oop": "", "iop": "/*+ USING(iop) */"}
BANDS = (0.5, 1.0, 2.0)  # other disorders, for the curve
FLAT = 1.2  # a curve is flat if no point is more than this many times the one without skew
GROWS = 2.0  # and grows if it rises from point to point, and the last is more than this many times the first
Feeds = Mapping[str, pl.DataFrame]
FLAT_CLAIM = afterwards(
    f"out of order the memory is flat: at most {FLAT:g} times that without skew", f"disorder of {BAND:g} s in a link"
)


def feed(link: Link, seconds: int, destinations: int = 1) -> pl.DataFrame:
    """Packets of a link by ``arrival``, and every second what its clock shows: a link can have nothing else to say."""
    rows = packets(link, seconds).select(
        "ts",
        pl.col("src_ip").alias("srcIP"),
        pl.format("10.1.0.{}", pl.col("src_port") % destinations).alias("destIP"),
        pl.col("arrival") - START,
    )
    return with_clock(rows, seconds + int(BAND) + 2, link.behind)


def with_clock(rows: pl.DataFrame, seconds: int, late: float = 0) -> pl.DataFrame:
    """Packets by ``arrival``, and every second what the clock of their link shows."""
    shown = np.arange(seconds) * MICROS
    beats = pl.DataFrame({CLOCK: shown + START, "arrival": shown + round(late * MICROS)})
    beats = beats.with_columns(pl.col(CLOCK).cast(pl.Datetime("us", "UTC")))
    both = pl.concat([rows, beats], how="diagonal").sort("arrival", maintain_order=True)
    return both.select(*rows.drop("arrival").columns, CLOCK, "arrival")


def behind(fed: pl.DataFrame, seconds: float) -> pl.DataFrame:
    """The same, each row and heartbeat as much later."""
    return fed.with_columns(pl.col("arrival") + round(seconds * MICROS))


def asked(text: str, feeds: Feeds, band: float = BAND) -> Stream:
    """A query over the links."""
    return sql(text, **links(feeds, band))


def links(feeds: Feeds, band: float) -> dict[str, Stream]:
    """The links as streams."""
    promises = heartbeats(CLOCK, f"{band:g} seconds")
    return {n: stream(f.clear().drop("arrival"), "ts", punctuation=promises, name=n) for n, f in feeds.items()}


def fed_through(query: Stream, feeds: Feeds) -> tuple[int, pl.DataFrame, int]:
    """The greatest state in bytes after any push, the results, and how many rows were lost as late or bad.

    The links take turns, step by step.
    """
    run = query.run()
    steps = {name: cut(fed) for name, fed in feeds.items()}
    most = 0
    for number in range(max(len(s) for s in steps.values())):
        for name, frames in steps.items():
            if number < len(frames) and frames[number].height:
                run.push(name, frames[number])
                most = max(most, run.state_bytes())
    found = run.end().results().sort(pl.all())
    return most, found, run.counts["rows_late"] + run.counts["rows_bad"]


def cut(fed: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of each step.

    >>> rows = pl.DataFrame({"n": [1, 2, 3], "arrival": [0, STEP - 1, 2 * STEP]})
    >>> [step["n"].to_list() for step in cut(rows)]
    [[1, 2], [], [3]]
    """
    last = int(fed["arrival"].max()) // STEP  # type: ignore[arg-type]
    edges = np.searchsorted(fed["arrival"].to_numpy(), np.arange(last + 2) * STEP).tolist()
    rows = fed.drop("arrival")
    return [rows[low:high] for low, high in pairwise(edges)]


def compared(text: str, feeds: Feeds, late: str, skews: Sequence[int], say: Callable[[str, float], None]) -> Outcome:
    """Both plans at each skew of the link ``late``; ``text`` has a place for the hint, ``{}``."""
    figures, same = measured(lambda plan, moved: asked(text.format(PLANS[plan]), moved), feeds, (late,), skews, say)
    for plan in PLANS:
        curve = [figures[f"bytes_{plan}_{s}"] for s in skews]
        figures[f"growth_{plan}"] = round(max(curve) / curve[0], 2)
    return Outcome(figures, claims(figures, skews, same), lambda figure: plot(figure, figures, late, skews))


def measured(
    query: Callable[[str, Feeds], Stream],
    feeds: Feeds,
    late: Sequence[str],
    skews: Sequence[int],
    say: Callable[[str, float], None],
) -> tuple[dict[str, float], bool]:
    """The greatest state of both plans at each skew of the links ``late``; and whether they give the same results, some
    at all, and lose no row.
    """
    figures: dict[str, float] = {}
    same = True
    for i, skew in enumerate(skews):
        moved = {n: behind(fed, skew) if n in late else fed for n, fed in feeds.items()}
        results = []
        for j, plan in enumerate(PLANS):
            say(f"{plan}, {' and '.join(late)} {skew} s behind", (i + j / len(PLANS)) / len(skews))
            figures[f"bytes_{plan}_{skew}"], found, lost = fed_through(query(plan, moved), moved)
            results.append(found)
            same = same and found.height > 0 and not lost
        same = same and results[0].equals(results[1])
    return figures, same


def by_band(
    text: str, make: Callable[[float], Feeds], late: str, skews: Sequence[int], known: float
) -> dict[str, dict[str, float]]:
    """How flat the memory is out of order by the disorder in a link, of which ``known`` is that of BAND."""
    curve = {}
    for band in BANDS:
        feeds = make(band)
        moved = [{**feeds, late: behind(feeds[late], skew)} for skew in skews]
        most = [fed_through(asked(text.format(PLANS["oop"]), each, band), each)[0] for each in moved]
        curve[f"disorder of {band:g} s"] = round(max(most) / most[0], 2)
    return {FLAT_CLAIM: {**curve, f"disorder of {BAND:g} s": known}}


def claims(figures: Mapping[str, float], skews: Sequence[int], same: bool) -> dict[str, bool]:
    """What the thesis sees in its figures, of ours."""
    oop, iop = ([figures[f"bytes_{plan}_{s}"] for s in skews] for plan in ("oop", "iop"))
    return {
        FLAT_CLAIM: max(oop) <= FLAT * oop[0],
        f"in order it grows with the skew, to more than {GROWS:g} times": (
            all(a < b for a, b in pairwise(iop)) and iop[-1] > GROWS * iop[0]
        ),
        "out of order takes less memory than in order, at every skew": all(
            a < b for a, b in zip(oop, iop, strict=True)
        ),
        "both plans give the same results, and lose no row": same,
    }


def plot(figure: Any, figures: Mapping[str, float], late: str, skews: Sequence[int]) -> None:
    """The greatest state of both plans by skew."""
    axes = figure.subplots()
    for plan, label in (("iop", "in order (Merge)"), ("oop", "out of order (Meld)")):
        axes.plot(skews, [figures[f"bytes_{plan}_{s}"] / 1024 for s in skews], marker="o", label=label)
    axes.set(xlabel=f"seconds that {late} is behind", ylabel="greatest state in KiB", ylim=(0, None))
    axes.legend()
