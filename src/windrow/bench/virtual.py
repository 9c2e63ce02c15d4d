"""A query graph in virtual time, with service times that were measured on this machine or given; and in real time.

Times are in nanoseconds. In virtual time each step takes the service time of its node, and whatever arrives meanwhile
is there before the next operator is selected, as on a machine with a receiver of its own.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from windrow.graph import Graph, Memory, Output
from windrow.operators.operator import Item
from windrow.progress import END, Punctuation
from windrow.spec.names import PROGRESS

SECOND = 1_000_000_000
ARRIVED = "arrived"  # the column with the time of arrival, whatever a source stamps a row with

# What a node takes: a tuple; a batch that has been filtered away; a promise while tuples wait somewhere; or one while
# none do, after which the graph looks in vain for somebody who could use another.
Kind = Literal["row", "empty", "promise", "idle"]
KINDS: tuple[Kind, ...] = ("row", "promise", "idle", "empty")
Service = Callable[[int, Item, int], int]  # how long a node takes for an item while so many rows wait
Costs = Mapping[tuple[int, Kind], int]
Make = Callable[[Callable[[], int]], Graph]  # a graph, given the clock that its sources read


class Arrival(NamedTuple):
    """What comes to an input, and when."""

    at: int
    port: int
    item: Item


class Result(NamedTuple):
    """What left a graph, and when."""

    at: int
    item: Item


def poisson(rate: float, seconds: float, seed: int, burst: int = 1) -> list[int]:
    """Times of arrival of so many tuples a second on average, in bursts of tuples that come together."""
    rng = np.random.default_rng(seed)
    count = int(rate / burst * seconds * 1.5) + 20
    times = np.cumsum(rng.exponential(burst / rate * SECOND, count)).astype(np.int64)
    return np.repeat(times[times < seconds * SECOND], burst).tolist()


def tuples(times: Sequence[int], port: int, seed: int) -> list[Arrival]:
    """A tuple for each time, with a column ``x`` that is uniform in [0, 1)."""
    xs = np.random.default_rng(seed).random(len(times)).tolist()
    found = []
    for at, x in zip(times, xs, strict=True):
        row = pl.DataFrame({PROGRESS: [at], ARRIVED: [at], "x": [x]})
        found.append(Arrival(at, port, row))
    return found


def merged(*streams: Sequence[Arrival], end: int) -> list[Arrival]:
    """All streams in order of arrival, and their ends."""
    rows = sorted((a for stream in streams for a in stream), key=lambda a: (a.at, a.port))
    return rows + [Arrival(end, port, Punctuation(END)) for port in range(len(streams))]


class Clock:
    """Virtual time: it passes when somebody says so."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Stopwatch:
    """The time since it was made, on the clock of the machine."""

    def __init__(self) -> None:
        self.began = time.perf_counter_ns()

    def __call__(self) -> int:
        return time.perf_counter_ns() - self.began


class Virtual(Memory):
    """Runs a graph over arrivals. It is told what ran, as whoever measures a graph is, and lets time pass."""

    def __init__(self, graph: Graph, arrivals: Sequence[Arrival], service: Service, clock: Clock | None = None) -> None:
        super().__init__()
        self.graph, self.service = graph, service
        self.clock = Clock() if clock is None else clock
        self._coming = sorted(arrivals, key=lambda a: a.at)
        self._next = 0

    def ran(self, node: int, item: Item, produced: Iterable[Item]) -> None:
        super().ran(node, item, produced)
        self._pass(self.clock.now + self.service(node, item, self.rows))

    def _pass(self, until: int) -> None:
        clock = self.clock
        while self._next < len(self._coming) and self._coming[self._next].at <= until:
            arrival = self._coming[self._next]
            self._next += 1
            clock.now = max(clock.now, arrival.at)
            self.graph.put(arrival.port, arrival.item)
        clock.now = max(clock.now, until)

    def results(self) -> Iterator[Result]:
        """Everything that comes out, with its time."""
        self.graph.measure(self)
        while True:
            out = self.graph.step()
            if out is not None:
                yield from (Result(self.clock.now, item) for _, item in out)
            elif self._next == len(self._coming):
                return
            else:
                self._pass(self._coming[self._next].at)


def in_virtual_time(make: Make, arrivals: Sequence[Arrival], costs: Costs) -> list[Result]:
    """What comes out of a graph whose nodes take so long."""
    clock = Clock()
    return list(Virtual(make(clock), arrivals, at_cost(costs), clock).results())


def in_real_time(make: Make, arrivals: Sequence[Arrival]) -> list[Result]:
    """What comes out of a graph that takes what arrives on the clock of the machine."""
    clock = Stopwatch()
    graph, given, found = make(clock), 0, list[Result]()
    clock.began = time.perf_counter_ns()
    while True:
        while given < len(arrivals) and arrivals[given].at <= clock():
            graph.put(arrivals[given].port, arrivals[given].item)
            given += 1
        out = graph.step()
        if out:
            now = clock()
            found += [Result(now, item) for _, item in out]
        elif out is None and given == len(arrivals):
            return found


def kind_of(item: Item, waiting: int) -> Kind:
    if not isinstance(item, pl.DataFrame):
        return "promise" if waiting else "idle"
    return "row" if item.height else "empty"


def at_cost(costs: Costs) -> Service:
    """The service time of a node by what it takes."""
    return lambda node, item, waiting: costs[node, kind_of(item, waiting)]


class _Watch(Memory):
    """Notes who ran, and counts the rows that wait; measuring bytes would take time."""

    last: tuple[int, Kind] | None = None

    def ran(self, node: int, item: Item, produced: object) -> None:  # noqa: ARG002
        self.last = node, kind_of(item, self.rows)

    def arrived(self, item: Item) -> None:
        if isinstance(item, pl.DataFrame):
            self.rows += item.height

    def left(self, item: Item) -> None:
        if isinstance(item, pl.DataFrame):
            self.rows -= item.height


def calibrated(make: Make, arrivals: Sequence[Arrival], apart: bool = True) -> dict[tuple[int, Kind], int]:
    """The median time of a step of each node on this machine, with all that belongs to it: buffers and selection.

    Each tuple is done before the next is put. A node that takes something it did not take here is as fast as it is with
    a promise while nothing waits, or else with what it took. ``apart``: promises are timed apart if nothing waits.
    """
    graph, watch = make(Stopwatch()), _Watch()
    graph.measure(watch)
    spent: defaultdict[tuple[int, Kind], list[int]] = defaultdict(list)
    for arrival in arrivals:
        graph.put(arrival.port, arrival.item)
        while True:
            began = time.perf_counter_ns()
            out: list[Output] | None = graph.step()
            took = time.perf_counter_ns() - began
            if out is None:
                break
            if watch.last is not None:
                spent[watch.last if apart or watch.last[1] != "promise" else (watch.last[0], "idle")].append(took)
    costs = {key: int(median(all_of)) for key, all_of in spent.items()}
    return _filled(costs, [node.number for node in graph.nodes])


def _filled(costs: dict[tuple[int, Kind], int], nodes: Sequence[int]) -> dict[tuple[int, Kind], int]:
    for node in nodes:
        known = [costs[node, kind] for kind in ("idle", *KINDS) if (node, kind) in costs]
        for kind in KINDS:
            costs.setdefault((node, kind), known[0] if known else 0)
    return costs


def latencies(results: Sequence[Result]) -> list[int]:
    """From arrival to result, of each tuple that came out."""
    rows = [(at, item[ARRIVED]) for at, item in results if isinstance(item, pl.DataFrame)]
    return [at - arrived for at, column in rows for arrived in column]


def mean_latency(results: Sequence[Result]) -> float:
    """In microseconds."""
    return round(float(np.mean(latencies(results))) / 1000, 1)


def median_latency(results: Sequence[Result]) -> float:
    """In microseconds. In real time a few tuples wait long for other programs, which the mean would show."""
    return round(float(np.median(latencies(results))) / 1000, 1)


def arrived(results: Sequence[Result]) -> list[int]:
    """The times of arrival of all tuples that came out, sorted: equal if the same ones did."""
    return sorted(t for _, item in results if isinstance(item, pl.DataFrame) for t in item[ARRIVED])
