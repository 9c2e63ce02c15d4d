"""Transcripts on the simulated Spark."""

from __future__ import annotations

from windrow.api.stream import Stream
from windrow.hosts.spark.compile import sets_aside
from windrow.testing.disturbed import disturbed
from windrow.testing.replay import compare
from windrow.testing.simulated import SimulatedSpark
from windrow.testing.transcripts import (
    MARKER,
    Output,
    Transcript,
    check_micro_batches,
    frame,
    is_micro_batch,
    marked_rows,
)


def run_simulated(transcript: Transcript, seed: int = 0) -> None:
    """As a stream, every step a micro-batch that may die and run again; and as a batch, where it can run as one."""
    if transcript.error is not None:
        return
    _stream(transcript, seed)
    if transcript.batch is None:
        spark = SimulatedSpark(seed=seed)
        query = transcript.build({n: spark.frame(transcript.inputs(n)) for n in transcript.streams}, None)
        rows = [row for step in transcript.steps for row in step.get("expect") or []]
        expected = frame(rows, query.schema)
        compare(spark.collect(query), expected, f"{transcript.name}, as a batch of the simulated Spark")


def _stream(transcript: Transcript, seed: int) -> None:
    schemas = {n: marked_rows(transcript, n, {}).schema for n in transcript.streams}

    def build(spark: SimulatedSpark) -> Stream:
        return transcript.build({n: spark.stream(schema) for n, schema in schemas.items()}, MARKER)

    query = build(SimulatedSpark())
    with_late = sets_aside(query.plan()) or any("late" in step for step in transcript.steps)
    batches, moments = [], []
    for step in transcript.steps:
        if is_micro_batch(transcript, step):
            batches.append({name: marked_rows(transcript, name, step) for name in transcript.streams})
        moments.append(len(batches) - 1)
    out = Output()
    for number, found in enumerate(disturbed(build, batches, seed, with_late=with_late)):
        out.results[number], out.late[number] = [found.results], [found.late] if found.late.width else []
        for name in out.counts:
            out.counts[name] += found.counts[name]
        out.history[number] = dict(out.counts)
    check_micro_batches(transcript, query, moments, out)
