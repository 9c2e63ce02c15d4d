"""``windrow explain``: what a query means and how it would run, without running it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from windrow.cli import inputs

EXAMPLES = "Example: windrow explain top.sql --source packets=parquet:data/packets --progress ts --slack '3 seconds'"


def explain(
    query: inputs.QueryFile,
    source: inputs.Sources,
    progress: inputs.ProgressOption,
    slack: inputs.SlackOption = None,
    punctuation: inputs.PunctuationOption = None,
    parse: inputs.ParseOption = None,
    row_num: inputs.RowNumOption = None,
    row_slack: inputs.RowSlackOption = None,
    schema: inputs.SchemaOption = None,
    shards: inputs.ShardsOption = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="The checkpoint to continue from; without it, the first start is shown.")
    ] = None,
) -> None:
    """Show the logical plan, and the physical plan with map side, exchange and shards. Nothing is run."""
    text = inputs.read_query(query)
    options = inputs.Options(progress, slack, punctuation, parse, row_num, row_slack, schema)
    with inputs.session_if_needed(source) as spark, TemporaryDirectory() as first:
        built = inputs.query(text, source, options, spark, 1)
        typer.echo(built.explain(shards=shards, checkpoint=checkpoint or first))
