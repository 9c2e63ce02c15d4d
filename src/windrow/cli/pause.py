"""``windrow pause``: stop a query of a served session for now."""

from __future__ import annotations

import typer

from windrow.cli.server import FOLDER, Name, ServerOption


def pause(name: Name, server: ServerOption = FOLDER) -> None:
    """Pause a query of a served session, until ``windrow resume``."""
    from windrow.serve.client import connect

    with connect(server) as client:
        client.pause(name)
    typer.echo(f"paused {name}")
