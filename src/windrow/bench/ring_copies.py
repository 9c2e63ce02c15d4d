"""What ring-atr, ring-ctr and ring-table have in common: joins with copies of the state, and the ring, simulated.

The streams are those of the paper (Wang and Rundensteiner, 8.2 and 8.3), but for their rate: with 50 rows a second a
row is compared with 25,500 others, 3.8 million comparisons of images in each second, and the one node that is at work
in ATR would have a quarter of a microsecond for each. With ten it has 30.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.bench.virtual import poisson
from windrow.hosts.ring.simulated import Simulation
from windrow.hosts.ring.simulated_machines import Machines
from windrow.hosts.ring.simulated_outcome import CAME, FOUND, Come
from windrow.hosts.ring.simulated_outcome import Outcome as Simulated
from windrow.operators.ring.costs import Unit
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import WAYS
from windrow.progress import Punctuation
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS
from windrow.windows.multiway import Ranges

MICROS = 1_000_000
NAMES = "abc"
WINDOW, RATE, HITS = 10, 10.0, 10  # seconds; rows of each stream a second; one pair in ten is true
ORDERS = ((1, 2), (0, 2), (1, 0))  # how rows of each stream probe the others: along the chain of conditions
NODES = (4, 9, 14, 19)
PIXELS = 5000  # of the paper's small images; three bytes each
# The mean difference of two such images takes 15 us in NumPy; the other costs are about those of ring-speed.
MACHINES = Machines(Unit(join=20e-6), row_bytes=3 * PIXELS, byte=2e-9)
SEED = 17
CAPTION = "virtual time: a pair takes 20 µs, a message 30 µs, a hop 60 µs, 1 Gbit/s; 10 rows a second"
Say = Callable[[str, float], None]
Series = pl.Series


def alike(x: Series, y: Series) -> NDArray[np.bool_]:
    """True for one pair in HITS, whichever it is: as the paper's probes that are controlled by probability."""
    mixed = (x.to_numpy() * 7919 + y.to_numpy() * 6101) * 2654435761 % (1 << 31)
    return np.asarray(mixed % (HITS * 1000) < 1000)


def joining() -> Joining:
    """Three streams in a chain."""
    tests = tuple(
        Check((x, y), function=Function("alike", alike, (x, y), pl.Boolean(), vectorized=True)) for x, y in ("ab", "bc")
    )
    return Joining(Ranges((WINDOW * MICROS,) * 3), tuple((name,) for name in NAMES), tests)


def coming(seconds: float, rate: float = RATE) -> list[Come]:
    """Rows of three Poisson streams. Each comes with a promise of all streams, so that none waits for another."""
    rng = np.random.default_rng(SEED)
    streams = range(len(NAMES))
    # In microseconds, and no two rows of different streams at the same time.
    times = [(at // 3000 * 3 + port, port) for port in streams for at in poisson(rate, seconds, SEED + port)]
    found = list[Come]()
    for at, port in sorted(times):
        row = pl.DataFrame({PROGRESS: [at], NAMES[port]: [int(rng.integers(1 << 20))]})
        found.append(Come(at / MICROS, port, row))
        found += [Come(at / MICROS, each, Punctuation(at + 1)) for each in streams]
    return found


@dataclass
class Held:
    """Rows at all nodes together, once a second when the windows are full. ``copies``: those that belong to another
    node, too; a row of PSP that has gone on, and is still there for rows that are on their way, belongs to one.
    """

    rows: list[int] = field(default_factory=list)
    needed: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)

    def look(self, simulation: Simulation) -> None:
        """What a simulation calls after each piece of work."""
        if simulation.now < WINDOW + len(self.rows):
            return
        rows = needed = copies = 0
        for of in zip(*(node.slices for node in simulation.nodes), strict=True):
            numbers = np.concatenate([state.numbers[state.numbers >= state.start] for state in of])
            own = len(np.unique(numbers))
            rows, needed, copies = rows + sum(s.height for s in of), needed + own, copies + len(numbers) - own
        self.rows.append(rows)
        self.needed.append(needed)
        self.copies.append(copies)


@dataclass(frozen=True)
class Point:
    """``response``: the mean milliseconds from the last row of a result to the result; ``rows``, ``copies``: held at
    all nodes together on average; ``results``: how many of them, and their sum.
    """

    response: float
    rows: float
    copies: float
    results: tuple[int, int]


def simulated(
    way: str,
    nodes: int,
    come: Sequence[Come],
    *,
    segment: int | None = None,
    copies: int = 2,
    machines: Machines = MACHINES,
    watch: Callable[[Simulation], None] | None = None,
) -> Simulation:
    """A join in virtual time. ``segment`` in seconds."""
    length = None if segment is None else segment * MICROS
    wishes = Wishes(nodes, nodes, segment=length, copies=copies, ordered=ORDERS)
    return Simulation(joining(), wishes, come, machines, WAYS[way], watch=watch)


def point(way: str, nodes: int, come: Sequence[Come], *, segment: int | None = None, copies: int = 2) -> Point:
    """Of one run, when the windows are full."""
    held = Held()
    return measured(simulated(way, nodes, come, segment=segment, copies=copies, watch=held.look).run(), held)


def measured(outcome: Simulated, held: Held) -> Point:
    """What the figures have of a run."""
    found = outcome.found.filter(pl.col(CAME) >= WINDOW)
    response = float((found[FOUND] - found[CAME]).mean() or 0.0)  # type: ignore[arg-type]
    values = sum(int(outcome.found[name].sum()) for name in NAMES)
    return Point(1e3 * response, float(np.mean(held.rows)), float(np.mean(held.copies)), (outcome.found.height, values))


def figures_of(name: str, each: Point) -> dict[str, float]:
    """By the name of what was run."""
    return {
        f"ms_{name}": round(each.response, 3),
        f"rows_{name}": round(each.rows, 1),
        f"copies_{name}": round(each.copies, 1),
    }


def agree(points: Sequence[Point]) -> bool:
    """Whether all have found the same, and something at all."""
    return len({each.results for each in points}) == 1 and points[0].results[0] > 0


def ring(nodes: Sequence[int], come: Sequence[Come], say: Say, share: float) -> tuple[dict[str, float], list[Point]]:
    """PSP, beside the others."""
    figures, points = dict[str, float](), list[Point]()
    for number, each in enumerate(nodes):
        say(f"PSP, {each} nodes", share * number / len(nodes))
        points.append(point("ring", each, come))
        figures |= figures_of(f"psp_{each}", points[-1])
    return figures, points


def lines(figure: Any, figures: Mapping[str, float], series: Mapping[str, tuple[str, Sequence[int]]]) -> Any:
    """Response and state by nodes, and one more panel. ``series``: by label the name of its figures, and its nodes."""
    responses, states, more = figure.subplots(1, 3)
    for label, (name, nodes) in series.items():
        style = "k--" if name == "psp" else "o-"
        for axes, what in ((responses, "ms"), (states, "rows")):
            axes.plot(nodes, [figures[f"{what}_{name}_{n}"] for n in nodes], style, label=label)
    responses.set(ylabel="mean response in ms", yscale="log")
    states.set(ylabel="rows at all nodes", ylim=(0, None))
    for axes in (responses, states):
        axes.set(xlabel="nodes")
        axes.legend(fontsize=6)
    figure.supxlabel(CAPTION, fontsize=6)
    return more
