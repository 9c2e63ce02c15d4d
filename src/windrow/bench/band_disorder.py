"""band-disorder: latency against accuracy where rows are late within a band (Li 6-11)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import polars as pl

from windrow.api.functions import avg
from windrow.bench.disorder import SECOND, Windows, arrivals, named, plot, trade_off
from windrow.bench.experiment import Experiment, Outcome
from windrow.sources.links import Link

BAND = 3.2  # seconds
SLACKS = (0.0, 0.32, 0.64, 1.28, 2.56, 3.2)
WINDOWS = Windows(64 * SECOND, 64 * SECOND // 10, avg("len"))
RATE = 100  # rows a second


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Averages of 64 s every 6.4 s, disorder of up to 3.2 s."""
    rows = arrivals(Link("band", RATE, band=BAND), 640 if quick else 6400)
    figures = trade_off(rows, WINDOWS, SLACKS, lambda found: mean_error(rows, found), say)
    return Outcome(figures, claims(figures), lambda figure: plot(figure, figures, SLACKS, "mean error in percent"))


def mean_error(rows: pl.DataFrame, found: pl.DataFrame) -> float:
    """The mean over the windows of the distance from the true average, in percent of it (Li 6.1.5)."""
    ordered = rows.sort("t")
    times, total = ordered["t"].to_numpy(), np.concatenate([[0], np.cumsum(ordered["len"].to_numpy())])
    end = found["window_end"].to_numpy()
    low, high = np.searchsorted(times, end - WINDOWS.range), np.searchsorted(times, end)
    true = (total[high] - total[low]) / (high - low)
    return float(np.mean(np.abs(found["r"].to_numpy() - true) / true)) * 100


def claims(figures: dict[str, float]) -> dict[str, bool]:
    """What the thesis sees in its figure, of ours."""
    error = {s: {p: figures[f"error_{named(p, s)}"] for p in ("consistent", "generous")} for s in SLACKS}
    late = {s: figures[f"latency_s_{named('consistent', s)}"] for s in SLACKS}
    exact = [late[s] for s in SLACKS if error[s]["consistent"] == 0]
    short = [s for s in SLACKS if error[s]["consistent"] > 0]
    steps = list(pairwise(SLACKS))
    return {
        "punctuation has no error, and every slack without error has a higher latency": (
            figures["error_punctuation"] == 0 and all(figures["latency_s_punctuation"] < x for x in exact)
        ),
        "generous slack is more accurate than consistent slack wherever slack is too short": bool(short)
        and all(error[s]["generous"] < error[s]["consistent"] for s in short),
        "with more slack the latency rises, and the error does not": all(
            late[a] < late[b] and error[a]["consistent"] >= error[b]["consistent"] for a, b in steps
        ),
    }


BAND_DISORDER = Experiment(
    "band-disorder", "slack against punctuation, disorder of up to 3.2 s, in virtual time", run, "Li 6-11"
)
