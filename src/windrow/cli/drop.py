"""``windrow drop``: end a query of a served session."""

from __future__ import annotations

import typer

from windrow.cli.server import FOLDER, Name, ServerOption


def drop(name: Name, server: ServerOption = FOLDER) -> None:
    """Drop a query of a served session, with its state. The others go on."""
    from windrow.serve.client import connect

    with connect(server) as client:
        client.drop(name)
    typer.echo(f"dropped {name}")
