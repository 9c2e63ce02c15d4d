"""ring-adapt: response times of a ring when rates double, with and without adaptation (Wang and Rundensteiner,
Figures 8g and 8h). All of it is in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.ring_load import Load, response, response_by
from windrow.hosts.ring.simulated import Simulation
from windrow.hosts.ring.simulated_machines import Machines
from windrow.hosts.ring.simulated_outcome import Come
from windrow.hosts.ring.simulated_outcome import Outcome as Simulated
from windrow.operators.ring.costs import Streams, Unit, best
from windrow.operators.ring.layout import Wishes

# Of the paper 50 and then 100 rows a second and windows of 10 s; here windows have 20 and then 40 rows.
RATE, WINDOW, SELECTIVITY, WAYS = 2.5, 8.0, 0.1, 3
UNIT = Unit(join=2e-3, hop=1e-3)
MOST = 19
MACHINES = Machines(UNIT, byte=1e-9, row_bytes=15_000)
STREAMS = Streams((RATE,) * WAYS, (WINDOW,) * WAYS, (SELECTIVITY,) * WAYS)
FIXED = best(STREAMS, UNIT, MOST)  # the length of Eq. 5 for the first rate
SWING = 1.8  # of the mean rate in one quarter of a window, and the rest of it in the next one
STABLE = 6.0  # times the response before the change; a row has more than three times the work after it
LEFT = 0.25  # of a window
ADAPTS = afterwards(
    "with adaptation the response stays stable: at most 6 times what it was at half of the rate", "6 instead of 4 times"
)
LEAVES = afterwards(
    "nodes that leave hold nothing after a round if relocation is aggressive, else for more than a quarter of a window",
    "a quarter instead of half",
)
Say = Callable[[str, float], None]

ADAPTED = {
    "fixed": Wishes(MOST, FIXED, "time", unit=UNIT),
    "smoothed": Wishes(MOST, FIXED, "count", unit=UNIT),
    "passive": Wishes(MOST, None, "count", "passive", unit=UNIT),
    "aggressive": Wishes(MOST, None, "count", "aggressive", unit=UNIT),
}
TITLES = {
    "fixed": "slices of time, fixed",
    "smoothed": "slices of as many rows",
    "passive": "and as many nodes as cost least, passive",
    "aggressive": "the same, aggressive",
}


@dataclass(frozen=True)
class Times:
    """``change``: when rates double; ``end``; ``edges``: between which responses are averaged."""

    change: float
    end: float

    @property
    def edges(self) -> list[float]:
        half = WINDOW / 2
        return [half * step for step in range(2, round(self.end / half) + 1)]


def run(quick: bool, say: Say) -> Outcome:
    """Both figures; with ``--quick`` rows come for half as long."""
    times = Times(2 * WINDOW, 5 * WINDOW) if quick else Times(4 * WINDOW, 10 * WINDOW)
    figures: dict[str, float] = {"nodes_fixed": FIXED}
    lines: dict[str, list[float]] = {}
    for i, name in enumerate(ADAPTED):
        say(f"rates double, {name}", i / 8)
        found, lines[name] = doubled(name, times)
        figures |= found
    for i, smoothing in enumerate(("time", "count")):
        say(f"rates swing, slices by {smoothing}", 0.5 + i / 8)
        figures |= swinging(smoothing, times)
    for i, relocation in enumerate(("passive", "aggressive")):
        say(f"nodes join and leave, {relocation}", 0.75 + i / 8)
        figures |= relocated(relocation, times)
    curves = {
        ADAPTS: {TITLES[name]: figures[f"times_{name}"] for name in ADAPTED},
        LEAVES: {f"windows, {name}": figures[f"leave_windows_{name}"] for name in ("passive", "aggressive")},
    }
    return Outcome(figures, claims(figures), lambda figure: plot(figure, figures, lines, times), curves)


# -- rates double ------------------------------------------------------------------------------------------------------
def doubled(name: str, times: Times) -> tuple[dict[str, float], list[float]]:
    """Responses before the change, and in the last window; and over time."""
    load = Load(WAYS, SELECTIVITY, RATE, WINDOW, times.end, ((times.change, 2 * RATE),))
    outcome = simulated(load, ADAPTED[name])
    before = response(outcome.found.filter(outcome.found["@came"] < times.change), WINDOW)
    last = response(outcome.found, times.end - WINDOW)
    earlier = response_by(outcome.found, [times.end - 2 * WINDOW, times.end - WINDOW])[0]
    found = {f"ms_before_{name}": before, f"ms_last_{name}": last, f"grows_{name}": last / earlier}
    found |= {f"times_{name}": last / before, f"nodes_last_{name}": outcome.rounds[-1].nodes}
    return found, response_by(outcome.found, times.edges)


def simulated(load: Load, wishes: Wishes) -> Simulated:
    return Simulation(load.joining(), wishes, load.come(), MACHINES).run()


# -- rates swing -------------------------------------------------------------------------------------------------------
def swinging(smoothing: str, times: Times) -> dict[str, float]:
    """The mean rates of the first half all the time, but not evenly: busy and idle quarters of a window in turn."""
    steps = range(1, round(4 * times.end / WINDOW))
    later = tuple((step * WINDOW / 4, RATE * (2 - SWING if step % 2 else SWING)) for step in steps)
    load = Load(WAYS, SELECTIVITY, SWING * RATE, WINDOW, times.end, later)
    wishes = replace(ADAPTED["fixed" if smoothing == "time" else "smoothed"])
    outcome = simulated(load, wishes)
    busy = outcome.busy[:FIXED]
    return {
        f"swing_ms_{smoothing}": response(outcome.found, WINDOW),
        f"swing_most_rows_{smoothing}": max(outcome.most),
        f"swing_busiest_{smoothing}": max(busy) * len(busy) / sum(busy),
    }


# -- nodes join and leave ----------------------------------------------------------------------------------------------
def relocated(relocation: str, times: Times) -> dict[str, float]:
    """Half as many nodes as before, or twice as many: the response in the window after it, and how long nodes that
    have left still hold rows.
    """
    load, change = Load(WAYS, SELECTIVITY, RATE, WINDOW, times.change + WINDOW), times.change
    come = load.come()
    found: dict[str, float] = {}
    for name, before, after in (("join", FIXED, 2 * FIXED), ("leave", 2 * FIXED, FIXED)):
        wishes = replace(ADAPTED["smoothed"], relocation=relocation, most=2 * FIXED)  # type: ignore[arg-type]
        first = Simulation(load.joining(), replace(wishes, nodes=before), _until(come, change), MACHINES)
        first.run()
        gone = Gone(after)
        second = Simulation(load.joining(), replace(wishes, nodes=after), _since(come, change), MACHINES, watch=gone)
        second.restore(first.snapshot())
        outcome = second.run()
        found[f"{name}_ms_{relocation}"] = response(outcome.found, change)
        if name == "leave":
            found[f"leave_windows_{relocation}"] = (gone.last - change) / WINDOW
    return found


@dataclass
class Gone:
    """When a node beyond the first so many has held rows for the last time."""

    nodes: int
    last: float = 0.0

    def __call__(self, simulation: Simulation) -> None:
        if any(state.live for node in simulation.nodes[self.nodes :] for state in node.slices):
            self.last = simulation.now


def _until(come: Sequence[Come], at: float) -> list[Come]:
    return [each for each in come if each.at < at]


def _since(come: Sequence[Come], at: float) -> list[Come]:
    return [each for each in come if each.at >= at]


# -- what is seen ------------------------------------------------------------------------------------------------------
def claims(figures: Mapping[str, float]) -> dict[str, bool]:
    return {
        ADAPTS: all(figures[f"times_{name}"] <= STABLE for name in ("passive", "aggressive")),
        "without, it does not: more than 10 times, and it still grows": (
            figures["times_fixed"] > 10 and figures["grows_fixed"] > 1.2
        ),
        "if rates swing within a window, slices of as many rows are more even than slices of time, and faster": (
            figures["swing_busiest_count"] < figures["swing_busiest_time"]
            and figures["swing_ms_count"] < figures["swing_ms_time"]
        ),
        LEAVES: figures["leave_windows_aggressive"] < 0.1 and figures["leave_windows_passive"] > LEFT,
    }


def plot(figure: Any, figures: Mapping[str, float], lines: Mapping[str, Sequence[float]], times: Times) -> None:
    """Figures 8g and 8h in one, and what slices and relocation do."""
    figure.set_size_inches(10, 4.5)
    over, swing, moved = figure.subplots(1, 3, width_ratios=(2, 1, 1.4))
    for name, line in lines.items():
        over.plot(times.edges[:-1], line, label=TITLES[name])
    over.axvline(times.change, color="gray", linestyle=":")
    over.set(xlabel="seconds", ylabel="mean response in ms", yscale="log", title="rates double")
    over.legend(fontsize=6, loc="lower right")
    swing.bar(["slices of\ntime", "of as\nmany rows"], [figures[f"swing_ms_{name}"] for name in ("time", "count")])
    swing.set(ylabel="mean response in ms", title="rates swing")
    bars = [(name, kind) for name in ("join", "leave") for kind in ("passive", "aggressive")]
    moved.bar(["\n".join(each) for each in bars], [figures["{}_ms_{}".format(*each)] for each in bars])
    moved.set(ylabel="mean response in ms", title="nodes join or leave")
    moved.tick_params(axis="x", labelsize=6)
    figure.supxlabel("virtual time, service times given", fontsize=6)


RING_ADAPT = Experiment("ring-adapt", "response times of a ring when rates double", run, "Wang 8g, 8h")
