"""``windrow why``: why a query has no output, or not all of it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

EXAMPLES = "Example: windrow why state --json"
WAITS = ("nothing waits", "waiting")  # the causes that need no one's attention


def why(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint folder of the query, or the folder of a session.", show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the cause, and all facts.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 3 if a source, a clock or a condition needs attention.")
    ] = False,
) -> None:
    """Say why a query has no output: which source, partition or group holds it back, and what would release it.

    Works while the query runs and after it was stopped: all it reads is the checkpoint.
    """
    from windrow.cli.inputs import log_file
    from windrow.hosts.spark.reports import checkpoint_report
    from windrow.hosts.why import why as explained

    found = explained(checkpoint_report(checkpoint, log=log_file()))
    typer.echo(json.dumps(found.as_json()) if as_json else found.text)
    if check and found.cause.name not in WAITS:
        raise typer.Exit(3)
