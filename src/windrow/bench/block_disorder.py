"""block-disorder: latency against accuracy where a router sends blocks of rows in any order (Li 6-12)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import polars as pl

from windrow.api.functions import count
from windrow.bench.disorder import SECOND, Windows, arrivals, named, plot, trade_off
from windrow.bench.experiment import Experiment, Outcome
from windrow.sources.links import Link

BLOCK = 490.0  # seconds
SLACKS = (0.0, 54.4, 109.1, 218.2, 327.3, 434.2, 490.9, 600.0)
WINDOWS = Windows(600 * SECOND, 60 * SECOND, count())
RATE = 5  # rows a second


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Counts of 600 s every 60 s, blocks of 490 s."""
    rows = arrivals(Link("block", RATE, block=BLOCK), BLOCK * (40 if quick else 200))
    figures = trade_off(rows, WINDOWS, SLACKS, lambda found: wrong_answers(rows, found), say)
    return Outcome(figures, claims(figures), lambda figure: plot(figure, figures, SLACKS, "wrong answers in percent"))


def wrong_answers(rows: pl.DataFrame, found: pl.DataFrame) -> float:
    """The share of the windows that are out with a wrong count, in percent."""
    times = np.sort(rows["t"].to_numpy())
    end = found["window_end"].to_numpy()
    true = np.searchsorted(times, end) - np.searchsorted(times, end - WINDOWS.range)
    return float(np.mean(found["r"].to_numpy() != true)) * 100


def claims(figures: dict[str, float]) -> dict[str, bool]:
    """What the thesis sees in its figure, of ours; both policies."""
    point = (figures["error_punctuation"], figures["latency_s_punctuation"])
    holds = {}
    for policy in ("consistent", "generous"):
        points = [(figures[f"error_{named(policy, s)}"], figures[f"latency_s_{named(policy, s)}"]) for s in SLACKS]
        holds[f"punctuation is no worse than any {policy} slack in error and in latency, and better in one"] = all(
            point[0] <= e and point[1] <= x and point != (e, x) for e, x in points
        )
        exact = [i for i, (e, _) in enumerate(points) if e == 0]
        best = min(exact, key=lambda i: points[i][1], default=None)
        holds[f"one {policy} slack is optimal: the least without wrong answers, and latency grows above it"] = (
            best is not None and best == exact[0] > 0 and all(points[a][1] < points[b][1] for a, b in pairwise(exact))
        )
    return holds


BLOCK_DISORDER = Experiment(
    "block-disorder", "slack against punctuation, blocks of 490 s in any order, in virtual time", run, "Li 6-12"
)
