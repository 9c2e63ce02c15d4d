"""``windrow explain``: what a query means and how it would run, without running it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from windrow.cli import sources

EXAMPLES = "Example: windrow explain top.sql --source packets=parquet:data/packets --progress ts --slack '3 seconds'"


def explain(
    query: sources.QueryFile,
    source: sources.Sources,
    progress: sources.ProgressOption,
    slack: sources.SlackOption = None,
    punctuation: sources.PunctuationOption = None,
    parse: sources.ParseOption = None,
    row_num: sources.RowNumOption = None,
    row_slack: sources.RowSlackOption = None,
    schema: sources.SchemaOption = None,
    shards: sources.ShardsOption = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The checkpoint to continue from; without it, the first start is shown.")
    ] = None,
) -> None:
    """Show the logical plan, and the physical plan with map side, exchange and shards. Nothing is run."""
    text = sources.read_query(query)
    options = sources.Options(progress, slack, punctuation, parse, row_num, row_slack, schema)
    with sources.session_if_needed(source) as spark, TemporaryDirectory() as first:
        built = sources.query(text, source, options, spark, 1)
        typer.echo(built.explain(shards=shards, checkpoint=checkpoint or first))
