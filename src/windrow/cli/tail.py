"""``windrow tail``: the results of a query of a served session, as they come."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from windrow.cli.server import FOLDER, Name, ServerOption
from windrow.cli.tables import show_batch
from windrow.errors import QueryError, WindrowError

EXAMPLES = "Example: windrow tail top --server session --after 41 --json"


def tail(
    name: Name,
    after: Annotated[int, typer.Option(min=-1, help="Begin after this micro-batch; -1: with the first.")] = -1,
    once: Annotated[bool, typer.Option("--once", help="Stop after the results that exist now.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each micro-batch.")] = False,
    server: ServerOption = FOLDER,
) -> None:
    """Print the results of a query, micro-batch by micro-batch, until it is dropped or you interrupt."""
    from windrow.serve.client import connect

    seen = after
    try:
        with connect(server) as client:
            for line in client.results(name, after, follow=not once):
                found = json.loads(line, parse_float=str)  # decimals have more digits than a float
                if "end" in found:
                    _ended(name, found)
                    return
                seen = found["batch"]
                typer.echo(line) if as_json else _show(seen, found["rows"])
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except QueryError:
        raise
    except WindrowError as error:
        advice = f"; to go on where this ended, use --after {seen}" if seen > after else ""
        raise WindrowError(f"{error}{advice}") from None


def _show(batch: int, rows: list[dict[str, Any]]) -> None:
    show_batch(batch, list(rows[0]) if rows else [], [list(row.values()) for row in rows])


def _ended(name: str, found: dict[str, str]) -> None:
    match found["end"]:
        case "dropped":
            typer.echo(f"{name} was dropped", err=True)
        case "failed":
            raise QueryError(f"{name} failed: {found['error']}")
        case "stopped":
            raise WindrowError(f"the session has stopped: {found['error']}")
        case _:
            raise WindrowError("the server was stopped")
