"""Where break nodes keep buffers small: Chain (Babcock et al., SIGMOD 2003), which Bai et al. cite for it.

The progress chart of a path has a point after each operator: the time that a row of its input has taken so far, and the
bytes that are left of it. The lower envelope of the chart is made of segments, the steepest first. Memory is freed
fastest if the steepest segment that has input runs, so break nodes are put between segments, and a segment's slope is
its priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from windrow.errors import GraphError
from windrow.graph.buffers import Flow
from windrow.graph.graph import Graph


class Point(NamedTuple):
    """Of a progress chart: the time that has been spent on a row of input, and the bytes that are left of it."""

    time: float
    size: float


@dataclass(frozen=True)
class Segment:
    """Nodes that run as one, and the bytes that they free per unit of time."""

    nodes: tuple[int, ...]
    slope: float


def envelope(chart: Sequence[Point]) -> list[tuple[int, float]]:
    """The lower envelope of a chart: for each segment, the number of its last point and its slope.

    Where two ends are equally steep, the farther one is taken: the fewer break nodes, the better.

    >>> envelope([Point(0, 1.0), Point(1, 0.9), Point(2, 0.2), Point(6, 0.0)])
    [(2, 0.4), (3, 0.05)]
    """
    found: list[tuple[int, float]] = []
    at = 0
    while at < len(chart) - 1:
        start = chart[at]
        slopes = [((start.size - p.size) / (p.time - start.time), n) for n, p in enumerate(chart) if n > at]
        slope, at = max(slopes)
        found.append((at, slope))
    return found


def paths(graph: Graph) -> list[list[int]]:
    """The nodes of a graph in runs that no fork and no operator with several inputs interrupts."""
    found: list[list[int]] = []
    for node in graph.nodes:
        if _continues(graph, node.number):
            continue
        path = [node.number]
        while len(after := graph.successors(path[-1])) == 1 and _continues(graph, after[0]):
            path += after
        found.append(path)
    return found


def _continues(graph: Graph, number: int) -> bool:
    """Whether a node is on the path of the one before it."""
    inputs = graph.node(number).readers
    before = graph.predecessors(number)
    return len(inputs) == len(before) == 1 and len(graph.successors(before[0])) == 1


def segments(graph: Graph, costs: Mapping[int, float]) -> list[Segment]:
    """Where the graph would be broken, by what has been measured (``Graph.measure``) and the time per row of nodes."""
    if graph.memory is None:
        raise GraphError("break nodes are placed by what goes through the operators: call measure() and run some rows")
    found: list[Segment] = []
    for path in paths(graph):
        chart = _chart(graph, path, graph.memory.flows, costs)
        done = 0
        for end, slope in envelope(chart):
            # Operators that nothing reaches are not on the chart, and run with the last one that is.
            last = len(path) if end == len(chart) - 1 else end
            found.append(Segment(tuple(path[done:last]), slope))
            done = last
    return found


def _chart(graph: Graph, path: Sequence[int], flows: Mapping[int, Flow], costs: Mapping[int, float]) -> list[Point]:
    chart: list[Point] = []
    rows = 1.0
    for number in path:
        name = graph.node(number).name
        if (flow := flows.get(number)) is None or not flow.rows_in:
            raise GraphError(f"nothing has gone through {name}, so no break node can be placed: run some rows first")
        if costs.get(number, 0) <= 0:
            raise GraphError(f"{name} needs the time that it takes for a row, greater than 0")
        if not chart:
            chart.append(Point(0.0, flow.bytes_in / flow.rows_in))
        time, size = chart[-1]
        left = size * flow.bytes_out / flow.bytes_in if graph.successors(number) and flow.bytes_in else 0.0
        chart.append(Point(time + rows * costs[number], left))
        rows *= flow.rows_out / flow.rows_in
        if not rows:
            break
    return chart


def place(graph: Graph, costs: Mapping[int, float]) -> list[Segment]:
    """Break a graph where the segments of its paths end, instead of where it is broken now, and run them by slope.

    ``costs`` is the time that each node takes for a row, in any unit. A graph whose sizes change is placed anew.
    """
    found = segments(graph, costs)
    for number in sorted(graph.breaks):
        graph.join_at(number)
    for segment in found:
        if graph.successors(segment.nodes[-1]):
            graph.break_at(segment.nodes[-1])
        graph.set_priority(segment.slope, segment.nodes)
    graph.turn = 1  # a steeper segment runs as soon as it has input
    return found
