"""memory-variable: how a join shares its rate and its memory if both are short (Kang 10, 11).

The paper gives neither rates nor windows. Here both streams have twice the rate that the join can serve, and windows
of 1,000 s, which a hundredth of that rate fills with the memory of 100 tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.shedding import Counted, Setting, near_model, outcome, plot_results

MU, MEMORY, SIGMA = 10, 100, 0.01
SETTING = Setting(rates=(20, 20), windows=(1000, 1000), keys=(100, 100), max_rate=MU, max_state=MEMORY)
TITLES = {
    "left-window/left-rate": "Max A / Max rate of A",
    "left-window/right-rate": "Max A / Max rate of B",
    "right-window/left-rate": "Max B / Max rate of A",
    "right-window/right-rate": "Max B / Max rate of B",
    "equal": "equal",
    "best": "the default",
}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figures 10 and 11."""
    found, runs = outcome(SETTING, TITLES, 36_000 if quick else 144_000, say)
    found.figures["sigma_mu_m"] = SIGMA * MU * MEMORY
    found.holds = claims(found.figures)
    found.plot = lambda figure: _plot(figure, runs)
    return found


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """What the paper sees in its figures, of ours."""
    results = {policy: figures[f"results_per_s_{policy}"] for policy in TITLES}
    opposite = [results["left-window/right-rate"], results["right-window/left-rate"]]
    same = [results["left-window/left-rate"], results["right-window/right-rate"]]
    ideal = figures["sigma_mu_m"]
    return {
        "memory for one stream and the rate for the other gives more than equal shares": min(opposite)
        > results["equal"],
        "memory and the rate for the same stream gives the fewest results": max(same) < results["equal"],
        "the best are about sigma mu M, within 10 %": all(abs(rate / ideal - 1) <= 0.1 for rate in opposite),
        "the default is one of the best, within 10 %": results["best"] >= 0.9 * max(opposite),
        "all counts are within 10 % of Eq. 14": near_model(figures, list(TITLES), 0.1),
    }


def surface(points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Eq. 14: the output rate over the share of the rate that A gets (columns) and its memory (rows)."""
    share, memory = np.linspace(0, 1, points)[None, :], np.linspace(0, MEMORY, points)[:, None]
    return np.asarray(SIGMA * (share * MU * MEMORY - (2 * share - 1) * MU * memory))


def _plot(figure: Any, runs: Mapping[str, Counted]) -> None:
    left, right = figure.subplots(1, 2)
    plot_results(left, SETTING, runs, TITLES)
    heat = right.imshow(surface(101), origin="lower", extent=(0, 1, 0, MEMORY), aspect="auto")
    right.contour(surface(101), levels=9, colors="white", linewidths=0.5, extent=(0, 1, 0, MEMORY))
    for policy in TITLES:
        found = SETTING.allocated(policy)
        right.plot(found.rates[0] / MU, found.rows[0], "o", color="red", clip_on=False)
    right.set(xlabel="x: share of the rate of A", ylabel="memory of A in tuples", title="Eq. 14, and the policies")
    figure.colorbar(heat, ax=right, label="results per second")


MEMORY_VARIABLE = Experiment(
    "memory-variable", "a join short of time and memory: the four corners, equal shares", run, "Kang 10, 11"
)
