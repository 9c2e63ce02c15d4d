"""``windrow calibrate``: measure what joins cost on this machine, for the planner."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from windrow.errors import QueryError
from windrow.operators.joins.costs import Unit
from windrow.operators.ring.costs import Unit as RingUnit
from windrow.planner.choose.calibrated import NONE, PLACE, machine, place, ring_seconds, write
from windrow.planner.choose.measured_costs import NANO, Stopwatch, measured
from windrow.planner.choose.measured_ring import measured_ring

EXAMPLES = "Examples: windrow calibrate. Or for many machines that are alike: windrow calibrate --out costs.json"
SAYS = {
    "scan": "C_n: a row that nested loops look at",
    "chase": "C_h: a row in a bucket",
    "enter": "to find a bucket",
    "chain": "to put a row into a bucket, and to take it out",
    "pair": "a pair that is not found in the order of runs, beyond one that is",
    "keep": "to put a row behind others",
    "sort": "a row of a batch that is sorted, for each doubling of the batch",
    "gallop": "a step of the search in a sorted run",
    "merge": "to merge a row into a larger run",
    "call": "a batch, in a table or list",
    "run": "a batch, in each sorted run",
}
OF_A_RING = {
    "send": "T_s: to send and receive a row of 1 KB, in a train of 64",
    "hop": "T_n: a message from one process of this machine to another",
    "insert": "T_i: to put a row into a slice",
    "purge": "T_p: to take it out",
}
HOPS = 2000


def calibrate(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was measured as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write it there instead of the cache folder.")] = None,
) -> None:
    """Measure the unit costs by which joins decide how to keep rows, and how many nodes a ring has, and keep them for
    the planner (ten seconds).

    They are in the user's cache folder, and used by queries that are planned on this machine. WINDROW_CALIBRATION names
    another file, or is none for the constants that Windrow comes with.
    """
    file = out or place()
    if file is None:
        raise QueryError(f"{PLACE} is {NONE}: the planner would not read what is measured. Unset it, or give --out")
    console = Console(stderr=True)
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("calibrate", total=1.0)
        unit = measured(Stopwatch(), lambda text, done: bar.update(task, description=f"{text:<8}", completed=done))
        bar.update(task, description="ring", completed=1.0)
        ring = measured_ring(Stopwatch(), _hop)
        bar.update(task, description="calibrate", completed=1.0)
    write(unit, file, ring)
    if as_json:
        known = {"file": str(file), "machine": machine(), "nanoseconds": asdict(unit)}
        typer.echo(json.dumps({**known, "ring_seconds": ring_seconds(ring)}))
    else:
        console.print(_table(unit, ring, file))


def _hop() -> float:
    from windrow.bench.ring_real import hop

    return hop(HOPS)


def _table(unit: Unit, ring: RingUnit, file: Path) -> Table:
    table = Table("cost", "ns", "reference", "of", title=f"{machine()}\n{file}")
    usual = asdict(Unit())
    for name, cost in asdict(unit).items():
        table.add_row(name, f"{cost:,.1f}", f"{usual[name]:,.1f}", SAYS[name])
    reference = ring_seconds(RingUnit())
    for name, seconds in ring_seconds(ring).items():
        table.add_row(f"ring {name}", f"{seconds * NANO:,.0f}", f"{reference[name] * NANO:,.0f}", OF_A_RING[name])
    return table
