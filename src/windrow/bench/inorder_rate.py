"""inorder-rate: response times of joins in order by the rate of the slow stream (Hammad et al., Figures 9 and 10).

The fast stream has ten rows a second and a comparison takes 0.5 ms; all else is as in inorder-concurrency. Filter-Order
and Adaptive really run at each rate, Sync-Filter at the highest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.inorder_concurrency import FAST, NAMES, SWITCH, held, name_of
from windrow.bench.response import (
    ALPHA,
    MICROS,
    MODES,
    WINDOW,
    Played,
    Row,
    Server,
    arrivals,
    meant,
    played,
    response_ms,
    share_filtered,
    sound,
)
from windrow.planner.choose.costs.in_order import Streams, filters, improvement, improvement_of

COST = SWITCH  # microseconds
RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
SOME = (0.01, 0.1, 1.0)
CAPTION = "virtual time, service times given. On Spark the micro-batch hides the difference"
Say = Callable[[str, float], None]


def run(quick: bool, say: Say) -> Outcome:
    """Both figures: 20 minutes of the streams as in the paper; ``--quick`` has three, and fewer points."""
    rates, end = (SOME, 180 * MICROS) if quick else (RATES, 1200 * MICROS)
    figures: dict[str, float] = {}
    right = True
    for i, rate in enumerate(rates):
        rows = arrivals(rate, FAST, end)
        expected = meant(rows, end)
        really = MODES if rate == rates[-1] else MODES[1:]
        found: dict[str, Played] = {}
        for j, mode in enumerate(really):
            say(f"{rate:g} rows a second, {mode}", (i + j / len(really)) / len(rates))
            found[name_of(mode)] = played(mode, rows, COST)
        right = right and all(sound(each, rows, expected, end) for each in found.values())
        for name, each in found.items():
            figures |= held(f"{name}_{rate:g}", each)
        figures |= point(rows, rate, end, found["adaptive"])
    return Outcome(figures, claims(figures, rates, right), lambda figure: plot(figure, figures, rates))


def streams_of(rate: float) -> Streams:
    """In seconds."""
    return Streams(rate, FAST, WINDOW / MICROS, COST / MICROS)


def point(rows: Sequence[Row], rate: float, end: int, adaptive: Played) -> dict[str, float]:
    """Mean response times at one rate, over the rows of both streams."""
    found = {name_of(mode): Server(mode, COST).play(rows) for mode in MODES[:2]} | {"adaptive": adaptive}
    ms = {name: response_ms(rows, each, end) for name, each in found.items()}
    return {
        **{f"ms_{name}_{rate:g}": value for name, value in ms.items()},
        f"improvement_{rate:g}": round(improvement_of(ms["sync"], ms["filter"]), 4),
        f"eq7_{rate:g}": round(improvement(streams_of(rate)), 4),
        f"filtered_{rate:g}": share_filtered(rows, adaptive, end),
    }


def claims(figures: Mapping[str, float], rates: Sequence[float], right: bool) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    gains = [figures[f"improvement_{rate:g}"] for rate in rates]
    clearly_below = [rate for rate in rates if not filters(streams_of(1.5 * rate), ALPHA)]
    return {
        "the improvement of Filter-Order over Sync-Filter grows with the slow rate": all(
            a < b for a, b in pairwise(gains)
        ),
        "Sync-Filter is above Filter-Order at every rate": all(gain > 0 for gain in gains),
        "the lower the slow rate, the longer the response, whatever the algorithm": all(
            figures[f"ms_{name}_{a:g}"] > figures[f"ms_{name}_{b:g}"] for name in NAMES for a, b in pairwise(rates)
        ),
        "Adaptive runs Sync-Filter at low rates, and has switched at one row a second": (
            all(figures[f"filtered_{rate:g}"] <= 0.05 for rate in clearly_below) and figures["filtered_1"] > 0
        ),
        "all give the pairs that are meant, in order, each when its later row is complete": right,
    }


def plot(figure: Any, figures: Mapping[str, float], rates: Sequence[float]) -> None:
    """Figures 9 and 10, and what is held."""
    (times, shares), (pairs, rows) = figure.subplots(2, 2)
    base = [figures[f"ms_sync_{rate:g}"] for rate in rates]
    for color, (name, title) in enumerate(NAMES.items()):
        line = [figures[f"ms_{name}_{rate:g}"] for rate in rates]
        times.plot(rates, [ms / 1000 for ms in line], marker="o", label=title)
        shares.plot(rates, [a / b for a, b in zip(line, base, strict=True)], marker="o", label=title)
        known = [rate for rate in rates if f"hold_rows_{name}_{rate:g}" in figures]
        for axes, what in ((pairs, "hold_bytes"), (rows, "queue_rows")):
            axes.plot(known, [figures[f"{what}_{name}_{r:g}"] for r in known], f"C{color}o-", label=title)
    shares.plot(rates, [1 - figures[f"eq7_{rate:g}"] for rate in rates], "k:", label="Filter-Order, Eq. 7")
    times.set(yscale="log", ylabel="mean response in s")
    shares.set(ylabel="relative to Sync-Filter", ylim=(0, None))
    pairs.set(ylabel="hold buffer in bytes")
    rows.set(yscale="log", ylabel="rows in queues")
    for axes in (times, shares, pairs, rows):
        axes.set(xscale="log", xlabel="slow rows per second")
        axes.legend(fontsize=6)
    figure.supxlabel(CAPTION, fontsize=6)


INORDER_RATE = Experiment(
    "inorder-rate", "response times of joins in order, by the rate of the slow stream", run, "Hammad 9, 10"
)
