"""oa-join: a join as rows come, against joins that keep the order of their results (Li 7-6, 7-7).

The thesis's Q7-2 at its rate: M1 and M2 are in order and in step, about 4,000 packets a second each, and as many
packets as its data set has; ``--quick`` has an eighth of them a second, for a minute less. It does not say how many
pairs there are; here a packet has 2 partners for each second of RANGE, so that the join gives more than it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import polars as pl

from windrow.api.functions import count
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.flows import BACK, THERE, number_of_flows, packets_of_flows
from windrow.sources.links import MICROS, START

RATE = 4000
SECONDS = 190  # three windows close while the streams run, also with the widest band
PARTNERS = 2  # of a packet, for each second of RANGE
BANDS = (1, 3, 5, 7, 9)
STEP = MICROS  # punctuation comes every second
JOINS = {"oa": "OA-Join", "opob": "OPOB-Join", "opib": "OPIB-Join"}
Steps = Sequence[tuple[datetime, Mapping[str, pl.DataFrame]]]


@dataclass
class Cost:
    """Of one run, in seconds of CPU. ``latencies``: from a punctuation to the aggregate that it releases."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bytes: int = 0
    counted: list[int] = field(default_factory=list)


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """Figures 7-6 and 7-7."""
    bands, rounds = ((1, 5, 9), 2) if quick else (BANDS, 3)
    say("packets", 0.0)
    steps = generate(RATE / 8, SECONDS - 60) if quick else generate(RATE, SECONDS)
    figures: dict[str, float] = {}
    same = True
    for i, band in enumerate(bands):
        costs: dict[str, list[Cost]] = {name: [] for name in JOINS}
        for number in range(rounds + 1):  # the first one is for the memory, and warms up
            for name in JOINS if number % 2 else reversed(JOINS):
                say(f"band {band} s: {JOINS[name]}", (i + number / (rounds + 1)) / len(bands))
                costs[name].append(driven(asked(steps, band, name), steps, sizes=not number))
        same = same and len({tuple(c.counted) for each in costs.values() for c in each}) == 1
        for name, (sized, *timed) in costs.items():
            figures[f"bytes_{name}_{band}"] = sized.bytes
            figures[f"latency_ms_{name}_{band}"] = round(1000 * min(median(c.latencies) for c in timed), 3)
            figures[f"seconds_{name}_{band}"] = round(min(c.seconds for c in timed), 3)
        figures[f"pairs_{band}"] = sum(costs["oa"][0].counted)
    return Outcome(figures, claims(figures, bands, same), lambda figure: _plot(figure, figures, bands))


def generate(rate: float, seconds: int) -> Steps:
    """The packets of each second, and what is then promised about both streams."""
    flows = number_of_flows(rate, 2.0, PARTNERS)  # a band of 1 s on either side
    sides = {name: packets_of_flows(name, rate, seconds, flows, back=name == "M2") for name in ("M1", "M2")}
    found = []
    for start in range(0, seconds * MICROS, STEP):
        now = pl.col("arrival").is_between(start, start + STEP, closed="left")
        promised = datetime.fromtimestamp(START // MICROS, UTC) + timedelta(microseconds=start + STEP)
        found.append((promised, {name: frame.filter(now).drop("arrival") for name, frame in sides.items()}))
    return found


def asked(steps: Steps, band: int, using: str) -> Stream:
    """Q7-2: pairs per minute of M1, in the same NetFlow and less than ``band`` seconds apart."""
    empty = {name: frame.clear() for name, frame in steps[0][1].items()}
    m1, m2 = (stream(frame, "ts", name=name) for name, frame in empty.items())
    near = timedelta(seconds=band) - timedelta(microseconds=1)  # windows are half-open
    pairs = m1.join(m2, left_on=THERE, right_on=BACK, within=(-near, near), using=using)
    return pairs.window("1 minute", on="ts").agg(n=count())


def driven(query: Stream, steps: Steps, sizes: bool = False) -> Cost:
    """Both streams in turn, each second's packets and then the punctuation. ``sizes``: the state after each call."""
    running, cost = query.run(), Cost()
    for promised, frames in steps:
        calls: list[Callable[[], Any]] = [lambda n=name, f=frame: running.push(n, f) for name, frame in frames.items()]  # type: ignore[misc]
        calls += [lambda n=name, at=promised: running.promise(n, at) for name in frames]  # type: ignore[misc]
        for call in calls:
            began = time.process_time()
            call()
            took = time.process_time() - began
            cost.seconds += took
            released = running.results()
            if released.height:
                cost.latencies.append(took)
                cost.counted += released["n"].to_list()
            cost.bytes = max(cost.bytes, running.state_bytes() if sizes else 0)
    return cost


def claims(figures: Mapping[str, float], bands: Sequence[int], same: bool) -> dict[str, bool]:
    """What the thesis sees in its figures, of ours."""

    def below(what: str, other: str) -> bool:
        return all(figures[f"{what}_oa_{band}"] < figures[f"{what}_{other}_{band}"] for band in bands)

    return {
        "OA-Join takes less memory than OPOB-Join at every band": below("bytes", "opob"),
        "OA-Join has a lower latency than OPOB-Join at every band": below("latency_ms", "opob"),
        "OA-Join takes less memory than OPIB-Join at every band": below("bytes", "opib"),
        "all three count the same pairs": same and figures[f"pairs_{bands[0]}"] > 0,
    }


def _plot(figure: Any, figures: Mapping[str, float], bands: Sequence[int]) -> None:
    units = {"bytes": ("greatest state in KiB", 1 / 1024), "latency_ms": ("latency in ms", 1), "seconds": ("CPU s", 1)}
    for axes, (what, (label, scale)) in zip(figure.subplots(1, len(units)), units.items(), strict=True):
        for name, title in JOINS.items():
            axes.plot(bands, [scale * figures[f"{what}_{name}_{band}"] for band in bands], marker="o", label=title)
        axes.set(xlabel="band in seconds", title=label, ylim=(0, None))
        axes.legend(fontsize=7)


OA_JOIN = Experiment(
    "oa-join", "a band join as rows come, against joins that keep the order of results", run, "Li 7-6, 7-7"
)
