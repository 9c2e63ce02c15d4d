"""What a row costs the nodes of a ring, beside the conditions that are tried: measured on the running machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from windrow.operators.ring.costs import Unit
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.slices import NUMBER, TIME, Slice
from windrow.planner.choose.measured_costs import NANO, Stopwatch
from windrow.spec.batches import Batch

TRAIN, TRAINS, BLOB = 64, 32, 1024  # rows of a train, trains, bytes of a row
LEAST = 1e-9


def measured_ring(watch: Stopwatch, hop: Callable[[], float]) -> Unit:
    """``hop``: measures the seconds of a message from one process to another. What a pair costs is measured by the
    running join.
    """
    count, trains = TRAIN * TRAINS, [_rows(TRAIN * number) for number in range(TRAINS)]
    put = watch.of(lambda: _filled(trains))
    gone = watch.of(lambda: _emptied(_filled(trains)))
    return Unit(
        send=max(LEAST, watch.of(lambda: _sent(trains[0])) / TRAIN / NANO),
        hop=max(LEAST, hop()),
        insert=max(LEAST, put / count / NANO),
        purge=max(LEAST, (gone - put) / count / NANO),
    )


def _rows(first: int) -> Batch:
    numbers = np.arange(first, first + TRAIN)
    return pl.DataFrame({NUMBER: numbers, TIME: numbers, "blob": [bytes(BLOB)] * TRAIN})


def _sent(rows: Batch) -> Batch:
    """A train as it is written by one node, and read by the next one."""
    message = Message(Kind.TRAIN, frames={"rows": Payload(rows)})
    return Message.read(memoryview(b"".join(message.parts()))).frames["rows"].frame


def _filled(trains: list[Batch]) -> Slice:
    state = Slice()
    for rows in trains:
        state.append(rows)
    return state


def _emptied(state: Slice) -> None:
    for number in range(TRAINS):
        state.forget(TRAIN * (number + 1))
