"""memory-fixed: which stream's window is kept if memory is short (Kang 9).

The paper does not give the windows that memory cuts short. Here they are 100 s, so that the memory of 1,000 tuples is
what the slower stream's window needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.shedding import RECALL, Setting, near_model, near_recall, outcome, plot_results

SETTING = Setting(rates=(10, 50), windows=(100, 100), keys=(200, 100), max_rate=None, max_state=1000)
TITLES = {
    "slower": "Max A: the slower stream",
    "faster": "Max B: the faster stream",
    "proportional": "by rate",
    "inverse": "by the inverse of the rate",
    "equal": "equal",
}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 9."""
    found, runs = outcome(SETTING, TITLES, 600 if quick else 6000, say)
    found.holds = claims(found.figures)
    found.plot = lambda figure: plot_results(figure.subplots(), SETTING, runs, TITLES)
    return found


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """What the paper sees in its figure, of ours."""
    results = {policy: figures[f"results_per_s_{policy}"] for policy in TITLES}
    between = [rate for policy, rate in results.items() if policy not in ("slower", "faster")]
    return {
        "all memory for the slower stream gives the most results": results["slower"] > max(between),
        "all memory for the faster stream gives the fewest": results["faster"] < min(between),
        "both windows never hold more rows than the limit": max(figures[f"rows_held_{p}"] for p in TITLES)
        <= (SETTING.max_state or 0),
        "all counts are within 5 % of Eq. 13": near_model(figures, list(TITLES), 0.05),
        RECALL: near_recall(SETTING, figures, list(TITLES), 0.02),
    }


MEMORY_FIXED = Experiment("memory-fixed", "a join short of memory: five ways to share it", run, "Kang 9")
