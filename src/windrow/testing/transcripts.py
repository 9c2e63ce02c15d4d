"""Transcripts: input, punctuation, what must come out. One file, run on every host.

```yaml
query: SELECT k, count(*) AS n FROM s [RANGE 10, SLIDE 5, WA t] GROUP BY k
streams:
  s: {progress: t, columns: {t: bigint, k: string}}
steps:
  - input: {s: [[1, a], [7, a]]}
  - punctuation: {s: 5}
  - expect: [[a, -5, 5, 1]]
  - end:
  - expect: [[a, 0, 10, 2], [a, 5, 15, 1]]
```
``expect`` lists the rows released since the last one, in any order; ``late`` the late records; ``counts`` checks
rows_in, rows_bad, rows_late, rows_revised and promises_ignored. A stream takes promises from ``punctuation`` steps, or
has ``slack``; it may have ``row_num`` and ``row_slack``. A transcript with ``error`` must be refused. On Spark the
query is stopped half way and continues from its checkpoint.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import yaml

from windrow.api.sources import stream
from windrow.api.stream import Stream
from windrow.errors import DataError, WindrowError
from windrow.hosts.local import LocalRun
from windrow.hosts.spark.compile import late_rows, results, sets_aside
from windrow.hosts.spark.exchange import METRICS
from windrow.hosts.spark.schema import to_dataframe
from windrow.hosts.spark.start import start
from windrow.sql.select import sql
from windrow.testing.mismatch import Mismatch
from windrow.testing.replay import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER = "promise"  # the column that carries punctuation where rows come from files
TYPES = {
    "bigint": pl.Int64(),
    "int": pl.Int32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
}
FAR = {pl.Date: date(9999, 12, 31), pl.Datetime: datetime(9999, 12, 31)}


@dataclass(frozen=True)
class Transcript:
    """A parsed transcript. ``batch`` says why it cannot run as a batch, where it cannot (late rows need time)."""

    name: str
    query: str
    streams: Mapping[str, Mapping[str, Any]]
    steps: list[Mapping[str, Any]] = field(default_factory=list)
    error: str | None = None
    batch: str | None = None

    def schema(self, name: str) -> dict[str, pl.DataType]:
        """The columns of a stream."""
        return {c: TYPES[t] for c, t in self.streams[name]["columns"].items()}

    def inputs(self, name: str) -> pl.DataFrame:
        """All rows of a stream, over all steps."""
        rows = [row for step in self.steps for row in (step.get("input") or {}).get(name, [])]
        return frame(rows, self.schema(name))

    def build(self, data: Mapping[str, Any], marker: str | None) -> Stream:
        """The query over the given data."""
        tables = {}
        for name, options in self.streams.items():
            slack = options.get("slack")
            tables[name] = stream(
                data[name],
                progress=options["progress"],
                slack=slack,
                punctuation=None if slack is not None else marker,
                parse=options.get("parse"),
                row_num=options.get("row_num"),
                row_slack=options.get("row_slack", 0),
                name=name,
            )
        return sql(self.query, **tables)


def load(path: str | Path) -> list[Transcript]:
    """The transcripts of a YAML file (one per document)."""
    found = []
    for number, document in enumerate(yaml.safe_load_all(Path(path).read_text())):
        known = {"name", "query", "streams", "steps", "error", "batch"}
        if odd := set(document) - known:
            raise DataError(f"{path}: unknown fields {sorted(odd)} in transcript {number}; available: {sorted(known)}")
        found.append(Transcript(**{"name": f"{Path(path).stem}-{number}", **document}))
    return found


def frame(rows: list[list[Any]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows as written in YAML, as a frame."""
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pl.DataFrame([_series(n, list(v), t) for (n, t), v in zip(schema.items(), columns, strict=True)])


def _series(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Datetime):
        naive = [_naive(v) for v in values]
        zoned = pl.Series(name, naive, pl.Datetime("us"))
        return zoned.dt.replace_time_zone("UTC") if dtype.time_zone else zoned
    return pl.Series(name, values, dtype)


def _naive(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return None if value is None else value.replace(tzinfo=None)


# -- hosts -------------------------------------------------------------------------------------------------------------
def run_local(transcript: Transcript) -> None:
    """Step by step in this process."""
    empty = {n: frame([], transcript.schema(n)) for n in transcript.streams}
    if _refused(transcript, empty):
        return
    query = transcript.build(empty, None)
    run = LocalRun(query.plan())
    for number, step in enumerate(transcript.steps):
        for name, rows in (step.get("input") or {}).items():
            run.push(name, frame(rows, transcript.schema(name)))
        for name, value in (step.get("punctuation") or {}).items():
            run.promise(name, value)
        if "end" in step:
            run.end()
        if "expect" in step:
            compare(run.results(), frame(step["expect"] or [], query.schema), f"{transcript.name}, step {number}")
        if "late" in step:
            expected = frame(step["late"] or [], query.plan().late_schema())
            compare(run.late_rows(), expected, f"{transcript.name}, late rows up to step {number}")
        _check_counts(transcript, number, step, run.counts)
    left = run.results()
    if left.height:
        raise Mismatch(f"{transcript.name}: rows that no step expects: {left.rows()[:5]}")


def run_batch(transcript: Transcript, spark: SparkSession | None = None) -> None:
    """All input at once, as a finite table (in process, or a Spark DataFrame): all expected rows and no others."""
    if transcript.batch is not None or transcript.error is not None:
        return
    data: dict[str, Any] = {n: transcript.inputs(n) for n in transcript.streams}
    if spark is not None:
        data = {n: to_dataframe(spark, f) for n, f in data.items()}
    query = transcript.build(data, None)
    rows = [row for step in transcript.steps for row in step.get("expect") or []]
    compare(query.collect(), frame(rows, query.schema), f"{transcript.name}, as a batch")


def run_spark(transcript: Transcript, spark: SparkSession, folder: Path, restart: bool = True) -> None:
    """Every step a micro-batch of a real streaming query, which is stopped and started again half way."""
    if transcript.error is not None:
        return
    moments = _write_files(transcript, folder / "later")
    out = Output()
    half = moments[-1] // 2 + 1 if moments[-1] > 0 and restart else 0
    for leg in (range(half), range(half, moments[-1] + 1)):  # the second continues from the checkpoint of the first
        for name in transcript.streams:
            (folder / name).mkdir(exist_ok=True)
            for batch in leg:
                file = f"{batch:05d}.parquet"
                (folder / "later" / name / file).rename(folder / name / file)
        if leg:
            query = transcript.build(_file_streams(transcript, spark, folder), MARKER)
            with_late = sets_aside(query.plan()) or any("late" in step for step in transcript.steps)
            out.run(query, folder / "checkpoint", with_late)
    check_micro_batches(transcript, query, moments, out)


class Output:
    """What came out of the micro-batches of a streaming query, over all its restarts."""

    def __init__(self) -> None:
        self.results: dict[int, list[pl.DataFrame]] = {}
        self.late: dict[int, list[pl.DataFrame]] = {}
        self.history: dict[int, dict[str, int]] = {}
        counters = ("rows_in", "rows_bad", "rows_late", "rows_revised", "promises_ignored")
        self.counts = dict.fromkeys(counters, 0)

    def run(self, query: Stream, checkpoint: Path, with_late: bool) -> None:
        """Everything that is there now."""

        def take(batch_frame: Any, batch: int) -> None:
            if not with_late:
                self.results.setdefault(batch, []).append(pl.DataFrame(batch_frame.toArrow()))
                return
            batch_frame.persist()  # else the micro-batch would be computed twice
            for kept, part in ((self.results, results(batch_frame)), (self.late, late_rows(batch_frame))):
                kept.setdefault(batch, []).append(pl.DataFrame(part.toArrow()))
            batch_frame.unpersist()

        writer = query.to_spark(with_late=with_late).writeStream.foreachBatch(take)
        running = start(writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True))
        running.awaitTermination()
        for progress in running.recentProgress:
            metrics: Any = (progress.observedMetrics or {}).get(METRICS)
            for name in self.counts if metrics is not None else ():
                self.counts[name] += metrics[name] or 0
            self.history[progress.batchId] = dict(self.counts)


def check_micro_batches(transcript: Transcript, query: Stream, moments: list[int], out: Output) -> None:
    """Raise Mismatch unless each micro-batch has put out what the transcript expects of it."""
    empty = pl.DataFrame(schema=query.schema)
    done = -1
    for number, step in enumerate(transcript.steps):
        batch = moments[number]
        if "expect" in step:
            if "end" in _since(transcript.steps, number) and _has_slack(transcript):
                return  # only a promise ends a stream, and slack makes none
            frames = [f for b in range(done + 1, batch + 1) for f in out.results.get(b, [])]
            found = pl.concat([empty, *(f.cast(empty.schema) for f in frames)])
            compare(found, frame(step["expect"] or [], query.schema), f"{transcript.name} on Spark, step {number}")
            done = batch
        if "late" in step:
            none = pl.DataFrame(schema=query.plan().late_schema())
            late = [f.cast(none.schema) for b in range(batch + 1) for f in out.late.get(b, [])]
            expected = frame(step["late"] or [], none.schema)
            compare(pl.concat([none, *late]), expected, f"{transcript.name} on Spark, late rows up to step {number}")
        markers = sum(len(s.get("punctuation") or {}) for s in transcript.steps[: number + 1])
        counted = {**out.history.get(batch, {})}
        counted["rows_in"] = counted.get("rows_in", 0) - markers
        _check_counts(transcript, number, step, counted)


def _since(steps: list[Mapping[str, Any]], number: int) -> set[str]:
    """The kinds of steps since the last expectation."""
    before = itertools.takewhile(lambda s: "expect" not in s, reversed(steps[:number]))
    return {kind for step in before for kind in step}


def _has_slack(transcript: Transcript) -> bool:
    return any(options.get("slack") is not None for options in transcript.streams.values())


def _write_files(transcript: Transcript, folder: Path) -> list[int]:
    """A file per micro-batch in every stream's folder; returns for each step the last micro-batch up to it."""
    moments, batch = [], -1
    for step in transcript.steps:
        if is_micro_batch(transcript, step):
            batch += 1
            for name in transcript.streams:
                _write_file(transcript, name, step, folder / name, batch)
        moments.append(batch)
    return moments


def is_micro_batch(transcript: Transcript, step: Mapping[str, Any]) -> bool:
    """Whether a step brings rows or promises. Where promises come from slack, the end of a stream brings none."""
    return bool({"input", "punctuation", "end"} & set(step)) and not ("end" in step and _has_slack(transcript))


def _write_file(transcript: Transcript, name: str, step: Mapping[str, Any], folder: Path, batch: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{batch:05d}.parquet"
    marked_rows(transcript, name, step).write_parquet(path)
    os.utime(path, (1_600_000_000 + batch, 1_600_000_000 + batch))  # Spark takes files in order of time


def marked_rows(transcript: Transcript, name: str, step: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of a stream in a step, and its promise as one of them."""
    schema = transcript.schema(name)
    rows = frame((step.get("input") or {}).get(name, []), schema)
    dtype = schema[transcript.streams[name]["progress"]]
    if transcript.streams[name].get("slack") is None:
        promise = (step.get("punctuation") or {}).get(name)
        if "end" in step:
            promise = FAR.get(type(dtype), 1 << 60)
        marks = _series(MARKER, [None] * rows.height, dtype)
        rows = rows.with_columns(marks)
        if promise is not None:
            mark = {**{c: [None] for c in schema}, MARKER: [promise]}
            rows = pl.concat([rows, pl.DataFrame([_series(c, v, rows.schema[c]) for c, v in mark.items()])])
    return rows


def _file_streams(transcript: Transcript, spark: SparkSession, folder: Path) -> dict[str, Any]:
    found = {}
    for name in transcript.streams:
        schema = spark.read.parquet(str(folder / name)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        found[name] = reader.parquet(str(folder / name))
    return found


def _refused(transcript: Transcript, data: Mapping[str, Any]) -> bool:
    if transcript.error is None:
        return False
    try:
        transcript.build(data, None).plan()
    except WindrowError as error:
        if transcript.error not in str(error):
            raise Mismatch(f"{transcript.name}: refused for another reason than expected: {error}") from None
        return True
    raise Mismatch(f"{transcript.name}: should have been refused with {transcript.error!r}")


def _check_counts(transcript: Transcript, number: int, step: Mapping[str, Any], counts: Mapping[str, int]) -> None:
    for name, value in (step.get("counts") or {}).items():
        if counts.get(name) != value:
            raise Mismatch(f"{transcript.name}, step {number}: {name} is {counts.get(name)} instead of {value}")
