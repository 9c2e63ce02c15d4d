"""What the clients of ``windrow serve`` share: which server they mean, and the name of a query."""

from __future__ import annotations

from typing import Annotated

import typer

FOLDER = "windrow-session"
VARIABLE = "WINDROW_SERVER"

ServerOption = Annotated[
    str,
    typer.Option(
        "--server",
        envvar=VARIABLE,
        help="The folder of a served session, or its URL, with the token in $WINDROW_TOKEN.",
    ),
]
Name = Annotated[str, typer.Argument(help="The name of the query.", show_default=False)]
