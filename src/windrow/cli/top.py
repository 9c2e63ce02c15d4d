"""``windrow top``: how a query is doing, live in the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windrow.errors import CheckpointError, WindrowError
from windrow.hosts.figures import Figures, figures_of

EXAMPLES = "Example: windrow top state --once"
Latest = Callable[[], Mapping[str, Any] | None]


def top(
    where: Annotated[
        str,
        typer.Argument(
            help="A checkpoint; the folder of a session; or the URL of windrow serve or of run --metrics.",
            show_default=False,
        ),
    ],
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show the last micro-batch, and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each micro-batch instead of tables.")
    ] = False,
) -> None:
    """Watch a query: rates, promises, lag and disorder of its streams, rows and state of its operators, its results.

    It reads what each micro-batch leaves behind, and slows nothing down. Interrupt it to end.
    """
    latest = source_of(where)
    try:
        if once or as_json:
            _lines(latest, once, as_json, interval)
        else:
            _live(latest, interval)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def source_of(where: str) -> Latest:
    """What tells of the last micro-batch."""
    if where.startswith(("http://", "https://")):
        from windrow.serve.client import report_at

        return lambda: report_at(where)
    from windrow.hosts.spark.reports import folder_of, last_written

    folder = folder_of(where)
    if not isinstance(folder, Path):
        raise WindrowError(
            f"{where} is not a folder of this machine, where each micro-batch would leave its figures: give the URL of "
            "windrow serve, or of windrow run --metrics PORT, on the machine of the driver"
        )
    return lambda: last_written(folder)


def _news(latest: Latest, interval: float, once: bool) -> Iterator[Figures]:
    """The figures of each micro-batch, as it comes."""
    seen: Any = None
    while True:
        written = latest()
        if written is not None and (mark := (written["batch"], written["began"])) != seen:
            seen = mark
            yield figures_of(written)
        elif once and written is None:
            raise CheckpointError(
                "no micro-batch has left its figures yet. A query on Spark does once it knows its checkpoint: "
                "to_spark(checkpoint=DIR), or windrow run --checkpoint DIR"
            )
        if once:
            return
        time.sleep(interval)


def _lines(latest: Latest, once: bool, as_json: bool, interval: float) -> None:
    for found in _news(latest, interval, once):
        if as_json:
            typer.echo(json.dumps(found.as_json()))
        else:
            Console().print(screen(found))


def _live(latest: Latest, interval: float) -> None:
    with Live(Text("waiting for the first micro-batch"), refresh_per_second=4) as live:
        for found in _news(latest, interval, once=False):
            live.update(screen(found))


def screen(found: Figures) -> Group:
    """All figures as tables."""
    head = (
        f"micro-batch {found.batch}, {found.seconds:,.1f} s from promise to output, {found.results:,} results "
        f"({found.rate:,.0f}/s), {sum(found.late.values()):,} late, {sum(found.bad.values()):,} bad, "
        f"{found.state / 1024:,.0f} KiB of state"
    )
    streams = Table("stream", "rows", "rows/s", "promise", "lag", "disorder")
    for s in found.streams:
        streams.add_row(Text(s.name), f"{s.rows:,}", f"{s.rate:,.0f}", s.promise, _number(s.lag), _number(s.disorder))
    operators = Table("operator", "rows in", "in/s", "rows out", "out/s", "held", "state", "algorithm")
    for o in found.operators:
        rates = f"{o.rate_in:,.0f}", f"{o.rate_out:,.0f}"
        cells = (f"{o.rows_in:,}", rates[0], f"{o.rows_out:,}", rates[1], f"{o.held:,}" if o.held else "")
        operators.add_row(Text(o.name), *cells, f"{o.state:,}" if o.state else "", o.algorithm)
    queries = Table("query", "results")
    for name, count in found.queries.items():
        queries.add_row(Text(name), f"{count:,}")
    return Group(Text(head), streams, operators, *([queries] if found.queries else []))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.15g}"
