"""``windrow serve``: a session on Spark as a long-lived process, whose queries come and go over HTTP."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import inputs
from windrow.errors import QueryError, listing

if TYPE_CHECKING:
    from windrow.api.stream import Stream
    from windrow.serve.session import Session

EXAMPLES = (
    "Example: windrow serve --folder session --source packets=parquet:data/packets --progress ts --slack '3 seconds'"
)
PORT = 8765


def serve(
    source: inputs.Sources,
    progress: inputs.ProgressOption,
    folder: Annotated[Path, typer.Option(help="Where queries, state, results and the token are kept.")],
    slack: inputs.SlackOption = None,
    punctuation: inputs.PunctuationOption = None,
    parse: inputs.ParseOption = None,
    row_num: inputs.RowNumOption = None,
    row_slack: inputs.RowSlackOption = None,
    schema: inputs.SchemaOption = None,
    delay: inputs.DelayOption = None,
    idle_after: inputs.IdleAfterOption = None,
    host: Annotated[str, typer.Option(help="A loopback address; others are refused.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = PORT,
    shards: inputs.ShardsOption = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="How many levels of state queries may have, one after the other.", show_default=False),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="How many tasks share the shards; default: one each.", show_default=False)
    ] = None,
    max_files: inputs.MaxFilesOption = 64,
) -> None:
    """Serve a session: queries over these sources are added, dropped and read while it runs.

    The folder keeps everything: started again over it, the session goes on with its queries and their state.
    """
    from windrow.serve.folder import Folder
    from windrow.serve.server import listening
    from windrow.serve.server import serve as serve_session

    place = Folder(folder)
    options = inputs.Options(progress, slack, punctuation, parse, row_num, row_slack, schema, delay, idle_after)

    def ready(address: str) -> None:
        typer.echo(f"serving on {address}, token in {folder / 'token'}")

    # What can be refused at once is refused before Spark starts.
    with place.claimed(), listening(host, port) as listener, inputs.spark_session(shards) as spark:
        streams = inputs.streams(source, options, spark, max_files)
        serve_session(session_of(folder, streams, shards=shards, depth=depth, tasks=tasks), place, listener, ready)


def session_of(folder: Path, streams: dict[str, Stream], **options: int | None) -> Session:
    """The session in a folder."""
    from windrow.sessions import Session as StandingSession

    if taken := {"self", *inspect.getfullargspec(StandingSession).kwonlyargs} & set(streams):
        raise QueryError(f"a source cannot be named {listing(taken)}: sessions use that name themselves")
    given: dict[str, Any] = {"folder": folder, **options, **streams}
    made: Session = StandingSession(**given)
    return made
