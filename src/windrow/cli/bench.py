"""``windrow bench``: run an experiment, print a table, save a plot and the figures."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from windrow.bench import EXPERIMENTS, Experiment, Outcome
from windrow.bench.gallery import write_gallery
from windrow.errors import QueryError, listing


def bench(
    name: Annotated[str | None, typer.Argument(help="The experiment to run, or all.", show_default=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less data, for a first look.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    out: Annotated[Path, typer.Option(help="Where the PNG and JSON files go.")] = Path("bench-results"),
) -> None:
    """Run an experiment. Exit code 1 if a claim does not hold."""
    if list_all or name is None:
        for experiment in EXPERIMENTS.values():
            typer.echo(f"{experiment.name:<20} {experiment.paper:<16} {experiment.about}")
        return
    if name != "all" and name not in EXPERIMENTS:
        raise QueryError(f"unknown experiment {name!r}; available: {listing(EXPERIMENTS)}, all")
    chosen = list(EXPERIMENTS.values()) if name == "all" else [EXPERIMENTS[name]]
    hold = True
    for done, experiment in enumerate(chosen):
        hold = all(_run(experiment, quick, as_json, out).holds.values()) and hold
        if name == "all":  # after each one, so that it exists even if a later one fails
            page = write_gallery(chosen[: done + 1], out)
    if name == "all":
        typer.echo(f"gallery: {page}", err=True)
    if not hold:
        raise typer.Exit(1)


def _run(experiment: Experiment, quick: bool, as_json: bool, out: Path) -> Outcome:
    began = time.perf_counter()
    console = Console(stderr=True)
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(experiment.name, total=1.0)
        outcome = experiment.run(quick, lambda text, done: bar.update(task, description=text, completed=done))
        bar.update(task, description=experiment.name, completed=1.0)
    seconds = time.perf_counter() - began
    table = Table("figure", "value", title=f"{experiment.name} ({seconds:.0f} s)")
    for figure, value in outcome.figures.items():
        table.add_row(figure, f"{value:,}")
    for figure in outcome.not_measured:
        table.add_row(figure, "not measured")
    for claim, holds in outcome.holds.items():
        table.add_row(claim, "[green]holds[/]" if holds else "[red]does not hold[/]")
        for point, value in outcome.curves.get(claim, {}).items():
            table.add_row(f"    {point}", f"{value:,}")
    console.print(table)
    found = {"name": experiment.name, "figures": outcome.figures, "holds": outcome.holds, "seconds": round(seconds, 1)}
    if outcome.not_measured:
        found["not_measured"] = outcome.not_measured
    if outcome.curves:
        found["curves"] = outcome.curves
    _save(experiment, outcome, found, out)
    if as_json:
        typer.echo(json.dumps(found))
    return outcome


def _save(experiment: Experiment, outcome: Outcome, found: dict[str, object], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{experiment.name}.json").write_text(json.dumps(found, indent=1) + "\n")
    if outcome.plot is not None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        outcome.plot(figure)
        figure.suptitle(experiment.name)
        figure.savefig(out / f"{experiment.name}.png", dpi=120)
