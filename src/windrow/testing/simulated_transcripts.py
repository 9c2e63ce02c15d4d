"""Transcripts on the simulated Spark: what would need minutes there runs in a second, and every step can fail once."""

from __future__ import annotations

import random
from typing import Any

from windrow.hosts.spark.compile import sets_aside
from windrow.testing.mismatch import Mismatch
from windrow.testing.replay import compare
from windrow.testing.simulated import Checkpoint, MicroBatch, SimulatedSpark
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
    """Every step a micro-batch of a simulated Spark. Some of them die and run again, and the query is started anew.

    As a batch, too, where the transcript can run as one.
    """
    if transcript.error is not None:
        return
    _stream(transcript, random.Random(seed))
    if transcript.batch is None:
        spark = SimulatedSpark(seed=seed)
        query = transcript.build({n: spark.frame(transcript.inputs(n)) for n in transcript.streams}, None)
        rows = [row for step in transcript.steps for row in step.get("expect") or []]
        expected = frame(rows, query.schema)
        compare(spark.collect(query), expected, f"{transcript.name}, as a batch of the simulated Spark")


def _stream(transcript: Transcript, rng: random.Random) -> None:
    checkpoint, out, moments, batch = Checkpoint(), Output(), [], -1
    running: Any = None
    for step in transcript.steps:
        if is_micro_batch(transcript, step):
            batch += 1
            rows = {name: marked_rows(transcript, name, step) for name in transcript.streams}
            if running is None or rng.random() < 0.3:
                query, running = _started(transcript, checkpoint, rng)
            if rng.random() < 0.3:
                lost = running.push(rows, commit=False)
                if rng.random() < 0.5:
                    query, running = _started(transcript, checkpoint, rng)
                _same(lost, taken := running.push(rows), transcript, batch)
            else:
                taken = running.push(rows)
            _keep(out, batch, taken)
        moments.append(batch)
    if running is not None:
        check_micro_batches(transcript, query, moments, out)


def _started(transcript: Transcript, checkpoint: Checkpoint, rng: random.Random) -> Any:
    """The query as another process would build it, with other workers."""
    spark = SimulatedSpark(seed=rng.getrandbits(32))
    schemas = {n: marked_rows(transcript, n, {}).schema for n in transcript.streams}
    query = transcript.build({n: spark.stream(schema) for n, schema in schemas.items()}, MARKER)
    with_late = sets_aside(query.plan()) or any("late" in step for step in transcript.steps)
    return query, spark.start(query, checkpoint, with_late=with_late)


def _same(lost: MicroBatch, again: MicroBatch, transcript: Transcript, batch: int) -> None:
    where = f"{transcript.name}, micro-batch {batch} run again"
    compare(again.results, lost.results, where)
    compare(again.late, lost.late, f"{where}, late rows")
    if {**again.counts, "state_bytes": 0} != {**lost.counts, "state_bytes": 0}:
        raise Mismatch(f"{where}: the counts {again.counts} instead of {lost.counts}")


def _keep(out: Output, batch: int, taken: MicroBatch) -> None:
    out.results[batch], out.late[batch] = [taken.results], [taken.late] if taken.late.width else []
    for name in out.counts:
        out.counts[name] += taken.counts[name]
    out.history[batch] = dict(out.counts)
