"""ring-table: what ATR, CTR and PSP cost, row by row of the paper's comparison (Wang and Rundensteiner, Figure 7).

The paper says low, middle or high; here are numbers, of the same rows in virtual time. What the first node takes to
decide where rows go is CPU time of this machine.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from windrow.bench.experiment import Experiment, Outcome, afterwards
from windrow.bench.ring_added import CHANGES, added
from windrow.bench.ring_copies import CAPTION, MACHINES, WINDOW, Held, Point, Say, agree, coming, measured, simulated
from windrow.hosts.ring.simulated import Simulation
from windrow.hosts.ring.simulated_machines import Machines
from windrow.hosts.ring.simulated_outcome import Come
from windrow.hosts.ring.simulated_outcome import Outcome as Simulated
from windrow.operators.ring.aligned import Aligning
from windrow.operators.ring.coordinated import WAY, CoordinatedJoin, Coordinating
from windrow.operators.ring.diffusion import Diffusion
from windrow.operators.ring.head import Head
from windrow.operators.ring.joining import PLACE
from windrow.operators.ring.messages import Message
from windrow.operators.ring.routing import HOP
from windrow.operators.ring.sliced_join import BUILD
from windrow.progress import Punctuation
from windrow.spec.names import PROGRESS

Call = Callable[..., Any]
WAYS = {"atr": "ATR", "ctr": "CTR", "psp": "PSP"}
COUNT, SEGMENT, COPIES = 9, 20, 2  # nodes, seconds, nodes that hold a row
# The rows of the paper's table: by name of a figure its title, and what the paper says of ATR, CTR and PSP.
TABLE = {
    "routing_us": ("routing cost: µs of the first node for a row", ("low", "high", "low")),
    "covers": ("routing cost: set covers for a row", ("low", "high", "low")),
    "route_bytes": ("per segment metadata: bytes of routes sent for a row", ("no", "yes", "no")),
    "table_bytes": ("per segment metadata: bytes that the first node knows", ("no", "yes", "no")),
    "skipped": ("duplication removal: copies that probes leave out, for a row", ("no", "yes", "no")),
    "unit_rows": ("load balancing granularity: rows that move at once", ("large", "small", "small")),
    "imbalance": ("load balancing: the busiest node's pairs in a second, over the mean", ("large", "small", "small")),
    "held": ("state management cost: rows held, for each that is needed", ("high", "high", "low")),
    "changes": ("state management cost: inserts and purges for a row", ("high", "high", "low")),
    "sent_bytes": ("network transmission: bytes for a row", ("low", "middle", "high")),
    "messages": ("network transmission: messages for a row", ("low", "middle", "high")),
}

MOVES = afterwards(
    "only PSP can move state at once when a node is added", "by rows that move, not by the time it takes"
)


def run(quick: bool, say: Say) -> Outcome:
    """All rows of the table; ``--quick`` has 24 seconds of the streams, and 60 otherwise."""
    come = coming(24.0 if quick else 60.0)
    figures, points = dict[str, float](), list[Point]()
    for number, (way, title) in enumerate(WAYS.items()):
        say(title, 0.7 * number / len(WAYS))
        found, each = watched(way, COUNT, come)
        figures |= {f"{name}_{way}": value for name, value in found.items()}
        points.append(each)
    for number, (name, (way, relocation)) in enumerate(CHANGES.items()):
        say(f"a node more: {name}", 0.7 + 0.3 * number / len(CHANGES))
        figures |= {f"{key}_{name}": value for key, value in added(way, relocation).items()}
    curves = {MOVES: {f"seconds until the new node has its share, {n}": figures[f"share_s_{n}"] for n in CHANGES}}
    return Outcome(figures, claims(figures, points), lambda figure: plot(figure, figures), curves)


@dataclass
class Counts:
    """What is counted while a simulation runs."""

    routing: float = 0.0
    covers: int = 0
    route_bytes: int = 0
    skipped: int = 0
    units: list[int] = field(default_factory=list)  # rows of each piece of state that goes to a node of its own
    pairs: list[list[int]] = field(default_factory=list)  # by second those of each node, since the beginning

    def look(self, simulation: Simulation) -> None:
        """Once a second, when the windows are full."""
        if simulation.now >= WINDOW + len(self.pairs):
            self.pairs.append([node.work.pairs for node in simulation.nodes])

    def timed(self, call: Call) -> Call:
        """The same, with its CPU time added to that of routing."""

        def timing(*args: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*args, **named)
            finally:
                self.routing += time.thread_time() - began

        return timing

    def counted(self, call: Call) -> Call:
        """Of ``Routing.route``: each hop is a set cover."""

        def counting(*args: Any, **named: Any) -> Any:
            route = call(*args, **named)
            self.covers += route[HOP].n_unique()
            return route

        return counting

    def compared(self, node: CoordinatedJoin, call: Call) -> Call:
        """Of ``_meets``: the pairs that a node could look at, and does not, because another one has these rows, too."""

        def comparing(rows: Any, seen: Any, target: int, runs: Any) -> Any:
            place, before = rows[PLACE].to_numpy(), seen[str(target)].to_numpy()
            low = node.since(target, before, seen[PROGRESS].to_numpy())[place]
            high = node.slices[target].places(before)[place]
            found = call(rows, seen, target, runs)
            self.skipped += int(np.maximum(high - low, 0).sum() - np.maximum(found[2] - found[1], 0).sum())
            return found

        return comparing

    def sent(self, message: Message) -> None:
        """What goes over the network beside rows, and state that goes to a node."""
        if WAY in message.frames:
            self.route_bytes += message.frames[WAY].size()
        self.units += [rows.frame.height for name, rows in message.frames.items() if name.startswith(BUILD)]


@dataclass(frozen=True)
class Counting(Machines):
    """Machines that count what they send."""

    counts: Counts = field(default_factory=Counts)

    def size(self, message: Message) -> int:
        self.counts.sent(message)
        return super().size(message)


# -- one run -----------------------------------------------------------------------------------------------------------
def watched(way: str, nodes: int, come: Sequence[Come]) -> tuple[dict[str, float], Point]:
    """One run of a way, and its column of the table."""
    held, counts = Held(), Counts()

    def look(simulation: Simulation) -> None:
        held.look(simulation)
        counts.look(simulation)

    machines = Counting(**{each.name: getattr(MACHINES, each.name) for each in fields(MACHINES)}, counts=counts)
    arguments = {"segment": SEGMENT, "copies": COPIES} if way == "atr" else {"copies": COPIES}
    name = "ring" if way == "psp" else way
    simulation = simulated(name, nodes, come, machines=machines, watch=look, **arguments)
    head = simulation.ring.head
    assert head is not None
    instrumented(simulation, counts)
    outcome = simulation.run()
    known = len(json.dumps({key: value for key, value in head.known().items() if key != "tuning"}))
    if isinstance(head, Aligning):
        counts.units = of_segments(come, 0 if head.alignment is None else head.alignment.master)
    rows = sum(not isinstance(each.item, Punctuation) for each in come)
    return column(outcome, held, counts, known, rows), measured(outcome, held)


def instrumented(simulation: Simulation, counts: Counts) -> None:
    """Time what decides where rows go, and count what it decides."""
    head = simulation.ring.head
    assert isinstance(head, Head | Diffusion)
    replaced(head.tuning, "next", counts.timed)
    if isinstance(head, Aligning):
        for name in ("_nodes", "_aligned"):
            replaced(head, name, counts.timed)
    if isinstance(head, Coordinating):
        for name in ("store", "expire"):
            replaced(head.routing, name, counts.timed)
        replaced(head.routing, "route", lambda call: counts.counted(counts.timed(call)))
    for node in simulation.nodes:
        if isinstance(node, CoordinatedJoin):
            replaced(node, "_meets", partial(counts.compared, node))


def replaced(thing: object, name: str, change: Callable[[Call], Call]) -> None:
    """A method of one object does something else from now on."""
    vars(thing)[name] = change(getattr(thing, name))


def of_segments(come: Sequence[Come], master: int) -> list[int]:
    """Rows of the master in each whole segment."""
    times = [each.at for each in come if each.port == master and not isinstance(each.item, Punctuation)]
    by_segment = Counter(int(at // SEGMENT) for at in times)
    return [rows for number, rows in by_segment.items() if (number + 1) * SEGMENT <= times[-1]] or [len(times)]


def column(outcome: Simulated, held: Held, counts: Counts, known: int, rows: int) -> dict[str, float]:
    """One way's figures of the table."""
    seconds = np.diff(np.array(counts.pairs), axis=0)
    worked = seconds[seconds.sum(axis=1) > 0]
    found = {
        "routing_us": 1e6 * counts.routing / rows,
        "covers": counts.covers / rows,
        "route_bytes": counts.route_bytes / rows,
        "table_bytes": known,
        "skipped": counts.skipped / rows,
        "unit_rows": float(np.mean(counts.units)),
        "imbalance": float(np.mean(worked.max(axis=1) / worked.mean(axis=1))),
        "held": 1 + float(np.mean(np.array(held.copies) / np.array(held.needed))),
        "changes": sum(work.inserted + work.purged for work in outcome.work) / rows,
        "sent_bytes": sum(outcome.sent.values()) / rows,
        "messages": sum(work.sent for work in outcome.work) / rows,
    }
    return {name: round(value, 2) for name, value in found.items()}


# -- what is claimed ---------------------------------------------------------------------------------------------------
def claims(figures: Mapping[str, float], points: Sequence[Point]) -> dict[str, bool]:
    """The paper's words as an order of numbers. Inserts and purges are the other way round: a row of PSP enters and
    leaves every node on its way, which its cost model has once.
    """

    def of(name: str) -> tuple[float, float, float]:
        atr, ctr, psp = (figures[f"{name}_{way}"] for way in WAYS)
        return atr, ctr, psp

    (route_atr, route_ctr, route_psp), (unit_atr, unit_ctr, unit_psp) = of("routing_us"), of("unit_rows")
    (bytes_atr, bytes_ctr, bytes_psp), (skip_atr, skip_ctr, skip_psp) = of("route_bytes"), of("skipped")
    (held_atr, held_ctr, held_psp), (sent_atr, sent_ctr, sent_psp) = of("held"), of("sent_bytes")
    changes_atr, changes_ctr, changes_psp = of("changes")
    return {
        "routing costs most in CTR": route_ctr > max(route_atr, route_psp),
        "only CTR sends routes with its segments": bytes_ctr > 0 == bytes_atr == bytes_psp,
        "only in CTR probes have to leave out copies": skip_ctr > 0 == skip_atr == skip_psp,
        "what moves at once is larger in ATR, ten times or more": unit_atr >= 10 * max(unit_ctr, unit_psp),
        "ATR and CTR hold more rows than are needed, and PSP does not": min(held_atr, held_ctr) > held_psp == 1,
        "other than in the paper, PSP inserts and purges most": changes_psp > max(changes_atr, changes_ctr),
        MOVES: figures["moved_rows_psp_aggressive"] > 0
        and all(figures[f"moved_rows_{name}"] == 0 for name in CHANGES if name != "psp_aggressive"),
        "ATR sends the fewest bytes, and PSP the most": sent_atr < sent_ctr < sent_psp,
        "all find the same": agree(points),
    }


def plot(figure: Any, figures: Mapping[str, float]) -> None:
    """The table, with the paper's words."""
    axes = figure.subplots()
    axes.axis("off")
    cells = [
        [title, *(f"{figures[f'{name}_{way}']:,.2f} ({word})" for way, word in zip(WAYS, words, strict=True))]
        for name, (title, words) in TABLE.items()
    ]
    for relocation, titles in (("passive", "state follows"), ("aggressive", "at once, if possible")):
        names = [f"{way}_{relocation}" for way in WAYS]
        moved = [f"{figures[f'moved_rows_{n}']:g} rows, {figures[f'share_s_{n}']:g} s" for n in names]
        cells.append([f"adaptation cost: a node is added, {titles}", *moved])
    table = axes.table(cells, colLabels=["", *WAYS.values()], colWidths=[0.55, 0.15, 0.15, 0.15], loc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(6)
    figure.supxlabel(CAPTION, fontsize=6)


RING_TABLE = Experiment(
    "ring-table", "routing, metadata, state, network and adaptation of ATR, CTR and PSP, in numbers", run, "Wang 7"
)
