"""What shed-rates, memory-fixed and memory-variable share: two streams, a join of them with limits, and its results.

Streams are as the paper's feeder sends them, a tuple every 1/rate seconds of virtual time, with keys at random. The
keys of one stream are among those of the other, so that the selectivity is the smaller of the two. The join is the
operator that queries with limits run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.bench.experiment import Outcome, afterwards
from windrow.operators import LimitedJoin, WindowJoin
from windrow.progress import Punctuation
from windrow.spec.allocation import Allocation, Two, allocate, output_rate
from windrow.spec.joining import Limits
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Within

Times = NDArray[np.float64]
SECOND = 1_000_000
BATCHES = 50  # in a run
RECALL = afterwards("the recall that the join reports is within 0.02 of the true one", "the bound of 0.02")


@dataclass(frozen=True)
class Setting:
    """Two streams with windows and keys, and what the join may take of time and memory."""

    rates: Two
    windows: Two
    keys: tuple[int, int]
    max_rate: float | None
    max_state: int | None

    @property
    def selectivity(self) -> float:
        return 1 / max(self.keys)

    def allocated(self, policy: str) -> Allocation:
        return allocate(self.rates, self.windows, self.max_rate, self.max_state, policy)

    def modelled(self, policy: str) -> float:
        """Results per second, by the equations."""
        found = self.allocated(policy)
        return output_rate(self.selectivity, found.rates, found.windows)

    def join(self, policy: str) -> LimitedJoin:
        """Windows are half open, as ours are; in the paper they are inclusive."""
        left, right = (int(length * SECOND) for length in self.windows)
        inner = WindowJoin(["k"], Within(1 - right, left - 1), ({}, {}))
        return LimitedJoin(inner, Limits(self.max_rate, self.max_state, policy), ([], []), SECOND)


@dataclass(frozen=True)
class Counted:
    """When results came, the most rows that both windows held between two batches, and how many rows were shed, from
    ``since`` to ``until``; ``recall`` is the estimate of the join for all of the run.
    """

    times: Times
    rows: int
    shed: int
    recall: float
    since: float
    until: float

    @property
    def rate(self) -> float:
        return len(self.times) / (self.until - self.since)


def counted(setting: Setting, policy: str, seconds: float) -> Counted:
    """Join for so many seconds, after windows have filled up."""
    since = max(setting.allocated(policy).windows)
    until = since + seconds
    join, sides = setting.join(policy), [_stream(setting, side, until) for side in (0, 1)]
    times, rows, counts = list[Times](), 0, dict.fromkeys(("shed", "near", "missed"), 0)
    for end in np.linspace(0, until * SECOND, BATCHES + 1).astype(np.int64)[1:].tolist():
        for port, side in enumerate(sides):
            count = int(side[PROGRESS].search_sorted(end))
            join.on_batch(port, side[:count])
            sides[port] = side[count:]
        for item in [x for port in (0, 1) for x in join.on_punctuation(port, Punctuation(end))]:
            if isinstance(item, pl.DataFrame):
                times.append(item[PROGRESS].to_numpy() / SECOND)
            elif not isinstance(item, Punctuation) and item.kind in counts:
                counts[item.kind] += item.count
        rows = max(rows, sum(kept.rows.height for kept in join.join.sides))
    every = np.sort(np.concatenate(times)) if times else np.empty(0)
    recall = 1 - counts["missed"] / max(1, counts["near"])
    return Counted(every[every > since], rows, counts["shed"], recall, since, until)


def _stream(setting: Setting, side: int, until: float) -> pl.DataFrame:
    rng = np.random.default_rng(side)
    rate = setting.rates[side]
    at = (np.arange(int(until * rate)) + 0.5 * side) / rate
    keys = rng.integers(setting.keys[side], size=len(at))
    return pl.DataFrame({"k": keys, PROGRESS: (at * SECOND).astype(np.int64)})


def outcome(
    setting: Setting, titles: Mapping[str, str], seconds: float, say: Callable[[str, float], None]
) -> tuple[Outcome, dict[str, Counted]]:
    """Figures of all policies: results per second as counted and as modelled, rows in both windows, rows shed."""
    figures: dict[str, float] = {}
    runs: dict[str, Counted] = {}
    for i, (policy, title) in enumerate(titles.items()):
        say(title, i / len(titles))
        runs[policy] = counted(setting, policy, seconds)
        figures[f"results_per_s_{policy}"] = round(runs[policy].rate, 3)
        figures[f"model_{policy}"] = round(setting.modelled(policy), 3)
        figures[f"rows_held_{policy}"] = runs[policy].rows
        figures[f"rows_shed_{policy}"] = runs[policy].shed
        figures[f"recall_{policy}"] = round(runs[policy].recall, 4)
    return Outcome(figures), runs


def near_model(figures: Mapping[str, float], policies: Sequence[str], most: float) -> bool:
    """Whether counts are within a share of what the equations say, at every policy."""
    return all(
        abs(figures[f"results_per_s_{policy}"] - figures[f"model_{policy}"]) <= most * figures[f"model_{policy}"]
        for policy in policies
    )


def near_recall(setting: Setting, figures: Mapping[str, float], policies: Sequence[str], most: float) -> bool:
    """Whether the recall that the join estimates is that of its results, over what Eq. 9 gives without limits."""
    whole = output_rate(setting.selectivity, setting.rates, setting.windows)
    return all(abs(figures[f"recall_{p}"] - figures[f"results_per_s_{p}"] / whole) <= most for p in policies)


def plot_results(axes: Any, setting: Setting, runs: Mapping[str, Counted], titles: Mapping[str, str]) -> None:
    """Results so far over time, with the equations as dotted lines."""
    for policy, run in runs.items():
        at = np.linspace(run.since, run.until, 200)
        (line,) = axes.plot(at - run.since, np.searchsorted(run.times, at), label=titles[policy])
        axes.plot(at - run.since, setting.modelled(policy) * (at - run.since), ":", color=line.get_color())
    axes.set(xlabel="seconds (virtual)", ylabel="results so far; dotted: the equations")
    axes.legend(fontsize=7)
