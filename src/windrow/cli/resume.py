"""``windrow resume``: let a paused query of a served session go on."""

from __future__ import annotations

import typer

from windrow.cli.server import FOLDER, Name, ServerOption


def resume(name: Name, server: ServerOption = FOLDER) -> None:
    """Resume a paused query of a served session."""
    from windrow.serve.client import connect

    with connect(server) as client:
        client.resume(name)
    typer.echo(f"resumed {name}")
