"""What the nodes of ring-speed do: a join whose predicate takes as long as it is told to, tuples that are passed on,
and bulk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.hosts.ring.links import TcpLinks
from windrow.hosts.ring.squeeze import Squeeze
from windrow.operators.ring.head import FLIGHT
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.ring import Ring
from windrow.progress import Punctuation
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS
from windrow.windows.multiway import Ranges

NAMES = "abc"
ROW = 1024  # bytes
HITS = 10  # one pair in so many is true


# -- a predicate that takes its time -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Burn:
    """True for one pair in HITS, after so many rounds of work."""

    rounds: int

    def __call__(self, x: int, y: int) -> bool:
        done = 0
        for _ in range(self.rounds):
            done += 1
        return (x * 7919 + y * 6101) % (HITS * 97) < 97 and done == self.rounds


def calibrated(seconds: float) -> Burn:
    """A predicate that takes as much CPU time for a pair, here and now."""
    burn = Burn(100_000)
    return Burn(round(burn.rounds * seconds / cpu_seconds(burn, 20)))


def cpu_seconds(burn: Burn, pairs: int) -> float:
    """For a pair, the least of some runs."""
    took = []
    for _ in range(5):
        began = time.process_time()
        for pair in range(pairs):
            burn(pair, 1)
        took.append((time.process_time() - began) / pairs)
    return min(took)


@dataclass(frozen=True)
class Joined:
    """What a node has found in the round that is timed, and what that took: on the clock, and of a processor.
    ``pairs``: at the head those that each node has tried.
    """

    seconds: float
    cpu: float
    pairs: list[int]
    rows: list[tuple[int, ...]]


def join(links: TcpLinks, burn: Burn, window: int, units: int) -> Joined:
    """Three streams with a row in each unit of time, chained by two predicates. The first round fills the windows, and
    is not timed. The order of probes is fixed, so that every ring tries the same pairs.
    """
    tests = tuple(Check((x, y), function=Function("burn", burn, (x, y), pl.Boolean())) for x, y in ("ab", "bc"))
    joining = Joining(Ranges((window,) * 3), tuple((name,) for name in NAMES), tests)
    wishes = Wishes(links.nodes, links.nodes, ordered=((1, 2), (0, 2), (1, 0)))
    ring = Ring(joining, wishes)
    ring.connect(links, clock=time.perf_counter)
    took, cpu, found = 0.0, 0.0, list[tuple[int, ...]]()
    for first, last in ((0, window), (window, window + units)):
        for port, name in enumerate(NAMES):
            if links.node == 0:
                ring.on_batch(port, pl.DataFrame({PROGRESS: range(first, last), name: range(first, last)}))
            ring.on_punctuation(port, Punctuation(last))
        began, used = time.perf_counter(), time.process_time()
        items = ring.on_flush()
        took, cpu = time.perf_counter() - began, time.process_time() - used
        found = [row for item in items if isinstance(item, pl.DataFrame) for row in item.rows()]
    pairs = [int(report["pairs"]) for report in ring.head.reports] if ring.head is not None else []
    return Joined(took, cpu, pairs, found)


# -- tuples ------------------------------------------------------------------------------------------------------------
class Stamped:
    """Links that note when a train goes to the next node."""

    def __init__(self, links: TcpLinks) -> None:
        self.links, self.node, self.nodes = links, links.node, links.nodes
        self.times: list[float] = []

    def send(self, to: int, message: Message) -> None:
        if message.kind == Kind.TRAIN:
            self.times.append(time.monotonic())  # all processes of a machine have the same one
        self.links.send(to, message)

    def receive(self, wait: bool) -> Message | None:
        return self.links.receive(wait)


def never(x: pl.Series, y: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:  # noqa: ARG001
    """A predicate that costs nothing."""
    return np.zeros(len(x), np.bool_)


def free_ring(links: TcpLinks | Stamped, window: int, flight: int) -> Ring:
    """Two streams of rows with a blob, and a predicate that costs nothing."""
    test = Check(("a", "b"), function=Function("never", never, ("a", "b"), pl.Boolean(), vectorized=True))
    joining = Joining(Ranges((window, window)), (("a",), ("b",)), (test,))
    ring = Ring(joining, Wishes(links.nodes, links.nodes), flight)
    ring.connect(links, clock=time.perf_counter)
    return ring


def _round(ring: Ring, blobs: Sequence[bytes], first: int) -> float:
    """Both streams have these, in turn; returns the seconds that the round takes."""
    last = first + 2 * len(blobs)
    for port in (0, 1):
        if ring.head is not None:
            ring.on_batch(port, pl.DataFrame({PROGRESS: range(first + port, last, 2), "ab"[port]: blobs}))
        ring.on_punctuation(port, Punctuation(last))
    began = time.perf_counter()
    ring.on_flush()
    return time.perf_counter() - began


def hops(links: TcpLinks, window: int, rows: int) -> list[float]:
    """When each row went from this node to the next one; of the last node never. A row starts when the END of the one
    before it is back.
    """
    stamped = Stamped(links)
    ring = free_ring(stamped, window, flight=1)
    blobs = [bytes(ROW)] * rows
    for number in (0, 1):  # the first round warms up
        stamped.times.clear()
        _round(ring, blobs, number * 2 * rows)
    return stamped.times


def bare_hops(links: TcpLinks, rounds: int) -> list[float]:
    """The seconds of round trips of a message with a row, which nobody looks at."""
    frame, to, times = pl.DataFrame({"a": [bytes(ROW)]}), (links.node + 1) % links.nodes, []
    for number in range(rounds):
        began = time.perf_counter()
        if links.node == 0:
            links.send(to, Message(Kind.PARTIALS, number, frames={"row": Payload(frame)}))
        message = links.receive(wait=True)
        assert message is not None
        if links.node != 0:
            links.send(to, message)
        times.append(time.perf_counter() - began)
    return times


# -- bulk --------------------------------------------------------------------------------------------------------------
class Always(Squeeze):
    """Compresses whatever it is given."""

    @property
    def pays(self) -> bool:
        return True


def bulk_links(links: TcpLinks, rows: int, messages: int, squeezed: bool) -> float:
    """Bytes of rows a second, written by node 0 and read by node 1. ``squeezed``: rows that can be compressed are."""
    blobs = _text(rows) if squeezed else _noise(rows)
    if links.node == 1:
        for _ in range(messages):
            message = links.receive(wait=True)
            assert message is not None
            assert message.frames["rows"].frame.height == rows
        links.send(0, Message(Kind.DONE))
        return 0.0
    frame = pl.DataFrame({"a": blobs})
    links.send(1, Message(Kind.SETUP, frames={"rows": Payload(frame)}))  # connects
    if squeezed:
        links.squeezed(1, Always())
    began = time.perf_counter()
    for _ in range(messages - 1):
        links.send(1, Message(Kind.PARTIALS, frames={"rows": Payload(frame)}))
    links.receive(wait=True)
    return (messages - 1) * rows * ROW / (time.perf_counter() - began)


def bulk_nodes(links: TcpLinks, window: int, rows: int) -> float:
    """Bytes of rows a second that go from the head to the last node, which keeps its slices of them."""
    ring = free_ring(links, window, FLIGHT)
    took = [_round(ring, _noise(rows), number * 2 * rows) for number in (0, 1)]  # the first round warms up
    return 2 * rows * ROW / took[-1]


def _noise(rows: int) -> list[bytes]:
    """Blobs that cannot be compressed."""
    data = np.random.default_rng(3).bytes(rows * ROW)
    return [data[at : at + ROW] for at in range(0, len(data), ROW)]


def _text(rows: int) -> list[bytes]:
    """Blobs of about a third of their size when they are compressed."""
    rng = np.random.default_rng(4)
    return [rng.integers(97, 101, ROW, dtype=np.uint8).tobytes() for _ in range(rows)]
