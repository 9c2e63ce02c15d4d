"""inorder-analytic: response times of joins in order by the closed forms (Hammad et al., Figures 5 and 6).

Example 1 doubles the time c of a comparison from 0.01 us, Example 2 raises the rate of the slow stream, both with
windows of a day. The same shares of time, with windows of a minute, are then played row by row on one server in virtual
time, at the constant rates that the equations are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.response import MICROS, WINDOW, Mode, Server, response_ms, steady
from windrow.planner.choose.costs.in_order import (
    BOUND,
    ONE_SERVER_BOUND,
    Streams,
    filter_order,
    improvement,
    improvement_of,
    keeps_up,
    one_server_keeps_up,
    sync_filter,
)

DAY = 86_400
BY_COST = [Streams(1, 10, DAY, 0.01e-6 * 2**k) for k in range(7)]  # as long as Eq. 1 holds
BY_RATE = [Streams(rate, 1, DAY, 0.0001) for rate in (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)]
NEAR = replace(BY_COST[0], cost=(1 - 1e-6) / (DAY * 10))
PLAYED = (0.01, 0.1, 0.3, 0.45, 0.6)  # c|w|l1 l2; one server keeps up below a half
ALIKE = 0.01  # rows that are played have the mean of the equations, so nearly


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Both figures, and rows one by one for three minutes (``--quick``) or twenty."""
    figures: dict[str, float] = {"improvement_near": improvement(NEAR)}
    for streams in BY_COST:
        figures |= closed(f"c_{streams.cost * 1e6:g}_us", streams)
    for streams in BY_RATE:
        figures |= closed(f"rate_{streams.slow:g}", streams)
    for i, share in enumerate(PLAYED):
        say(f"rows one by one, c|w|l1 l2 = {share:g}", i / len(PLAYED))
        figures |= one_by_one(share, (180 if quick else 1200) * MICROS)
    return Outcome(figures, claims(figures), lambda figure: plot(figure, figures))


def closed(name: str, streams: Streams) -> dict[str, float]:
    """Eqs. 3, 5 and 7."""
    found = {"sync_s": sync_filter(streams), "filter_s": filter_order(streams), "improvement": improvement(streams)}
    return {f"{what}_{name}": round(value, 6) for what, value in found.items()}


def streams_of(share: float) -> Streams:
    """One row and ten a second, windows of a minute."""
    window = WINDOW / MICROS
    return Streams(1, 10, window, share / (window * 10))


def one_by_one(share: float, end: int) -> dict[str, float]:
    """The mean over the rows of the fast stream, which are those of the equations; and over all."""
    streams = streams_of(share)
    rows = steady(streams.slow, int(streams.n), end)
    modes: dict[str, Mode] = {"sync": "sync-filter", "filter": "filter-order"}
    found = {name: Server(mode, round(streams.cost * MICROS)).play(rows) for name, mode in modes.items()}
    seconds = {name: response_ms(rows, each, end, fast=True) / 1000 for name, each in found.items()}
    all_rows = [response_ms(rows, each, end) for each in found.values()]
    return {
        **{f"played_{name}_s_{share:g}": value for name, value in seconds.items()},
        f"played_improvement_{share:g}": round(improvement_of(seconds["sync"], seconds["filter"]), 4),
        f"played_improvement_all_rows_{share:g}": round(improvement_of(all_rows[0], all_rows[1]), 4),
    }


def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    """What the paper concludes, and whether rows one by one agree."""
    by_cost = [figures[f"improvement_c_{s.cost * 1e6:g}_us"] for s in BY_COST]
    by_rate = [figures[f"improvement_rate_{s.slow:g}"] for s in BY_RATE]
    held = [s for s in BY_COST + BY_RATE if keeps_up(s)]
    kept = [share for share in PLAYED if one_server_keeps_up(streams_of(share))]
    return {
        "the improvement grows with c, and with the slow rate": all(
            a < b for line in (by_cost, by_rate) for a, b in pairwise(line)
        ),
        "it tends to 0.5, and stays below as long as Eq. 1 holds": (
            len(held) == len(BY_COST + BY_RATE)
            and max(*by_cost, *by_rate) < figures["improvement_near"] < BOUND
            and BOUND - figures["improvement_near"] < 1e-3
        ),
        "by Eq. 5 Filter-Order does not depend on c": len({figures[f"filter_s_c_{s.cost * 1e6:g}_us"] for s in BY_COST})
        == 1,
        "rows one by one agree with Eqs. 3 and 5 within 1 %, while one server keeps up (2 c|w|l1 l2 < 1)": all(
            abs(figures[f"played_{name}_s_{share:g}"] / of(streams_of(share)) - 1) <= ALIKE
            for share in kept
            for name, of in (("sync", sync_filter), ("filter", filter_order))
        ),
        "while one server keeps up, the improvement is below a third": all(
            figures[f"played_improvement_{share:g}"] < ONE_SERVER_BOUND for share in kept
        ),
    }


def plot(figure: Any, figures: Mapping[str, float]) -> None:
    """Figures 5(a), 5(b), 6(a) and 6(b)."""
    (times, shares), (slow_times, slow_shares) = figure.subplots(2, 2)
    costs, rates = [s.cost * 1e6 for s in BY_COST], [s.slow for s in BY_RATE]
    for axes, key, xs, label in ((times, "c_{:g}_us", costs, "c in us"), (slow_times, "rate_{:g}", rates, "slow rate")):
        for name, title in (("sync_s", "Sync-Filter, Eq. 3"), ("filter_s", "Filter-Order, Eq. 5")):
            axes.plot(xs, [figures[f"{name}_{key.format(x)}"] for x in xs], marker="o", label=title)
        axes.set(xlabel=label, ylabel="mean response in s", xscale="log")
        axes.legend(fontsize=6)
    slow_times.set_yscale("log")
    shares.plot([s.share for s in BY_COST], [figures[f"improvement_c_{c:g}_us"] for c in costs], "o-", label="Eq. 7")
    title = "played on one server: virtual time, service times given"
    shares.plot(PLAYED, [figures[f"played_improvement_{share:g}"] for share in PLAYED], "x", label=title)
    shares.axhline(BOUND, linestyle=":", color="gray")
    shares.set(xlabel="c|w|l1 l2", ylabel="improvement")
    shares.legend(fontsize=6)
    slow_shares.plot(rates, [figures[f"improvement_rate_{rate:g}"] for rate in rates], "o-", label="Eq. 7")
    slow_shares.axhline(BOUND, linestyle=":", color="gray")
    slow_shares.set(xlabel="slow rate", ylabel="improvement", xscale="log")


INORDER_ANALYTIC = Experiment(
    "inorder-analytic", "response times of joins in order by the closed forms", run, "Hammad 5, 6"
)
