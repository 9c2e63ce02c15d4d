"""Micro-batches on the simulated Spark that die and run again, under a query that is started anew now and then."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from windrow.api.stream import Stream
from windrow.testing.mismatch import Mismatch
from windrow.testing.replay import compare
from windrow.testing.simulated import Checkpoint, MicroBatch, Rows, Running, SimulatedSpark

# What depends on what a worker did before: the size of state, and promises that are repeated after a restart.
HISTORY = {"state_bytes": 0, "promises_sent": 0}
TIMED = {"rows_sent": 0}  # of a ring: how many results it finds at once, and so what is sent on, depends on time
RESTARTED, DIED = 0.3, 0.3  # how often, of all micro-batches


def disturbed(
    build: Callable[[SimulatedSpark], Stream],
    batches: Sequence[Mapping[str, Rows]],
    seed: int = 0,
    shards: int = 2,
    asked: Sequence[int | None] = (),
    **options: Any,
) -> list[MicroBatch]:
    """What each micro-batch puts out; Mismatch if one that runs again puts out anything else than before it died.

    ``build`` makes the query over the sources of a session. It is called for every start, as another process would.
    ``asked``: of each micro-batch when the sources were asked how far they have come, if they were.
    """
    rng, checkpoint = random.Random(seed), Checkpoint()

    def started() -> Running:
        spark = SimulatedSpark(shards, seed=rng.getrandbits(32))
        return spark.start(build(spark), checkpoint, **options)

    running, found = started(), []
    for number, (rows, at) in enumerate(zip_longest(batches, asked)):
        if number and rng.random() < RESTARTED:
            running = started()
        died = running.push(rows, commit=False, asked=at) if rng.random() < DIED else None
        if died is not None and rng.random() < 0.5:
            running = started()
        found.append(running.push(rows, asked=at))
        if died is not None:
            ignored = {**HISTORY, **(TIMED if running.frame.has_barrier() else {})}
            _check_same(died, found[-1], ignored, f"micro-batch {number} run again")
    return found


def _check_same(died: MicroBatch, again: MicroBatch, ignored: Mapping[str, int], where: str) -> None:
    compare(again.results, died.results, where)
    compare(again.late, died.late, f"{where}, late rows")
    compare(again.bad, died.bad, f"{where}, bad rows")
    if again.wanted != died.wanted:
        raise Mismatch(f"{where}: sources are to be asked at {again.wanted} instead of {died.wanted}")
    if {**again.counts, **ignored} != {**died.counts, **ignored}:
        raise Mismatch(f"{where}: the counts {again.counts} instead of {died.counts}")
