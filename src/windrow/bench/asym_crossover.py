"""asym-crossover: from which rate of one stream on nested loops beat hashing, in one direction (Kang 4, 5).

60 seconds' worth of tuples at once, in CPU time, as in the paper; rates are ten times the paper's and windows a tenth,
so that windows have as many tuples. Buckets are as in 2002, not in the order of time, unless it says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.operators.state.join_side import JoinSide, hashed
from windrow.planner.choose.costs.asymmetric import Side, Streams, Weights, crossover, crossover_exact
from windrow.planner.choose.timed_joins import A_TO_B, SECOND, Trace, one_way, timed, trace, weights
from windrow.spec.names import PROGRESS

RATE, WINDOW, SECONDS = 100.0, 6.0, 60.0
KEYS = (5, 10, 20, 30, 40, 50)
RATIOS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 22.0, 32.0)  # of the rates of B and A
FIGURE_4 = 10  # keys
BATCH = 1.0  # seconds' worth of tuples that sorted runs take together


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figures 4 and 5."""
    keys = (5, 10, 20, 50) if quick else KEYS
    rounds = 3 if quick else 7
    figures: dict[str, float] = {}
    for i, number in enumerate(keys):
        say(f"|B| = {number}", i / (len(keys) + 1))
        figures |= crossing(number, rounds)
    one = Weights(1, figures[f"c_h_{FIGURE_4}"] / figures[f"c_n_{FIGURE_4}"])
    for number in keys:
        figures[f"one_ratio_{number}"] = round(max(crossover(number, one), 0.0), 2)
    say("Figure 4", len(keys) / (len(keys) + 1))
    curves = figure_4(RATIOS[2:-3], rounds)
    for name, curve in curves.items():
        figures |= {f"ms_{name}_{ratio:g}": round(1000 * seconds, 2) for ratio, seconds in curve.items()}
    others = {f"|B| = {n}, C_h/C_n of |B| = {FIGURE_4}: Eq. 7": figures[f"one_ratio_{n}"] for n in keys}
    holds = claims(figures, keys)
    return Outcome(figures, holds, lambda figure: _plot(figure, figures, keys, curves), {NEAR: others})


def at(ratio: float, keys: int) -> Streams:
    """B is so many times as fast as A, and has so many keys."""
    return Streams(Side(RATE, WINDOW, keys), Side(RATE * ratio, WINDOW, keys))


def crossing(keys: int, rounds: int) -> dict[str, float]:
    """Where the two meet, as measured; and by Eq. 7 with the weights of this number of keys, the median over rates."""
    found, weighed = {}, []
    for ratio in RATIOS:
        streams = at(ratio, keys)
        nested, hashing = one_way(trace(streams, SECONDS), rounds)
        found[ratio] = hashing.seconds / nested.seconds
        weighed.append(weights(streams, SECONDS, nested, hashing))
        if len([more for more in found.values() if more > 1]) == 3:
            break
    middle = Weights(median(w.nested for w in weighed), median(w.hashed for w in weighed))
    exact = crossover_exact(Side(RATE, WINDOW, keys), Side(0, WINDOW, keys), middle)
    return {
        f"c_n_{keys}": round(middle.nested, 3),
        f"c_h_{keys}": round(middle.hashed, 3),
        f"measured_{keys}": round(root(found), 2),
        f"eq7_{keys}": round(max(crossover(keys, middle), 0.0), 2),
        f"eq7_exact_{keys}": round(exact, 2),
    }


def root(found: Mapping[float, float]) -> float:
    """Where a ratio of costs passes 1 for good, between two points on a logarithmic scale.

    >>> root({1.0: 0.5, 4.0: 2.0})
    2.0
    """
    points = [(math.log(x), math.log(y)) for x, y in sorted(found.items())]
    after = next((i for i in range(len(points)) if all(y > 0 for _, y in points[i:])), None)
    if after is None:
        return math.inf
    if after == 0:
        return math.exp(points[0][0])
    (x, y), (x2, y2) = points[after - 1 : after + 1]
    return math.exp(x + (x2 - x) * y / (y - y2))


def figure_4(ratios: Sequence[float], rounds: int) -> dict[str, dict[float, float]]:
    """Seconds of CPU by ratio of the rates, of each way to keep the window of B."""
    found: dict[str, dict[float, float]] = {name: {} for name in ("nlj", "hj", "hj_in_order", "runs")}
    for ratio in ratios:
        given = trace(at(ratio, FIGURE_4), SECONDS)
        found["nlj"][ratio], found["hj"][ratio] = (ran.seconds for ran in one_way(given, rounds))
        found["hj_in_order"][ratio] = timed(given, "HHJ", A_TO_B, True, rounds).seconds
        found["runs"][ratio] = min(sorted_runs(given)[0] for _ in range(rounds))
    return found


def sorted_runs(given: Trace) -> tuple[float, int]:
    """The same join with sorted runs, which take batches: CPU time, and the number of pairs."""
    window, step = int(given.streams.b.window * SECOND), int(BATCH * SECOND)
    rows = pl.DataFrame({"side": given.sides, PROGRESS: given.times, "k": given.keys})
    batches = _batches(rows, step)
    side, pairs = JoinSide(["k"]), 0
    began = time.process_time()
    for a, b in batches:
        held, probes = hashed(b, ["k"]), hashed(a, ["k"])
        side.push(held, np.zeros(held.height, np.bool_))
        now = probes[PROGRESS].to_numpy()
        pairs += sum(len(mine) for _, mine, _ in side.partners(probes, now - window + 1, now))
        side.free(int(now.max()) - window + 1)
    return time.process_time() - began, pairs


def _batches(rows: pl.DataFrame, step: int) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    parts = rows.with_columns(part=pl.col(PROGRESS) // step).partition_by("part", include_key=False)
    return [tuple(part.filter(side=n).drop("side") for n in (0, 1)) for part in parts]  # type: ignore[misc]


NEAR = afterwards(
    "the crossover is within 20 % of Eq. 7 at every |B|",
    "arrivals at random, and C_h/C_n by |B|, the median over rates",
)


def claims(figures: Mapping[str, float], keys: Sequence[int]) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    off = [abs(figures[f"measured_{n}"] / max(figures[f"eq7_{n}"], 1e-9) - 1) for n in keys]
    measured = [figures[f"measured_{n}"] for n in keys]
    ratios = [float(name.rpartition("_")[2]) for name in figures if name.startswith("ms_nlj_")]
    in_order = [(figures[f"ms_hj_in_order_{r:g}"], figures[f"ms_nlj_{r:g}"], figures[f"ms_hj_{r:g}"]) for r in ratios]
    return {
        NEAR: max(off) <= 0.2,
        "the crossover grows with |B|": measured == sorted(measured),
        "beyond it nested loops win, before it hashing": _one_crossing(figures, ratios),
        "with buckets in the order of time hashing wins at every rate": all(own < min(o) for own, *o in in_order),
    }


def _one_crossing(figures: Mapping[str, float], ratios: Sequence[float]) -> bool:
    wins = [figures[f"ms_nlj_{r:g}"] < figures[f"ms_hj_{r:g}"] for r in ratios]
    return wins == sorted(wins) and wins[-1] and not wins[0]


def _plot(
    figure: Any, figures: Mapping[str, float], keys: Sequence[int], curves: Mapping[str, Mapping[float, float]]
) -> None:
    left, right = figure.subplots(1, 2)
    titles = {"nlj": "nested loops", "hj": "hash, as in 2002", "hj_in_order": "hash, in order", "runs": "sorted runs"}
    for name, curve in curves.items():
        left.plot(list(curve), [1000 * s for s in curve.values()], marker="o", label=titles[name])
    left.set(xlabel="rate of B / rate of A", ylabel=f"CPU ms for {SECONDS:g} s of tuples", yscale="log")
    left.set_title(f"Figure 4: |B| = {FIGURE_4}")
    labels = {"measured": "measured", "eq7": "Eq. 7", "one_ratio": "Eq. 7, C_h/C_n of |B| = 10 throughout"}
    for name, label in labels.items():
        right.plot(keys, [figures[f"{name}_{n}"] for n in keys], marker="o", label=label)
    right.set(xlabel="|B|", ylabel="crossover: rate of B / rate of A", title="Figure 5")
    for axes in (left, right):
        axes.legend(fontsize=7)


ASYM_CROSSOVER = Experiment(
    "asym-crossover", "hash or nested loops in one direction: where they cross", run, "Kang 4, 5"
)
