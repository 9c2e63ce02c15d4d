"""What a row costs the nodes of a ring, beside the conditions that are tried: measured on the running machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from windrow.operators.ring.costs import Unit
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.slices import NUMBER, TIME, Slice
from windrow.planner.choose.measured_costs import NANO, Stopwatch
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.multiway import Ranges

TRAIN, TRAINS, BLOB = 64, 32, 1024  # rows of a train, trains, bytes of a row
SHORT, LONG = 2, 6  # nodes: what more of them take beside joining is what it takes to pass rows on
LEAST = 1e-9


def measured_ring(watch: Stopwatch, hop: Callable[[], float]) -> Unit:
    """``hop``: measures the seconds of a message from one process to another. What a pair costs is measured by the
    running join.
    """
    count, trains = TRAIN * TRAINS, [_rows(TRAIN * number) for number in range(TRAINS)]
    put = watch.of(lambda: _filled(trains))
    gone = watch.of(lambda: _emptied(_filled(trains)))
    return Unit(
        send=max(LEAST, (watch.of(lambda: _sent(trains[0])) / TRAIN + _passed(watch)) / NANO),
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


def _passed(watch: Stopwatch) -> float:
    """Nanoseconds of a row at a node, but for joining, and for reading and writing messages."""
    short, long = (watch.of(lambda nodes=nodes: _round(nodes)) for nodes in (SHORT, LONG))  # type: ignore[misc]
    return max(0.0, long - short) / (2 * TRAIN * TRAINS * (LONG - SHORT))


def _round(nodes: int) -> None:
    """Two streams of rows of which none are joined, through a ring in one place."""
    never = Check(("a", "b"), pl.lit(value=False))
    joining = Joining(Ranges((TRAIN, TRAIN)), (("a",), ("b",)), (never,))
    ring = Ring(joining, Wishes(nodes, nodes), flight=4 * TRAIN)
    times = np.arange(TRAIN * TRAINS)
    for port, name in enumerate("ab"):
        ring.on_batch(port, pl.DataFrame({PROGRESS: times, name: times}))
        ring.on_punctuation(port, Punctuation(len(times)))


def _filled(trains: list[Batch]) -> Slice:
    state = Slice()
    for rows in trains:
        state.append(rows)
    return state


def _emptied(state: Slice) -> None:
    for number in range(TRAINS):
        state.forget(TRAIN * (number + 1))
