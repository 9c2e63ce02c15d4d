"""Joins with copies of the state, and the ring, in real processes, each beside a simulation of the same rows.

As in ring-length a pair is waited for, so that four nodes have their time on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from windrow.bench.ring_copies import MICROS, Say
from windrow.bench.ring_length import SMALL, WAIT, calibrated
from windrow.bench.ring_load import response
from windrow.bench.ring_real import real
from windrow.hosts.ring.simulated import Simulation
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import WAYS

NEAR = 0.2  # of the real response
RUNS = 2  # of which the faster one counts


class Run(NamedTuple):
    """``way``: atr, ctr or psp."""

    way: str
    nodes: int

    @property
    def name(self) -> str:
        return f"{self.way}_{self.nodes}"


def beside(runs: Sequence[Run], say: Say) -> dict[str, float]:
    """The response of each real run, in milliseconds, and that of its simulation, with what messages and probes take
    on this machine now.
    """
    say("real nodes: calibration", 0.9)
    machines, load, figures = calibrated(SMALL), SMALL, dict[str, float]()
    for run in runs:
        say(f"{run.nodes} real nodes: {run.way}", 0.95)
        way = "ring" if run.way == "psp" else run.way
        # Segments of ATR are as long as windows; those of CTR are what comes together.
        wishes = Wishes(run.nodes, run.nodes, segment=round(load.window * MICROS) if run.way == "atr" else None)
        every = [real(load, run.nodes, WAIT, way, wishes) for _ in range(RUNS)]
        found = min(every, key=lambda each: response(each.found, load.window))
        then = replace(machines, unit=replace(machines.unit, join=found.join))
        meant = Simulation(load.joining(), wishes, load.come(), then, WAYS[way]).run()
        took, expected = response(found.found, load.window), response(meant.found, load.window)
        figures |= {f"ms_real_{run.name}": round(took, 2), f"ms_simulated_{run.name}": round(expected, 2)}
        figures[f"simulated_over_real_{run.name}"] = round(expected / took, 3)
    return figures


def near(figures: Mapping[str, float]) -> dict[str, bool]:
    """Where there are real runs."""
    ratios = [value for name, value in figures.items() if name.startswith("simulated_over_real_")]
    claim = "simulated responses are within 20 % of real ones, where there are both"
    return {claim: all(1 - NEAR <= each <= 1 + NEAR for each in ratios)} if ratios else {}


def panel(axes: Any, figures: Mapping[str, float], runs: Sequence[Run]) -> None:
    """Both on one plot."""
    for color, way in enumerate(dict.fromkeys(run.way for run in runs)):
        own = [run for run in runs if run.way == way and f"ms_real_{run.name}" in figures]
        nodes = [run.nodes for run in own]
        axes.plot(nodes, [figures[f"ms_real_{r.name}"] for r in own], f"C{color}x", label=f"{way.upper()}, real")
        axes.plot(
            nodes, [figures[f"ms_simulated_{r.name}"] for r in own], f"C{color}o--", mfc="none", label="simulated"
        )
    axes.set(xlabel="nodes", ylabel="mean response in ms", ylim=(0, None), title="real nodes")
    axes.legend(fontsize=6)
