"""``windrow demo cameras``: three generated cameras joined on Spark by what their pictures show, and a page of it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windrow.api.multi_join import multi_join
from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.cli.cameras_page import Found, column, write_page
from windrow.cli.progress import Totals, end_line
from windrow.errors import DataError, QueryError
from windrow.hosts.spark.exchange import partition_of, shard_ids
from windrow.hosts.spark.start import start as begin
from windrow.sinks.parquet import read_committed
from windrow.sources.cameras import ALIKE, CAMERAS, SLACK, WITHIN, Scene, scene, similarity, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

EXAMPLES = (
    "Examples: windrow demo cameras --open. Or with twice the pictures: "
    "windrow demo cameras --things 240 --nodes 4 --page matches.html"
)
STEP = 4  # seconds of arrival in a file
FILES = 6  # in a micro-batch, of each camera
COMPARED = {"node": pl.Int64(), "first": pl.String(), "second": pl.String(), "similarity": pl.Float64()}


def cameras(
    page: Annotated[Path, typer.Option(help="The page with the matches.")] = Path("cameras.html"),
    out: Annotated[Path | None, typer.Option(help="Keep pictures and results here.")] = None,
    things: Annotated[int, typer.Option(min=1, help="How many things pass the cameras, about one a second.")] = 120,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes share the work.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the generated pictures.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in a browser.")] = False,
) -> None:
    """Pictures of three cameras joined by a Python function that compares them, on Spark; every match is checked."""
    console, began = Console(), time.perf_counter()
    if out is not None and out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty: the demo needs an empty folder")
    if not page.absolute().parent.is_dir():
        raise QueryError(f"--page {page}: the folder {page.absolute().parent} does not exist")
    folder = out or Path(tempfile.mkdtemp(prefix="windrow-cameras-"))
    folder.mkdir(parents=True, exist_ok=True)
    seen = scene(things, seed)
    console.print(_cameras_table(seen))
    for name, frame in seen.frames.items():
        write(frame, folder / name, step=STEP)
    (folder / "compared").mkdir()
    found = _run(console, folder, nodes)
    wrong = _check(console, found, seen)
    write_page(page, found, seen, wrong)
    if out is None:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(f"done in {time.perf_counter() - began:.0f} s; the matches are in {page}")
    if open_page:
        webbrowser.open(page.absolute().as_uri())
    if wrong:
        raise typer.Exit(1)


def _cameras_table(seen: Scene) -> Table:
    table = Table("camera", "pictures", "disorder", "behind", title="Generated cameras")
    for camera in CAMERAS:
        table.add_row(
            camera.name,
            f"{seen.frames[camera.name].height:,}",
            f"up to {SLACK:.0f} s",
            f"{camera.behind:.0f} s",
        )
    return table


# -- the query ---------------------------------------------------------------------------------------------------------
def query(source: Callable[[str], Any], alike: Callable[[Any, Any], bool], nodes: int) -> Stream:
    """Triples of pictures that show the same thing: two conditions about two cameras each."""
    one, two, three = (stream(source(c.name), "seen", slack=f"{SLACK:.0f} seconds", name=c.name) for c in CAMERAS)
    where = [lambda cam1, cam2: alike(cam1, cam2), lambda cam2, cam3: alike(cam2, cam3)]
    return multi_join(one, two, three, within=f"{WITHIN} seconds", where=where, nodes=nodes)


@dataclass(frozen=True)
class Alike:
    """Whether two pictures are alike. Notes in ``folder`` which node compared which pictures, for the page."""

    folder: str
    nodes: int

    def __call__(self, one: Any, other: Any) -> bool:
        found = similarity(one.image, other.image)
        line = f"{node_here(self.nodes)},{one.frame},{other.frame},{found:.4f}\n"
        with (Path(self.folder) / f"{os.getpid()}").open("a") as notes:
            notes.write(line)
        return found > ALIKE


def node_here(nodes: int) -> int:
    """The node whose task this is."""
    from pyspark import TaskContext

    task = TaskContext.get()
    partition = 0 if task is None else task.partitionId()
    return next(n for n, shard in enumerate(shard_ids(nodes)) if partition_of(shard, nodes) == partition)


def _run(console: Console, folder: Path, nodes: int) -> Found:
    from windrow.hosts.spark.archive import OPTIONS, QUICK
    from windrow.hosts.spark.session import session

    master = f"local[{max(nodes, os.cpu_count() or 1)}]"
    with console.status("starting Spark"):
        spark = session("windrow-cameras", master=master, log=folder / "spark.log", **{OPTIONS: QUICK})
    began = time.perf_counter()
    started, totals = _start(spark, folder, nodes), Totals()
    _watch(console, started, totals, folder)
    seconds = time.perf_counter() - began
    spark.stop()
    return Found(read_committed(folder / "matches"), compared(folder), nodes, seconds, totals.batches)


def _start(spark: SparkSession, folder: Path, nodes: int) -> StreamingQuery:
    def source(name: str) -> Any:
        path = str(folder / name)
        reader = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", FILES)
        return reader.parquet(path)

    matches = query(source, Alike(str(folder / "compared"), nodes), nodes)
    writer = matches.to_spark(nodes).writeStream.format("parquet").option("path", str(folder / "matches"))
    return begin(writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True))


def compared(folder: Path) -> pl.DataFrame:
    """All calls of the function that the nodes have noted."""
    notes = [file for file in sorted((folder / "compared").iterdir()) if file.stat().st_size]
    if not notes:
        return pl.DataFrame(schema=COMPARED)
    return pl.concat([pl.read_csv(file, has_header=False, schema=COMPARED) for file in notes])


# -- what is shown -----------------------------------------------------------------------------------------------------
def _watch(console: Console, running: StreamingQuery, totals: Totals, folder: Path) -> None:
    shown: Table | Text = Text("")
    with Live(console=console, refresh_per_second=8) as live:
        while True:
            active = running.isActive
            if totals.update(running):
                shown = _newest(folder)
            calls = compared(folder).height
            line = Text(f"{totals.line()}\n{calls:,} pairs of pictures compared", style="bold")
            live.update(Group(line, shown))
            if not active:
                break
            time.sleep(0.2)
    end_line(console)
    if (error := running.exception()) is not None:
        raise error


def _newest(folder: Path) -> Table | Text:
    results = read_committed(folder / "matches")
    if not results.height:
        return Text("nothing has passed all cameras yet")
    names = [camera.name for camera in CAMERAS]
    times = [column(name, "seen") for name in names]
    table = Table(*names, title="The newest matches: when each camera saw them")
    for row in results.sort(times[-1], descending=True).head(5).select(times).rows():
        table.add_row(*(f"{at:%H:%M:%S}" for at in row))
    return table


def _check(console: Console, found: Found, seen: Scene) -> int:
    """Each thing that all cameras have seen must be found once, and nothing else."""
    triples = found.triples()
    missing, strange = seen.truth - set(triples), set(triples) - seen.truth
    twice = len(triples) - len(set(triples))
    wrong = len(missing) + len(strange) + twice
    style = "red" if wrong else "green"
    by_node = ", ".join(f"node {node}: {count:,}" for node, count in enumerate(found.by_node()))
    console.print(
        f"[{style}]{len(seen.truth):,} things seen by all cameras, {len(missing)} not found, {len(strange)} wrong, "
        f"{twice} found twice[/]"
    )
    console.print(f"{found.compared.height:,} pairs of pictures compared ({by_node})")
    return wrong
