"""``windrow list``: the queries of a served session."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windrow.cli.server import FOLDER, ServerOption

COUNTS = ("rows_out", "rows_late", "rows_bad")


def list_queries(
    server: ServerOption = FOLDER,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the queries of a served session: how they are doing, and why those that failed did."""
    from windrow.serve.client import connect

    with connect(server) as client:
        found = client.queries()
    if as_json:
        typer.echo(json.dumps({"queries": found}))
        return
    table = Table("name", "status", "from micro-batch", "results", "late", "bad", "query")
    for query in found:
        about = Text(" ".join(query["query"].split()))
        if query["error"]:
            about.append(f"\n{query['error']}", style="red")
        first = "" if query["first_batch"] is None else str(query["first_batch"])
        table.add_row(Text(query["name"]), query["status"], first, *(f"{query[c]:,}" for c in COUNTS), about)
    Console().print(table)
