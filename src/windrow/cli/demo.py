"""``windrow demo``: the thesis's first two queries over three generated links, live, then checked."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.cli import cameras, kafka_demo
from windrow.cli.progress import Totals, end_line
from windrow.errors import DataError, QueryError, listing
from windrow.hosts.spark.start import start as begin
from windrow.sinks.parquet import read_committed
from windrow.sources.links import MICROS, START, Link, packets, write
from windrow.sql.select import sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LINKS = (
    Link("control", rate=0.05, hosts=3),
    Link("main1", rate=400, band=3.2),
    Link("main2", rate=300, block=60, behind=20),
)
Q1_1 = "SELECT src_ip, count(*) AS n [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM main1 GROUP BY src_ip"
Q1_2 = "SELECT count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM control UNION main1 UNION main2"
MINUTE = 60 * MICROS
EXAMPLES = "Examples: windrow demo. Or windrow demo cameras --open, for pictures that are alike"
app = typer.Typer(invoke_without_command=True)
app.command("cameras", epilog=cameras.EXAMPLES)(cameras.cameras)
app.command("kafka", epilog=kafka_demo.EXAMPLES)(kafka_demo.kafka)


@dataclass
class Running:
    """A query of the demo: its text, range in minutes, where it writes."""

    name: str
    text: str
    links: tuple[str, ...]
    range: int
    out: Path
    query: StreamingQuery
    totals: Totals


@app.callback(epilog=EXAMPLES)
def demo(
    context: typer.Context,
    minutes: Annotated[int, typer.Option(help="Minutes of traffic to generate.")] = 30,
    out: Annotated[Path | None, typer.Option(help="Keep data and results here instead of a temporary folder.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated traffic.")] = 0,
) -> None:
    """Q1-1 and Q1-2 on Spark over three out-of-order links, two busy and one almost idle; every window is checked."""
    from windrow.hosts.spark.archive import OPTIONS, QUICK
    from windrow.hosts.spark.session import session

    if (name := context.invoked_subcommand) is not None:
        _refuse_options(context, name)
        return
    console = Console()
    began = time.perf_counter()
    if out is not None and out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty: the demo needs an empty folder")
    folder = out or Path(tempfile.mkdtemp(prefix="windrow-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    traffic = {link.name: packets(link, minutes * 60, seed) for link in LINKS}
    console.print(_links_table(traffic))
    for name, frame in traffic.items():
        write(frame, folder / "links" / name, step=60)
    with console.status("starting Spark"):
        spark = session("windrow-demo", log=folder / "spark.log", **{OPTIONS: QUICK})
    running = [
        _start(spark, folder, "Q1-1", Q1_1, ("main1",), 10),
        _start(spark, folder, "Q1-2", Q1_2, ("control", "main1", "main2"), 1),
    ]
    _watch(console, running)
    wrong = sum(_check(console, r, traffic) for r in running)
    spark.stop()
    console.print(f"done in {time.perf_counter() - began:.0f} s; results in {folder if out else 'a temporary folder'}")
    if out is None:
        shutil.rmtree(folder, ignore_errors=True)
    if wrong:
        raise typer.Exit(1)


def _refuse_options(context: typer.Context, name: str) -> None:
    """Options before the name of another demo would have no effect."""
    sources = {option: context.get_parameter_source(option) for option in context.params}
    if given := [
        f"--{option}" for option, source in sources.items() if source is not None and source.name != "DEFAULT"
    ]:
        raise QueryError(f"{listing(given)} is an option of windrow demo: give those of {name} after its name")


def _links_table(traffic: dict[str, pl.DataFrame]) -> Table:
    table = Table("link", "packets", "disorder", "behind", title="Generated links")
    for link in LINKS:
        kind = f"blocks of {link.block:.0f} s in any order" if link.block else f"band of {link.band} s"
        order = kind if link.slack else "in order"
        table.add_row(link.name, f"{traffic[link.name].height:,}", order, f"{link.behind:.0f} s")
    return table


def _start(spark: SparkSession, folder: Path, name: str, text: str, links: tuple[str, ...], span: int) -> Running:
    tables: dict[str, Stream] = {}
    for link in LINKS:
        if link.name in links:
            path = str(folder / "links" / link.name)
            source = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 3)
            tables[link.name] = stream(source.parquet(path), progress="ts", slack=f"{link.slack} seconds")
    out = folder / name
    writer = sql(text, **tables).to_spark().writeStream.queryName(name).format("parquet").option("path", str(out))
    writer = writer.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True)
    return Running(name, text, links, span, out, begin(writer), Totals())


def _watch(console: Console, running: list[Running]) -> None:
    tables: dict[str, Any] = {}
    with Live(console=console, refresh_per_second=8) as live:
        while True:
            active = any(r.query.isActive for r in running)
            for r in running:
                if r.totals.update(r.query):
                    tables[r.name] = _fresh(r)
            lines = Text("\n".join(f"{r.name}: {r.totals.line()}" for r in running), style="bold")
            live.update(Group(lines, *(tables[r.name] for r in running if r.name in tables)))
            if not active:
                break
            time.sleep(0.2)
    end_line(console)
    for r in running:
        if (error := r.query.exception()) is not None:
            raise error


def _fresh(running: Running) -> Table | Text:
    """The newest windows."""
    results = read_committed(running.out)
    if not results.height:
        return Text(f"{running.name}: no window is closed yet")
    last: Any = results["window_end"].max()
    shown = results.sort("window_end", "n", descending=True).head(5)
    columns = [c for c in ("src_ip", "window_start", "window_end", "n") if c in shown.columns]
    table = Table(*columns, title=f"{running.name}, newest window ends at {last:%H:%M}")
    for row in shown.select(columns).rows():
        table.add_row(*(f"{v:%H:%M}" if hasattr(v, "hour") else str(v) for v in row))
    return table


def _check(console: Console, running: Running, traffic: dict[str, pl.DataFrame]) -> int:
    """Compare every window that the promises close with a batch recomputation over all rows."""
    links = [link for link in LINKS if link.name in running.links]
    promised = min(_latest(traffic[link.name]) - int(link.slack * MICROS) for link in links)
    keys = ["src_ip"] if "src_ip" in running.text else []
    minute = pl.col("ts").to_physical() // MINUTE
    rows = pl.concat([traffic[link.name] for link in links])
    ends = pl.concat([rows.select(*keys, (minute + i + 1).alias("end")) for i in range(running.range)])
    expected = (
        ends.filter(pl.col("end") * MINUTE <= promised).group_by(*keys, "end").agg(pl.len().cast(pl.Int64).alias("n"))
    )
    found = read_committed(running.out).with_columns((pl.col("window_end").to_physical() // MINUTE).alias("end"))
    found = found.select(*keys, "end", "n")
    both = expected.join(found, on=[*keys, "end"], how="full", suffix="_found", coalesce=True)
    wrong = (
        both.filter(pl.col("n").ne_missing(pl.col("n_found"))).height
        + found.height
        - found.unique([*keys, "end"]).height
    )
    style = "red" if wrong else "green"
    console.print(f"[{style}]{running.name}: {expected.height:,} windows, {wrong} wrong[/]")
    return wrong


def _latest(frame: pl.DataFrame) -> int:
    found = frame["ts"].to_physical().max()
    return int(found) if isinstance(found, int) else START
