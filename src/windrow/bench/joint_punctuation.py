"""joint-punctuation: when the groups of a count behind a join come out, by joint and by individual promises (Li 7-5).

The thesis's Q7-1: SYN packets on S0 and SYN_ACK packets on S1 of one connection, at most two minutes apart, counted by
both times. Everything is in virtual time: a link sends the packets of a minute and then its punctuation when the minute
is over, or later by its lag. The delay of a group is from the end of the later of its two minutes to its release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from windrow.api.functions import count
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.sql.select import sql

BAND = 2  # minutes
BANDS = (1, 2, 4, 8, 16)
LAGS = (-4, -2, -1, 0, 1, 2, 4)  # minutes that S1 is behind S0; with a minus, S0 behind S1
MINUTES = 90  # with --quick 45
RATE = 600  # connections a minute
QUERY = """
SELECT S0.ts AS t0, S1.ts AS t1, count(*) AS n
FROM S0 JOIN S1 ON S0.connection = S1.connection AND S1.ts BETWEEN S0.ts - {band} AND S0.ts + {band}
GROUP BY S0.ts, S1.ts
"""
PROMISES = {"joint": "joint", "left": "on the left time", "right": "on the right time", "later": "on the later time"}
Groups = dict[tuple[int, int], float]  # by both times, when it came out
Links = Mapping[str, pl.DataFrame]


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figure 7-5, by lag and by band."""
    rate, minutes = (RATE // 10, MINUTES // 2) if quick else (RATE, MINUTES)
    figures: dict[str, float] = {}
    settings = [("lag", lag, BAND, lag) for lag in LAGS] + [("band", band, band, 0) for band in BANDS]
    same, later = True, False
    for i, (by, value, band, lag) in enumerate(settings):
        say(f"{by} {value}", i / len(settings))
        links = packets(rate, band, minutes)
        found = {name: released(asked(name, links, band), links, lag, minutes) for name in PROMISES}
        closed = [g for g in found["joint"] if max(g) < minutes - 2 * band - max(map(abs, LAGS))]
        same = same and all(set(closed) <= set(groups) for groups in found.values())
        for name, groups in found.items():
            delays = [groups[g] - (max(g) + 1) for g in closed]
            later = later or any(groups[g] < found["joint"][g] for g in closed)
            figures[f"mean_{name}_{by}_{value}"] = round(float(np.mean(delays)), 3)
            figures[f"greatest_{name}_{by}_{value}"] = max(delays)
        figures[f"groups_{by}_{value}"] = len(closed)
    return Outcome(figures, claims(figures, same, later), lambda figure: _plot(figure, figures))


def packets(rate: int, band: int, minutes: int) -> Links:
    """A SYN_ACK follows its SYN within the band; times are minutes."""
    rng = np.random.default_rng(7)
    at = np.sort(rng.uniform(0, minutes, rate * minutes))
    answered = at + rng.uniform(0, band, len(at))
    number = np.arange(len(at))
    sides = {"S0": at, "S1": answered}
    return {n: pl.DataFrame({"ts": np.floor(t).astype(np.int64), "connection": number}) for n, t in sides.items()}


def asked(promises: str, links: Links, band: int) -> Stream:
    """Q7-1; with individual promises as windows of one minute on one time, by the other one."""
    given = {name: stream(frame.clear(), "ts", name=name) for name, frame in links.items()}
    if promises == "joint":
        return sql(QUERY.format(band=band), **given)
    pairs = given["S0"].join(given["S1"], on="connection", within=(-band, band))
    time = {"left": "ts", "right": "ts_right", "later": "greatest(ts, ts_right)"}[promises]
    timed = pairs.select(at=time, t0="ts", t1="ts_right")
    return timed.window(1, on="at").group_by("t0", "t1").agg(n=count())


def released(query: Stream, links: Links, lag: int, minutes: int) -> Groups:
    """When each group came out."""
    running, found = query.run(), Groups()
    for now, name, minute in arrivals(lag, minutes):
        running.push(name, links[name].filter(pl.col("ts") == minute))
        running.promise(name, minute + 1)
        for a, b in running.results().select("t0", "t1").rows():
            assert (a, b) not in found, "a group comes out once"
            found[a, b] = now
    return found


def arrivals(lag: int, minutes: int) -> Iterator[tuple[float, str, int]]:
    """When each link sends the packets of a minute: S1 in the middle of a minute of S0, and one of them later by the
    lag.
    """
    late = {"S0": max(0, -lag), "S1": max(0, lag) + 0.5}
    yield from sorted((minute + 1 + late[name], name, minute) for name in late for minute in range(minutes))


def claims(figures: Mapping[str, float], same: bool, later: bool) -> dict[str, bool]:
    """What Figure 7-5 says."""
    single = [name for name in PROMISES if name != "joint"]

    def mean(name: str) -> float:
        return sum(figures[f"mean_{name}_lag_{lag}"] for lag in LAGS)

    joint = {figures[f"mean_joint_band_{band}"] for band in BANDS}
    left = [figures[f"mean_left_band_{band}"] for band in BANDS]
    return {
        "joint promises release no group later than individual ones do": not later,
        "with the links in step groups come earlier on average than by promises on the left or the right time": all(
            figures["mean_joint_lag_0"] < figures[f"mean_{name}_lag_0"] for name in ("left", "right")
        ),
        "over all lags they come earlier on average than by promises on any one time": all(
            mean("joint") < mean(name) for name in single
        ),
        "by joint promises the delay does not depend on the band; by promises on the left time it grows with it": (
            len(joint) == 1 and all(a < b for a, b in pairwise(left))
        ),
        "all release the same groups, each once": same and min(figures[f"groups_lag_{lag}"] for lag in LAGS) > 0,
    }


def _plot(figure: Any, figures: Mapping[str, float]) -> None:
    label = {"lag": "minutes that S1 is behind S0", "band": "band in minutes"}
    values: Sequence[tuple[str, Sequence[int]]] = [("lag", LAGS), ("band", BANDS)]
    for axes, (by, at) in zip(figure.subplots(1, 2), values, strict=True):
        for name, title in PROMISES.items():
            [line] = axes.plot(at, [figures[f"mean_{name}_{by}_{v}"] for v in at], marker="o", label=title)
            greatest = [figures[f"greatest_{name}_{by}_{v}"] for v in at]
            axes.plot(at, greatest, linestyle=":", color=line.get_color())
        axes.set(xlabel=label[by], title="delay in minutes: mean, and greatest (dotted)", ylim=(0, None))
        axes.legend(fontsize=7)


JOINT_PUNCTUATION = Experiment(
    "joint-punctuation",
    "when groups by both times of a join come out, by joint and by individual promises",
    run,
    "Li 7-5",
)
