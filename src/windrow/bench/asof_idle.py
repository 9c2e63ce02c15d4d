"""asof-idle: how long products wait for their case while the stream of cases is silent (Bai et al., section 5).

In virtual time: a row is pushed when it arrives, up to DISORDER after it was read. Products come steadily; the reader
of cases has nothing to read for a while. A product is paired when no later case can belong to it, so its pair waits for
a promise of the silent stream. Where that promise comes from is what varies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from windrow.api.promise import heartbeats
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome

SECOND = 1000  # times are in milliseconds
DISORDER = 2 * SECOND
PRODUCTS, CASES = SECOND // 2, 10 * SECOND  # the time from one to the next
LINES = 4  # conveyor belts, each with its own cases and products
LENGTH, SILENT = 600 * SECOND, (200 * SECOND, 400 * SECOND)  # how long it runs, and when no case comes
PERIODS = (1, 5, 20, 60)  # seconds from one heartbeat to the next
BIN = 5 * SECOND  # of the plot
CLOCK = "clock"
ROWS, DEMAND = "rows", "demand"  # only rows of cases promise; or the reader is also asked whenever a product comes
BEATS = {f"beats_{p}": p * SECOND for p in PERIODS}
WAYS = {
    ROWS: "cases alone promise",
    **{way: f"heartbeats every {p} s" for way, p in zip(BEATS, PERIODS, strict=True)},
    DEMAND: "promises on demand",
}
Row = dict[str, int]


class Event(NamedTuple):
    """What is pushed, or with ``row`` None asked for, and when. ``promise``: what follows from it about cases."""

    at: int
    source: str
    row: Row | None
    promise: int | None = None


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """All ways over the same rows. ``--quick`` has a quarter of the products."""
    rows = arrivals(PRODUCTS * (4 if quick else 1))
    expected = by_definition(rows)
    figures: dict[str, float] = {"pairs": expected.height, "gap_greatest": greatest_gap(rows)}
    found: dict[str, pl.DataFrame] = {}
    right = prompt = True
    for i, way in enumerate(WAYS):
        say(WAYS[way], i / len(WAYS))
        events = events_of(way, rows)
        found[way], figures[f"state_bytes_{way}"] = fed(way, events)
        figures |= waits(way, found[way])
        right = right and found[way].select("product", "case").equals(expected)
        prompt = prompt and found[way]["released"].equals(allowed(found[way], events))
    return Outcome(figures, claims(figures, right, prompt), lambda figure: _plot(figure, figures, found))


def arrivals(between: int = PRODUCTS) -> list[Event]:
    """Cases and products of all lines in order of arrival."""
    rng = np.random.default_rng(5)
    cases = [t for t in range(0, LENGTH, CASES) if not SILENT[0] <= t < SILENT[1]]
    found = []
    for source, times in (("cases", cases), ("products", range(between // 2, LENGTH, between))):
        late, lines = (rng.integers(0, most, len(times)).tolist() for most in (DISORDER, LINES))
        for number, (t, behind, line) in enumerate(zip(times, late, lines, strict=True)):
            found.append(Event(t + behind, source, {"ts": t, "line": line, source[:-1]: number}))
    return sorted(found, key=lambda event: event[:2])


def greatest_gap(rows: list[Event]) -> float:
    """In seconds, from the arrival of a product to that of the next."""
    return max(b - a for a, b in pairwise(e.at for e in rows if e.source == "products")) / SECOND


def events_of(way: str, rows: list[Event]) -> list[Event]:
    """The rows, each with what it promises of cases, and what else there is to promise something."""
    if way in BEATS:
        beats = [Event(t, "cases", {CLOCK: t}, t - DISORDER) for t in range(0, LENGTH, BEATS[way])]
        return sorted([*rows, *beats], key=lambda event: event[:2])
    latest, found = 0, []
    for event in rows:
        assert event.row is not None
        if event.source == "cases":
            latest = max(latest, event.row["ts"])
            event = event._replace(promise=latest - DISORDER)
        found.append(event)
        if event.source == "products" and way == DEMAND:
            found.append(Event(event.at, "cases", None, event.at - DISORDER))
    return found


def asked(way: str) -> Stream:
    """Products beside the latest case of their line: containment, many products in a case."""
    types = {"ts": pl.Int64(), "line": pl.Int64()}
    products = stream(pl.DataFrame(schema={**types, "product": pl.Int64()}), "ts", slack=DISORDER, name="products")
    given = pl.DataFrame(schema={**types, "case": pl.Int64(), CLOCK: pl.Int64()})
    if way in BEATS:
        cases = stream(given, "ts", punctuation=heartbeats(CLOCK, DISORDER), name="cases")
    else:
        cases = stream(given.drop(CLOCK), "ts", slack=DISORDER, name="cases")
    return products.following(cases, on="line", how="left", max_keys=LINES).select("ts", "product", "case")


def fed(way: str, events: list[Event]) -> tuple[pl.DataFrame, int]:
    """The pairs by product, each with its arrival and when it was released (not at all before the end: NULL); and the
    greatest state in bytes.
    """
    running = asked(way).run()
    found, state = [], 0
    for event in events:
        if event.row is not None:
            running.push(event.source, [event.row])
        elif event.promise is not None:
            running.promise(event.source, event.promise)
        state = max(state, running.state_bytes())
        found.append(running.results().with_columns(released=pl.lit(event.at, pl.Int64)))
    found.append(running.end().results().with_columns(released=pl.lit(None, pl.Int64)))
    came = {e.row["product"]: e.at for e in events if e.source == "products" and e.row is not None}
    arrived = pl.DataFrame({"product": list(came), "arrival": list(came.values())})
    return pl.concat(found).join(arrived, on="product").sort("product"), state


def by_definition(rows: list[Event]) -> pl.DataFrame:
    """The case of each product, looked up among all of them."""
    there: dict[str, list[Row]] = {
        name: [e.row for e in rows if e.source == name and e.row] for name in ("cases", "products")
    }
    found = []
    for product in there["products"]:
        before = [c for c in there["cases"] if c["line"] == product["line"] and c["ts"] <= product["ts"]]
        case = max(before, key=lambda c: c["ts"])["case"] if before else None
        found.append((product["product"], case))
    return pl.DataFrame(found, {"product": pl.Int64(), "case": pl.Int64()}, orient="row").sort("product")


def allowed(pairs: pl.DataFrame, events: list[Event]) -> pl.Series:
    """When each product could be paired: it is there, and a promise says that no case up to its time can come."""
    said = [(e.at, e.promise) for e in events if e.promise is not None]
    at = np.array([when for when, _ in said])
    most = np.maximum.accumulate(np.array([promise for _, promise in said]))
    first = np.searchsorted(most, pairs["ts"].to_numpy(), side="right")
    when = [int(at[i]) if i < len(at) else None for i in first]
    both = zip(when, pairs["arrival"], strict=True)
    return pl.Series("released", [None if w is None else max(w, came) for w, came in both], pl.Int64)


def waits(way: str, pairs: pl.DataFrame) -> dict[str, float]:
    """In seconds from the arrival of a product to its pair, over all and over those of the silence."""
    waited = pairs.drop_nulls("released").with_columns(wait=(pl.col("released") - pl.col("arrival")) / SECOND)
    silent = waited.filter(pl.col("ts").is_between(*SILENT))
    return {
        f"wait_mean_{way}": round(float(waited["wait"].mean()), 3),  # type: ignore[arg-type]
        f"wait_mean_silent_{way}": round(float(silent["wait"].mean()), 3),  # type: ignore[arg-type]
        f"wait_greatest_{way}": round(float(waited["wait"].max()), 3),  # type: ignore[arg-type]
    }


def claims(figures: Mapping[str, float], right: bool, prompt: bool) -> dict[str, bool]:
    """What waits for what."""
    silence, slack = (SILENT[1] - SILENT[0]) / SECOND, DISORDER / SECOND
    by_period = [figures[f"wait_mean_{way}"] for way in BEATS]
    least = figures[f"wait_greatest_{DEMAND}"]
    return {
        "no pair is wrong, with and without heartbeats": right,
        "each pair comes out with the very row or promise that makes it final": prompt,
        "without heartbeats products wait until a case comes again": figures[f"wait_greatest_{ROWS}"] > 0.9 * silence,
        "with heartbeats none waits longer than a period and the disorder": all(
            figures[f"wait_greatest_{way}"] <= period / SECOND + slack for way, period in BEATS.items()
        ),
        "the more heartbeats, the shorter the wait; on demand it is no longer than the disorder and the next product": (
            all(a < b for a, b in pairwise(by_period)) and least <= slack + figures["gap_greatest"]
        ),
        "waiting products are state: with heartbeats every second there is less": (
            figures["state_bytes_beats_1"] < figures[f"state_bytes_{ROWS}"]
        ),
    }


def _plot(figure: Any, figures: Mapping[str, float], found: Mapping[str, pl.DataFrame]) -> None:
    over, means = figure.subplots(1, 2, width_ratios=(2, 1))
    for way, pairs in found.items():
        at = (pl.col("arrival") // BIN * BIN / SECOND).alias("at")
        wait = ((pl.col("released") - pl.col("arrival")) / SECOND).mean()
        line = pairs.drop_nulls("released").group_by(at).agg(wait=wait).sort("at")
        over.plot(line["at"], line["wait"], label=WAYS[way], linewidth=1)
    over.axvspan(*(t / SECOND for t in SILENT), alpha=0.1, color="black")
    over.set(xlabel="arrival in s of virtual time; grey: no cases", ylabel="wait of products in s, mean", yscale="log")
    over.legend(fontsize=6)
    bars = means.barh(list(WAYS.values())[::-1], [figures[f"wait_mean_{way}"] for way in WAYS][::-1])
    means.bar_label(bars, fontsize=6)
    means.set(title="mean wait in s", xlim=(0, 1.3 * figures[f"wait_mean_{ROWS}"]))
    means.tick_params(axis="y", labelsize=6)


ASOF_IDLE = Experiment(
    "asof-idle", "how long pairs wait for a silent stream, by who promises for it", run, "Bai section 5"
)
