"""shed-rates: which tuples a join drops if it cannot keep up with its streams (Kang 8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.shedding import RECALL, Setting, near_model, near_recall, outcome, plot_results

SETTING = Setting(rates=(80, 20), windows=(9, 1), keys=(50, 12), max_rate=10, max_state=None)
TITLES = {
    "equal": "equal",
    "proportional": "by rate",
    "inverse": "by the inverse of the rate",
    "window-proportional": "by window",
    "window-inverse": "by the inverse of the window",
}


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 8."""
    found, runs = outcome(SETTING, TITLES, 3600 if quick else 36_000, say)
    found.holds = claims(found.figures)
    found.plot = lambda figure: plot_results(figure.subplots(), SETTING, runs, TITLES)
    return found


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """What the paper sees in its figure, of ours."""
    results = {policy: figures[f"results_per_s_{policy}"] for policy in TITLES}
    by_rate, inverse = results["proportional"], results["inverse"]
    others = [rate for policy, rate in results.items() if policy != "equal"]
    return {
        "equal shares of the service rate give the most results": results["equal"] > max(others),
        "by rate and by its inverse there are about as many, within 10 %": abs(by_rate / inverse - 1) <= 0.1,
        "all counts are within 5 % of Eq. 10": near_model(figures, list(TITLES), 0.05),
        RECALL: near_recall(SETTING, figures, list(TITLES), 0.02),
    }


SHED_RATES = Experiment("shed-rates", "a join slower than its streams: five ways to share its rate", run, "Kang 8")
