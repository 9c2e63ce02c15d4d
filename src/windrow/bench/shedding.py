"""What shed-rates, memory-fixed and memory-variable share: two streams, a join of them under limits, and its results.

Streams are as the paper's feeder sends them, a tuple every 1/rate seconds of virtual time, with keys at random. The
keys of one stream are among those of the other, so that the selectivity is the smaller of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.bench.experiment import Outcome
from windrow.spec.allocation import Allocation, Two, allocate, output_rate

Times = NDArray[np.float64]
Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """Two streams with windows and keys, and what the join may take of time and memory."""

    rates: Two
    windows: Two
    keys: tuple[int, int]
    max_rate: float | None
    max_state: float | None

    @property
    def selectivity(self) -> float:
        return 1 / max(self.keys)

    def allocated(self, policy: str) -> Allocation:
        return allocate(self.rates, self.windows, self.max_rate, self.max_state, policy)

    def modelled(self, policy: str) -> float:
        """Results per second, by the equations."""
        found = self.allocated(policy)
        return output_rate(self.selectivity, found.rates, found.windows)


@dataclass(frozen=True)
class Counted:
    """When results came, and how many rows each window held on average, from ``since`` to ``until``."""

    times: Times
    rows: Two
    since: float
    until: float

    @property
    def rate(self) -> float:
        return len(self.times) / (self.until - self.since)


def counted(setting: Setting, policy: str, seconds: float) -> Counted:
    """Join for so many seconds, after windows have filled up."""
    found = setting.allocated(policy)
    since = max(found.windows)
    until = since + seconds
    sides = [_kept(setting, found, side, until) for side in (0, 1)]
    times = np.concatenate([_results(sides[side], sides[1 - side], found.windows[1 - side]) for side in (0, 1)])
    held = [len(at[at > since]) / seconds * window for (at, _), window in zip(sides, found.windows, strict=True)]
    return Counted(np.sort(times[times > since]), (held[0], held[1]), since, until)


def _kept(setting: Setting, found: Allocation, side: int, until: float) -> tuple[Times, Keys]:
    """What is not shed of a stream; which rows these are is drawn."""
    rng = np.random.default_rng(side)
    rate = setting.rates[side]
    times = np.asarray((np.arange(int(until * rate)) + 0.5 * side) / rate, np.float64)
    keys = rng.integers(setting.keys[side], size=len(times))
    kept = rng.random(len(times)) < found.rates[side] / rate
    return times[kept], keys[kept]


def _results(probes: tuple[Times, Keys], held: tuple[Times, Keys], window: float) -> Times:
    """Each probe meets the rows of its key that came before it, and less than a window ago."""
    span = max(probes[0].max(initial=0), held[0].max(initial=0)) + window + 1.0
    places = np.sort(held[1] * span + held[0])
    now = probes[1] * span + probes[0]
    since = np.maximum(now - window, probes[1] * span)
    count = np.searchsorted(places, now, "left") - np.searchsorted(places, since, "left")
    return np.repeat(probes[0], count)


def outcome(
    setting: Setting, titles: Mapping[str, str], seconds: float, say: Callable[[str, float], None]
) -> tuple[Outcome, dict[str, Counted]]:
    """Figures of all policies: results per second as counted and as modelled, and the rows in both windows."""
    figures: dict[str, float] = {}
    runs: dict[str, Counted] = {}
    for i, (policy, title) in enumerate(titles.items()):
        say(title, i / len(titles))
        runs[policy] = counted(setting, policy, seconds)
        figures[f"results_per_s_{policy}"] = round(runs[policy].rate, 3)
        figures[f"model_{policy}"] = round(setting.modelled(policy), 3)
        figures[f"rows_held_{policy}"] = round(sum(runs[policy].rows), 1)
    return Outcome(figures), runs


def near_model(figures: Mapping[str, float], policies: Sequence[str], most: float) -> bool:
    """Whether counts are within a share of what the equations say, at every policy."""
    return all(
        abs(figures[f"results_per_s_{policy}"] - figures[f"model_{policy}"]) <= most * figures[f"model_{policy}"]
        for policy in policies
    )


def plot_results(axes: Any, setting: Setting, runs: Mapping[str, Counted], titles: Mapping[str, str]) -> None:
    """Results so far over time, with the equations as dotted lines."""
    for policy, run in runs.items():
        at = np.linspace(run.since, run.until, 200)
        (line,) = axes.plot(at - run.since, np.searchsorted(run.times, at), label=titles[policy])
        axes.plot(at - run.since, setting.modelled(policy) * (at - run.since), ":", color=line.get_color())
    axes.set(xlabel="seconds (virtual)", ylabel="results so far; dotted: the equations")
    axes.legend(fontsize=7)
