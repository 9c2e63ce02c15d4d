"""``windrow explain``: what a query means and how it would run, without running it."""

from __future__ import annotations

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
    shards: sources.ShardsOption = None,
) -> None:
    """Show the logical plan, and the physical plan with map side, exchange and shards, in words."""
    text = sources.read_query(query)
    with sources.spark_session() as spark:
        options = sources.Options(progress, slack, punctuation, parse, row_num, row_slack)
        built = sources.query(text, source, options, spark, 1)
        typer.echo(built.explain(shards=shards))
