"""``windrow demo kafka``: a query from topic to topic on a real broker, killed in the middle, and checked."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from windrow.api.kafka import read_kafka
from windrow.api.sources import stream
from windrow.sources.kafka.client import Client
from windrow.sources.kafka.topic import Topic
from windrow.sources.links import Link, packets
from windrow.sql.select import sql
from windrow.testing.broker import Broker
from windrow.testing.crash import after_file, run_until

LINK = Link("main", rate=200, hosts=20, band=3.2)
SLACK = "3.2 seconds"
QUERY = (
    "SELECT src_ip, count(*) AS n, max(len) AS longest [RANGE 1 minute, SLIDE 10 seconds, WA ts] FROM p GROUP BY src_ip"
)
COLUMNS = "ts TIMESTAMP, src_ip STRING, len BIGINT"
KEYS = ["window_end", "src_ip"]
STEPS = 6  # micro-batches
EXAMPLES = "Example: windrow demo kafka --minutes 20"


def kafka(
    minutes: Annotated[int, typer.Option(min=4, help="Minutes of traffic to generate.")] = 10,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topic.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the generated traffic.")] = 0,
) -> None:
    """A broker, a topic, and a query from it to another topic, whose process is killed: every result is checked."""
    console = Console()
    rows = packets(LINK, minutes * 60, seed).select("ts", "src_ip", "len")
    with tempfile.TemporaryDirectory(prefix="windrow-demo-") as made:
        folder = Path(made)
        with console.status("starting a broker"), Broker(folder / "broker") as broker:
            produced = _produce(broker, rows, partitions)
            console.print(f"{produced:,} messages in topic packets, in {partitions} partitions, at {broker.brokers}")
            kills = _run(console, broker, folder, rows.height)
            found = _results(broker)
    expected = _meant(rows, partitions)
    wrong, twice = _compared(found, expected)
    table = Table(show_header=False, title="packets, by address and minute, every 10 seconds")
    for what, count in (
        ("messages read", rows.height),
        ("processes killed", kills),
        ("results in the topic", found.height),
        ("results expected", expected.height),
        ("wrong or missing", wrong),
        ("there twice", twice),
    ):
        table.add_row(what, f"{count:,}")
    console.print(table)
    if wrong or twice:
        raise typer.Exit(1)


def _produce(broker: Broker, rows: pl.DataFrame, partitions: int) -> int:
    """The rows as JSON, in their order, to the partitions in turn."""
    broker.make("packets", partitions)
    broker.make("results", 2)
    lines = rows.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).write_ndjson().splitlines()
    for part in range(partitions):
        broker.put("packets", lines[part::partitions], part)
    return len(lines)


def _run(console: Console, broker: Broker, folder: Path, rows: int) -> int:
    """Run the query to its end; its process is killed twice: in a micro-batch, and after one. Returns how often."""
    (folder / "query.sql").write_text(QUERY)
    size = -(-rows // STEPS)
    command = [sys.executable, "-m", "windrow.cli", "run", str(folder / "query.sql"), "--once"]
    command += ["--source", f"p=kafka:{broker.brokers}/packets?max_rows={size}", "--schema", COLUMNS]
    command += ["--progress", "ts", "--slack", SLACK, "--sink", f"kafka:{broker.brokers}/results?key=src_ip"]
    command += ["--checkpoint", str(folder / "state")]
    kills = 0
    for place, seconds in (("offsets/1", 0.2), ("commits/3", 0.0)):
        began = time.perf_counter()
        with console.status(f"running the query until {place} is there"):
            killed = run_until(command, after_file(folder / "state" / place, seconds))
        kills += killed
        console.print(f"killed after {time.perf_counter() - began:.0f} s" if killed else "ended before it was killed")
    with console.status("running the query to its end"):
        run_until(command, lambda: False)
    return kills


def _results(broker: Broker) -> pl.DataFrame:
    """What a consumer of committed messages reads."""
    topic = Topic(broker.brokers, "results")
    there = Client(topic).there
    while (now := there()).end != now.high:  # the broker is closing the last transaction
        time.sleep(0.05)
    schema = "window_end TIMESTAMP, src_ip STRING, n BIGINT, longest BIGINT"
    results = read_kafka(broker.brokers, "results", "window_end", schema=schema, streaming=False)
    return results.select("window_end", "src_ip", "n", "longest").collect()


def _meant(rows: pl.DataFrame, partitions: int) -> pl.DataFrame:
    """The windows that the slowest partition closes, computed at once over all rows."""
    whole = sql(QUERY, p=stream(rows, progress="ts", name="p")).collect()
    slowest = min(rows[part::partitions]["ts"].to_physical().max() for part in range(partitions))  # type: ignore[type-var]
    closed = pl.col("window_end").to_physical() <= int(slowest) - 3_200_000  # type: ignore[arg-type]
    return whole.filter(closed).select("window_end", "src_ip", "n", "longest")


def _compared(found: pl.DataFrame, expected: pl.DataFrame) -> tuple[int, int]:
    """How many results are wrong or missing, and how many are there more than once."""
    once = found.unique(KEYS)
    both = expected.join(once, on=KEYS, how="full", suffix="_found", coalesce=True)
    differ = pl.any_horizontal(pl.col(c).ne_missing(pl.col(f"{c}_found")) for c in ("n", "longest"))
    return both.filter(differ).height, found.height - once.height
