"""many-queries: the same window queries, each by itself, and in one session, where they share what they can.

Twenty queries over one stream: the same filter and groups, windows of twenty lengths. In process, and on Spark, where
each query by itself is a streaming query of its own; there it also shows how long a change of a session takes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from windrow.api.sources import read_parquet, stream
from windrow.api.stream import Stream
from windrow.bench.experiment import Experiment, Outcome
from windrow.sessions import Session
from windrow.sources.links import Link, packets
from windrow.sql.select import sql

QUERIES, ON_SPARK = 20, 10
ROWS, BATCH, RATE = 2_000_000, 100_000, 5_000  # rows in all, in a batch, and a second of the stream
FILES = 4  # micro-batches on Spark
REPEATS, CHANGES = 3, 3
TOGETHER, SPARK = 2.0, 2.0  # the bounds of the claims
SLACK = "3.2 seconds"


def queries(count: int) -> dict[str, str]:
    """Windows of different lengths, all multiples of the slide."""
    return {
        f"q{n}": "SELECT src_ip, count(*) AS n, max(len) AS longest FROM packets "
        f"[RANGE '{10 * (n + 1)} seconds', SLIDE '10 seconds', WA ts] WHERE len > 200 GROUP BY src_ip"
        for n in range(count)
    }


def run(quick: bool, say: Callable[[str, float], None]) -> Outcome:
    """In process first; with ``--quick`` nothing else."""
    rows = packets(Link("main", rate=RATE, hosts=200, band=3.2), ROWS / RATE)
    batches = [rows[at : at + BATCH] for at in range(0, rows.height // (5 if quick else 1), BATCH)]
    figures, counts = in_process(batches, REPEATS, say)
    if not quick:
        figures |= on_spark(rows, say)
    return Outcome(figures, claims(figures, counts), lambda figure: plot(figure, figures))


# -- in process --------------------------------------------------------------------------------------------------------
def empty(rows: pl.DataFrame) -> Stream:
    return stream(rows.clear(), progress="ts", slack=SLACK, name="packets")


Ready = Callable[[], int]  # pushes all rows; returns how many came out


def alone(batches: list[pl.DataFrame]) -> Ready:
    """Each query by itself."""
    runs = [sql(text, packets=empty(batches[0])).run() for text in queries(QUERIES).values()]
    return lambda: sum(one.push("packets", batch).results().height for batch in batches for one in runs)


def apart(batches: list[pl.DataFrame]) -> Ready:
    """In a session, where each begins at another moment: they share the source and the filter."""
    session = Session(packets=empty(batches[0]))
    for name, text in queries(QUERIES).items():
        session.add(name, text)
        session.push("packets", batches[0].clear())
    return lambda: _pushed(session, batches)


def together(batches: list[pl.DataFrame]) -> Ready:
    """In a session, where they begin together: they share panes, too."""
    session = Session(packets=empty(batches[0]))
    session.add(**queries(QUERIES))
    return lambda: _pushed(session, batches)


def _pushed(session: Session, batches: list[pl.DataFrame]) -> int:
    found = 0
    for batch in batches:
        session.push("packets", batch)
        found += sum(session.results(name).height for name in queries(QUERIES))
    return found


WAYS: Mapping[str, Callable[[list[pl.DataFrame]], Ready]] = {"alone": alone, "apart": apart, "together": together}


def in_process(
    batches: list[pl.DataFrame], repeats: int, say: Callable[[str, float], None]
) -> tuple[dict[str, float], dict[str, int]]:
    """The least CPU time of several runs, ways in turn: what others do on the machine does not count."""
    best: dict[str, float] = {}
    counts: dict[str, int] = {}
    for repeat in range(repeats):
        for way, go in WAYS.items():
            say(f"in process, {way}", 0.5 * repeat / repeats)
            pushed = go(batches)
            began = time.process_time()
            counts[way] = pushed()
            best[way] = min(best.get(way, float("inf")), time.process_time() - began)
    rows = sum(batch.height for batch in batches)
    figures: dict[str, float] = {f"rows_per_s_{way}": round(rows / seconds) for way, seconds in best.items()}
    figures |= {f"times_{way}": round(best["alone"] / best[way], 2) for way in ("apart", "together")}
    return figures, counts


# -- on Spark ----------------------------------------------------------------------------------------------------------
def on_spark(rows: pl.DataFrame, say: Callable[[str, float], None]) -> dict[str, float]:
    """As streaming queries of their own, and as one session, over the same files in one JVM, warm."""
    from windrow.hosts.spark.session import session

    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-"))
    try:
        (folder / "in").mkdir()
        size = rows.height // FILES
        for n in range(FILES):
            rows[n * size : (n + 1) * size].write_parquet(folder / "in" / f"{n}.parquet")
            os.utime(folder / "in" / f"{n}.parquet", (100 + n, 100 + n))
        spark = session("windrow-bench", log=folder / "spark.log")
        try:
            return _compared(folder, say)
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compared(folder: Path, say: Callable[[str, float], None]) -> dict[str, float]:
    best: dict[str, float] = {}
    for repeat in range(REPEATS):
        for way, go in (("separate", _separate), ("session", _session)):
            say(f"on Spark, {way}", 0.5 + 0.4 * repeat / REPEATS)
            began = time.perf_counter()
            go(folder / f"{way}{repeat}", folder / "in")
            best[way] = min(best.get(way, float("inf")), time.perf_counter() - began)
    say("changes of a running session", 0.9)
    figures = {f"spark_s_{way}": round(seconds, 1) for way, seconds in best.items()}
    figures["spark_times"] = round(best["separate"] / best["session"], 2)
    figures["change_s"] = round(_change(folder / "changes", folder / "in"), 2)
    return figures


def _source(folder: Path) -> Stream:
    return read_parquet(folder, "ts", slack=SLACK, streaming=True, max_files=1, name="packets")


def _separate(out: Path, rows: Path) -> None:
    from windrow.hosts.spark.start import start

    running = []
    for name, text in queries(ON_SPARK).items():
        frame = sql(text, packets=_source(rows)).to_spark()
        writer = frame.writeStream.format("parquet").option("path", str(out / name)).trigger(availableNow=True)
        running.append(start(writer.option("checkpointLocation", str(out / f"{name}-state"))))
    for query in running:
        query.awaitTermination()


def _session(out: Path, rows: Path) -> None:
    session = Session(folder=out, packets=_source(rows))
    session.add(**queries(ON_SPARK))
    session.start(availableNow=True)
    session.wait()
    session.stop()


def _change(out: Path, rows: Path) -> float:
    """The median time that a query takes to be added to a session that has nothing to do."""
    session = Session(folder=out, packets=_source(rows))
    session.add(**queries(ON_SPARK))
    session.start()
    session.process_available()
    taken = []
    for number in range(CHANGES):
        began = time.perf_counter()
        session.add(f"more{number}", queries(1)["q0"])
        taken.append(time.perf_counter() - began)
    session.stop()
    return median(taken)


def claims(figures: Mapping[str, float], counts: Mapping[str, int]) -> dict[str, bool]:
    """Bounds that were set before the first run."""
    found = {
        f"{QUERIES} queries that share panes take rows at least {TOGETHER:g} times as fast as each by itself": (
            figures["times_together"] >= TOGETHER
        ),
        "queries that share only source and filter are not slower than each by itself": figures["times_apart"] >= 1,
        "all give as many rows": len(set(counts.values())) == 1 and min(counts.values()) > 0,
    }
    if "spark_times" in figures:
        found[f"on Spark, a session of {ON_SPARK} queries is at least {SPARK:g} times as fast as separate ones"] = (
            figures["spark_times"] >= SPARK
        )
    return found


def plot(figure: Any, figures: Mapping[str, float]) -> None:
    """A bar for each way."""
    axes = figure.subplots()
    axes.bar(list(WAYS), [figures[f"rows_per_s_{way}"] for way in WAYS])
    axes.set_ylabel(f"rows/s of {QUERIES} queries, in process")


MANY_QUERIES = Experiment("many-queries", "queries by themselves, and in one session that shares what they have", run)
