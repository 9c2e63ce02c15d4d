"""ring-length: response time and state of a ring by its number of nodes (Wang and Rundensteiner, Figures 8a and 8b).

In virtual time for 4 to 19 nodes, with given times; and real processes next to simulated ones, with times that were
measured on this machine just before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import numpy as np

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.ring_load import Load, latencies, response
from windrow.bench.ring_real import Real, hop, real
from windrow.hosts.ring.simulated import Simulation
from windrow.hosts.ring.simulated_machines import GIGABIT, Machines
from windrow.hosts.ring.simulated_outcome import Outcome as Simulated
from windrow.operators.ring.costs import Streams, Unit, best
from windrow.operators.ring.layout import Wishes
from windrow.spec.batches import Batch

# A window has 20 rows where the paper's has 500, and a pair takes 25 times as long as the pixels of a small, middle or
# large image do (5k, 10k, 20k; a nanosecond for each of four operations), so that a window takes as long.
COSTS = {"small": 0.5e-3, "middle": 1e-3, "large": 2e-3}
SELECTIVITIES = (0.05, 0.1, 0.5)
NODES = (4, 6, 8, 10, 12, 14, 16, 19)
FEW = (4, 8, 12, 19)
RATE, WINDOW = 0.2, 100.0
LONGER = ((5, 0.1), (7, 0.1), (9, 0.05))  # ways, and the selectivity with which their results can be counted
ROW_BYTES = {"small": 15_000, "middle": 30_000, "large": 60_000}
UNIT = Unit()
BYTE = 1e-9

# The same in real processes: fewer rows, of which each takes longer, so that the times of this machine matter little.
SMALL = Load(ways=3, selectivity=0.2, rate=0.8, window=6.0, seconds=30.0)
WAIT = 25e-3
LIMIT = 0.2
BEYOND = (5, 6, 8)  # nodes, only simulated
MINIMUM = afterwards(
    "the response time has a minimum between 4 and 19 nodes",
    "3 ways, as in the paper's figure; a 7-way join wants more",
)
LARGER = afterwards(
    "the larger the selectivity, the more nodes are best, as by Eq. 5", "the paper reads the opposite from its figure"
)
NEAR = afterwards(
    "simulated response times are within 20 % of the real ones",
    "medians, the best of several runs, and the rows of the real rings",
)
Say = Callable[[str, float], None]
Joins = dict[tuple[int, float, str], tuple[int, ...]]  # ways, selectivity and cost, and the numbers of nodes


def run(quick: bool, say: Say) -> Outcome:
    """Both figures; ``--quick`` has small images, fewer points, and real rings of one and two nodes."""
    nodes, costs = (FEW, ("small",)) if quick else (NODES, tuple(COSTS))
    joins: Joins = {(3, share, cost): nodes for share in SELECTIVITIES for cost in costs}
    if not quick:
        joins |= {(ways, share, "small"): FEW for ways, share in LONGER}
    figures: dict[str, float] = {}
    for i, ((ways, share, cost), counts) in enumerate(joins.items()):
        for j, count in enumerate(counts):
            done = (i + j / len(counts)) / len(joins)
            say(f"{ways} ways, selectivity {share:g}, {cost}, {count} nodes", done / 2)
            figures |= point(ways, share, cost, count)
        figures |= optimum(figures, ways, share, cost, counts)
    real_nodes = (1, 2) if quick else (1, 2, 3, 4)
    load = replace(SMALL, seconds=14.0) if quick else SMALL
    figures |= compared(real_nodes, 1 if quick else 3, load, say)
    found = Outcome(figures, claims(figures, joins, real_nodes))
    bests = {f"best at {name}": figures[f"best_{name}"] for name in (name_of(*join) for join in joins)}
    means = {f"means, {n}": figures[f"ms_simulated_mean_{n}"] / figures[f"ms_real_mean_{n}"] for n in real_nodes}
    found.curves = {MINIMUM: bests, LARGER: bests, NEAR: means}
    found.plot = lambda figure: plot(figure, figures, nodes, real_nodes, costs[0])
    return found


# -- in virtual time ---------------------------------------------------------------------------------------------------
def name_of(ways: int, share: float, cost: str) -> str:
    return f"{ways}_{share:g}_{cost}"


def simulated(load: Load, nodes: int, machines: Machines) -> Simulated:
    return Simulation(load.joining(), Wishes(nodes, nodes, ordered=load.orders()), load.come(), machines).run()


def point(ways: int, share: float, cost: str, nodes: int) -> dict[str, float]:
    """One ring. State is that at the ends of rounds, when windows are full."""
    load = Load(ways, share, RATE, WINDOW, 2 * WINDOW)
    machines = Machines(replace(UNIT, join=COSTS[cost]), byte=BYTE, row_bytes=ROW_BYTES[cost])
    outcome = simulated(load, nodes, machines)
    name = f"{name_of(ways, share, cost)}_{nodes}"
    rows = mean(each.live for each in outcome.rounds if each.began >= WINDOW)
    return {f"ms_{name}": response(outcome.found, WINDOW), f"rows_{name}": rows}


def optimum(figures: Mapping[str, float], ways: int, share: float, cost: str, nodes: Sequence[int]) -> dict[str, float]:
    """The best length, by simulation and by Eq. 5."""
    name = name_of(ways, share, cost)
    hop = UNIT.hop + ROW_BYTES[cost] / GIGABIT  # of a row, as T_n is meant
    unit = replace(UNIT, join=COSTS[cost], hop=hop)
    streams = Streams((RATE,) * ways, (WINDOW,) * ways, (share,) * ways)
    found = min(nodes, key=lambda count: figures[f"ms_{name}_{count}"])
    return {f"best_{name}": found, f"eq5_{name}": best(streams, unit, nodes[-1])}


# -- real and simulated ------------------------------------------------------------------------------------------------
def compared(nodes: Sequence[int], runs: int, load: Load, say: Say) -> dict[str, float]:
    """The best of some real runs in turn, each length beside a simulation with the least that messages and probes have
    taken, and with what its nodes have measured for a pair.
    """
    found: dict[int, list[tuple[float, float, float]]] = {count: [] for count in nodes}
    calibrations: list[Machines] = []
    for turn in range(runs):
        say("calibration", 0.5 + 0.5 * turn / runs)
        calibrations.append(calibrated(load))
        for i, count in enumerate(nodes):
            say(f"{count} real nodes", 0.5 + 0.5 * (turn + (i + 1) / (len(nodes) + 1)) / runs)
            ring = real(load, count, WAIT)
            found[count].append((middle(ring.found, load.window), ring.join, response(ring.found, load.window)))
    machines = min(calibrations, key=lambda each: each.probe + each.unit.send)
    took = {count: min(each) for count, each in found.items()}
    joins = {**{count: join for count, (_, join, _) in took.items()}, **dict.fromkeys(BEYOND, took[nodes[-1]][1])}
    figures = {f"calibrated_us_{name}": 1e6 * seconds for name, seconds in _parts(machines)}
    for count, join in joins.items():
        own = replace(machines, unit=replace(machines.unit, join=join))
        meant = simulated(load, count, own).found
        figures[f"ms_simulated_{count}"] = middle(meant, load.window)
        figures[f"ms_simulated_mean_{count}"] = response(meant, load.window)
    for count, (ms, join, mean_ms) in took.items():
        figures |= {f"ms_real_{count}": ms, f"ms_real_mean_{count}": mean_ms, f"calibrated_us_pair_{count}": 1e6 * join}
        figures[f"simulated_over_real_{count}"] = figures[f"ms_simulated_{count}"] / ms
    return figures


def _parts(machines: Machines) -> list[tuple[str, float]]:
    return [("hop", machines.unit.hop), ("message", machines.unit.send), ("probe", machines.probe)]


def middle(found: Batch, since: float) -> float:
    """The median response in milliseconds: a busy machine stops a process now and then."""
    return float(1000 * np.median(latencies(found, since)))


def calibrated(load: Load) -> Machines:
    """What a message and a probe take now, beside what a node measures for its pairs: as a simulation of rings of one
    and two nodes needs them to have the response times of real ones, with a predicate that takes no time.
    """
    short = replace(load, rate=5 * load.rate, window=load.window / 5, seconds=load.seconds / 5)
    one, two = (real(short, count, 0.0) for count in (1, 2))
    unit = Unit(join=0.0, send=0.0, hop=hop(300), insert=0.0, purge=0.0)  # the last two are in what a probe takes

    def too_long(ring: Real, count: int, probe: float, send: float) -> float:
        machines = Machines(replace(unit, join=ring.join, send=send), probe=probe)
        meant = simulated(short, count, machines)
        return middle(meant.found, short.window) - middle(ring.found, short.window)

    probe = _root(lambda seconds: too_long(one, 1, seconds, 0.0))
    send = _root(lambda seconds: too_long(two, 2, probe, seconds))
    return Machines(replace(unit, send=send), probe=probe)


def _root(line: Callable[[float], float]) -> float:
    """Where a function that grows, about as a line does, is zero; not below zero.

    >>> round(_root(lambda x: 2 * x - 0.01), 6), _root(lambda x: 2 * x + 1)
    (0.005, 0.0)
    """
    none = line(0.0)
    return max(0.0, -none * 1e-3 / (line(1e-3) - none))


# -- what is seen ------------------------------------------------------------------------------------------------------
def claims(
    figures: Mapping[str, float],
    joins: Joins,
    real_nodes: Sequence[int],
) -> dict[str, bool]:
    of = {name_of(*join): counts for join, counts in joins.items()}
    costs = {cost for *_, cost in joins}
    by_cost = [[figures[f"best_{name_of(3, share, cost)}"] for share in SELECTIVITIES] for cost in costs]
    states = [[figures[f"rows_{name}_{count}"] for count in counts] for name, counts in of.items()]
    return {
        MINIMUM: all(NODES[0] < found < NODES[-1] for each in by_cost for found in each),
        LARGER: all(each == sorted(each) and each[0] < each[-1] for each in by_cost),
        "it moves with the selectivity": all(len(set(each)) > 1 for each in by_cost),
        "the rows that are held are as many with any number of nodes, within 2 %": all(
            max(each) <= 1.02 * min(each) for each in states
        ),
        NEAR: all(abs(figures[f"simulated_over_real_{count}"] - 1) <= LIMIT for count in real_nodes),
    }


def plot(figure: Any, figures: Mapping[str, float], nodes: Sequence[int], real_nodes: Sequence[int], cost: str) -> None:
    """Figures 8a and 8b, and real rings."""
    figure.set_size_inches(10, 4.5)
    times, rows, both = figure.subplots(1, 3)
    for share in SELECTIVITIES:
        name = name_of(3, share, cost)
        times.plot(nodes, [figures[f"ms_{name}_{n}"] for n in nodes], marker="o", label=f"selectivity {share:g}")
        times.axvline(figures[f"eq5_{name}"], linestyle=":", color="gray")
        rows.plot(nodes, [figures[f"rows_{name}_{n}"] for n in nodes], marker="o", label=f"selectivity {share:g}")
    for kind, mark, counts in (("simulated", "s--", (*real_nodes, *BEYOND)), ("real", "o-", real_nodes)):
        both.plot(counts, [figures[f"ms_{kind}_{n}"] for n in counts], mark, label=kind)
    times.set(ylabel="mean response in ms", yscale="log", title="3 ways; dotted: Eq. 5")
    rows.set(ylabel="rows held", ylim=(0, None), title="state")
    both.set(ylabel="median response in ms", ylim=(0, None), title="real, and calibrated here")
    for axes in (times, rows, both):
        axes.set(xlabel="nodes")
        axes.legend(fontsize=6)
    figure.supxlabel("virtual time, service times given; on the right they were measured on this machine", fontsize=6)


RING_LENGTH = Experiment("ring-length", "response time and state of a ring, by its number of nodes", run, "Wang 8a, 8b")
