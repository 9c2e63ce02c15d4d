"""``windrow run``: a query file over file sources, as a Spark streaming query."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from windrow.cli import inputs, topics
from windrow.cli.checkpoint import beside
from windrow.cli.metrics import Published, published
from windrow.cli.progress import COUNTS, Totals, follow
from windrow.cli.tables import show_batch
from windrow.cli.warned import Shown
from windrow.errors import QueryError, WindrowError, WindrowWarning
from windrow.hosts.spark.start import ADVICE, TOO_SLOW, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

EXAMPLES = (
    "Example: windrow run top.sql --source packets=parquet:data/packets --progress ts --slack '3 seconds' "
    "--sink parquet:out --checkpoint state --once"
)


def run(
    query: inputs.QueryFile,
    source: inputs.Sources,
    progress: inputs.ProgressOption,
    slack: inputs.SlackOption = None,
    punctuation: inputs.PunctuationOption = None,
    parse: inputs.ParseOption = None,
    row_num: inputs.RowNumOption = None,
    row_slack: inputs.RowSlackOption = None,
    schema: inputs.SchemaOption = None,
    delay: inputs.DelayOption = None,
    idle_after: inputs.IdleAfterOption = None,
    sink: Annotated[
        str, typer.Option(help="console, parquet:DIR, delta:DIR, jsonl:FILE or kafka:BROKERS/TOPIC.")
    ] = "console",
    bad_rows: Annotated[
        str | None, typer.Option(help="Where bad rows go, with the reason: parquet:DIR, delta:DIR or jsonl:FILE.")
    ] = None,
    late_rows: Annotated[
        str | None,
        typer.Option(help="Where late records go, as for --sink. Under LATE SIDE they are the late rows."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for progress and state; without it a run cannot be continued.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Stop when all existing files have been read.")] = False,
    shards: inputs.ShardsOption = None,
    max_files: inputs.MaxFilesOption = 64,
    state_limit: Annotated[
        str | None,
        typer.Option(help="The most state a shard may hold, such as '2 GB'; beyond it the query stops."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Figures for Prometheus and windrow top: a port, HOST:PORT, or a file that ends in .prom."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with the totals at the end.")] = False,
) -> None:
    """Run a query continuously, or over the files that exist now (--once). Continue a run with its --checkpoint."""
    from windrow.hosts.spark import checkpoint as checkpoints

    text = inputs.read_query(query)
    kept = checkpoint if checkpoint is not None else Path(tempfile.mkdtemp(prefix="windrow-"))
    side = beside(kept)
    for folder in (kept, side):
        checkpoints.check(folder)
    options = inputs.Options(progress, slack, punctuation, parse, row_num, row_slack, schema, delay, idle_after)
    shown_already = warnings.catch_warnings(action="ignore", category=WindrowWarning)
    console = Console(stderr=True)
    with published(metrics, console.print) as told, inputs.spark_session(shards) as spark, shown_already:
        built = inputs.query(text, source, options, spark, max_files)
        shown = Shown(built, built._kept(kept), console)
        if late_rows is None:
            results = built.to_spark(shards, state_limit=state_limit, checkpoint=kept)
            started = [("results", _start(results, sink, kept, once))]
        else:
            both = built.to_spark(shards, with_late=True, state_limit=state_limit, checkpoint=kept)
            started = [("results", start(_writer(both, kept, once).foreachBatch(Both(sink, late_rows))))]
        if bad_rows is not None:
            started.append(("bad rows", _start(built.bad_rows(), bad_rows, side, once)))
        total = _finish(started, console, shown, told)
    if as_json:
        counts: dict[str, Any] = {name: total.counts[name] for name in COUNTS}
        typer.echo(json.dumps({**counts, "batches": total.batches, "state_bytes": total.state_bytes}))


def _finish(started: list[tuple[str, StreamingQuery]], console: Console, shown: Shown, told: Published) -> Totals:
    """Follow the queries to their end; the totals are those of the first, and so are the warnings."""
    from pyspark.errors import PySparkException

    first, running = started[0]

    def moved(name: str) -> None:
        if name == first:
            shown.update(running)
            told.update(running)

    try:
        totals = follow(started, console, moved)
        shown.end()
        return totals[0]
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except PySparkException as error:
        raise WindrowError(ADVICE if TOO_SLOW in str(error) else reason(error)) from None
    finally:
        for _, running in started:
            running.stop()


class Both:
    """For ``foreachBatch``: the results and the late records of a micro-batch, each to a sink of its own.

    Both come from one query: two queries would have different micro-batches, and disagree on what is late.
    """

    def __init__(self, sink: str, late: str) -> None:
        if sink == late and sink != "console":
            raise QueryError(f"{sink} cannot take both the results and the late rows: give each a place of its own")
        self.results = batch_sink(sink)
        self.late = batch_sink(late, "late")

    def __call__(self, frame: DataFrame, batch: int) -> None:
        from windrow.hosts.spark.compile import late_rows, results

        frame.persist()  # computed once
        self.results(results(frame), batch)
        self.late(late_rows(frame), batch)
        frame.unpersist()


def batch_sink(sink: str, role: str = "results") -> Callable[[DataFrame, int], None]:
    """A writer of micro-batches for which writing one again changes nothing. ``role``: which output it is for."""
    from windrow.sinks.delta import Delta
    from windrow.sinks.jsonl import JsonLines
    from windrow.sinks.parquet import ParquetBatches

    kind, _, path = sink.partition(":")
    match kind:
        case "console":
            return _show
        case "parquet" if path:
            return ParquetBatches(path)
        case "delta" if path:
            return Delta(path)
        case "jsonl" if path:
            return JsonLines(path)
        case "kafka" if path:
            return topics.sink(path, role)
    raise QueryError(
        f"unknown sink {sink!r}; available: console, parquet:DIR, delta:DIR, jsonl:FILE, kafka:BROKERS/TOPIC"
    )


def _writer(frame: DataFrame, checkpoint: Path, once: bool) -> DataStreamWriter:
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).outputMode("append")
    return writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")


def _start(frame: DataFrame, sink: str, checkpoint: Path, once: bool) -> StreamingQuery:
    kind, _, path = sink.partition(":")
    writer = _writer(frame, checkpoint, once)
    match kind:
        case "parquet" if path:
            return start(writer.format("parquet").option("path", path))
    return start(writer.foreachBatch(batch_sink(sink)))


def _show(frame: DataFrame, batch: int) -> None:
    # All rows: limit() would leave partitions of the micro-batch unrun, and their state uncommitted.
    show_batch(batch, frame.columns, frame.collect())


def reason(error: Exception) -> str:
    """The message of a Windrow error inside what Spark wraps around it."""
    text = str(error)
    for line in text.split("\n"):
        name, colon, _message = line.strip().partition(": ")
        if colon and name.startswith("windrow.errors."):
            start = text.index(line) + len(line) - len(line.lstrip()) + len(name) + 2
            end = text.find("\n SQLSTATE", start)
            return text[start : end if end > 0 else len(text)].split("\n=== Streaming Query")[0].rstrip()
    return text
