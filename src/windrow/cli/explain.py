"""``windrow explain``: what a query means and how it would run; with ``--analyze`` it runs, and shows what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from windrow.cli import inputs
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.api.stream import Stream
    from windrow.hosts.analysis import Analysis

WIDEST = 1000
EXAMPLES = "Example: windrow explain top.sql --source packets=parquet:data/packets --progress ts --slack '3 seconds'"


def explain(
    query: inputs.QueryFile,
    source: inputs.Sources,
    progress: inputs.ProgressOption,
    slack: inputs.SlackOption = None,
    punctuation: inputs.PunctuationOption = None,
    parse: inputs.ParseOption = None,
    row_num: inputs.RowNumOption = None,
    row_slack: inputs.RowSlackOption = None,
    schema: inputs.SchemaOption = None,
    delay: inputs.DelayOption = None,
    idle_after: inputs.IdleAfterOption = None,
    shards: inputs.ShardsOption = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The checkpoint to continue from; without it, the first start is shown.")
    ] = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run it in this process, and show the measured cost beside the estimated.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="With --analyze: at most so many rows of each source; 1,000,000.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --analyze: print one JSON object instead.")] = False,
) -> None:
    """Show the logical plan, and the physical plan with map side, exchange and shards. Only --analyze runs anything."""
    text = inputs.read_query(query)
    options = inputs.Options(progress, slack, punctuation, parse, row_num, row_slack, schema, delay, idle_after)
    if analyze:
        if shards is not None or checkpoint is not None:
            raise QueryError("--analyze runs the query in this process: leave out --shards and --checkpoint")
        _analyzed(inputs.query_of_now(text, source, options), limit, as_json)
        return
    if limit is not None or as_json:
        raise QueryError(f"{'--json' if as_json else '--limit'} needs --analyze: explain alone runs nothing")
    with inputs.session_if_needed(source) as spark, TemporaryDirectory() as first:
        built = inputs.query(text, source, options, spark, 1)
        typer.echo(built.explain(shards=shards, checkpoint=checkpoint or first))


def _analyzed(query: Stream, limit: int | None, as_json: bool) -> None:
    console = Console(stderr=True)
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("running", total=1.0)
        found = query.analysis(limit, lambda done: bar.update(task, completed=done))
    if as_json:
        typer.echo(json.dumps(found.as_json()))
        return
    typer.echo(f"{query.explain()}\n")
    _print(_table(found))
    for note in found.notes:
        typer.echo(note)


def _table(found: Analysis) -> Table:
    """Estimates and measurements side by side."""
    table = Table(title="analysis", title_justify="left", box=SIMPLE_HEAD)
    for number, name in enumerate(found.header):
        table.add_column(name.replace(" ", "\n"), justify="right" if number else "left", no_wrap=True)
    for line in found.lines:
        table.add_row(*map(escape, line.cells))
    return table


def _print(table: Table) -> None:
    """All figures as they are, however narrow the terminal is."""
    console = Console()
    needed = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
    Console(width=max(console.width, needed)).print(table)
