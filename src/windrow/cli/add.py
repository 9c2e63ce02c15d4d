"""``windrow add``: a new query for a served session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windrow.cli import inputs
from windrow.cli.server import FOLDER, Name, ServerOption

EXAMPLES = "Example: windrow add top top.sql --server session"


def add(
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="A file with one SQL query.", show_default=False)] = None,
    sql: Annotated[str | None, typer.Option("-e", "--sql", help="The query itself, instead of a file.")] = None,
    server: ServerOption = FOLDER,
) -> None:
    """Add a query to a served session. It starts with the next micro-batch."""
    from windrow.serve.client import connect

    if (file is None) == (sql is None):
        raise typer.BadParameter("give either a file with the query or -e SQL")
    text = sql if file is None else inputs.read_query(file)
    assert text is not None
    with connect(server) as client:
        added = client.add(name, text)
    first = added.get("first_batch")
    typer.echo(f"added {name}" + (f", from micro-batch {first}" if first is not None else ""))
