"""``windrow checkpoint``: operations on the checkpoint of a query that is not running."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windrow.hosts.spark import place

EXAMPLES = "Example: windrow checkpoint move /data/state /archive/state"

app = typer.Typer(help="Move the checkpoint of a query to another folder.", no_args_is_help=True)


@app.callback()
def checkpoint() -> None:
    """Move the checkpoint of a query to another folder."""


@app.command("move", epilog=EXAMPLES)
def move(
    old: Annotated[str, typer.Argument(help="Where the checkpoint was written.", show_default=False)],
    new: Annotated[str, typer.Argument(help="Its new folder, or where it was moved or copied to.", show_default=False)],
) -> None:
    """Move a checkpoint, or repair one that was moved or copied: Spark keeps its path inside. Stop the query first."""
    typer.echo(place.move(old, new))
    before, after = Path(place.local(old)), Path(place.local(new))
    side, target = beside(before), beside(after)
    if side.is_dir() and not before.exists() and not target.exists():
        typer.echo(place.move(side, target))


def beside(kept: Path) -> Path:
    """The checkpoint of ``--bad-rows``, beside that of the results."""
    return kept.with_name(kept.name + "-bad-rows")
