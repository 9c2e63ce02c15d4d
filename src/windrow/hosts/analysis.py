"""A query that is run to see what it costs: each part of its plan as estimated, and as measured in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from windrow.graph import Node
from windrow.hosts.local import LocalRun
from windrow.hosts.spent import Spent
from windrow.operators.operator import Item
from windrow.planner import Plan
from windrow.planner.choose.estimates import Estimate, Estimates, estimated
from windrow.planner.choose.statistics import BATCH
from windrow.sources.files import Unreadable
from windrow.sources.kafka.reading import frame, of_now
from windrow.sources.kafka.topic import Topic
from windrow.sources.own import Own
from windrow.spec.names import PROGRESS

LIMIT = 1_000_000
HEADER = ("", "rows in", "", "rows out", "", "us", "", "", "state bytes", "", "")
COLUMNS = ("", *("estimated", "measured") * 3, "ratio", "estimated", "measured", "ratio")
Rows = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Line:
    """A part of the plan, or one operator of it, which has no estimate of its own. ``micros`` are of CPU."""

    name: str
    rows_in: int
    rows_out: int
    micros: float
    bytes: int
    estimated_in: float | None = None
    estimated_out: float | None = None
    estimated_micros: float | None = None
    estimated_bytes: float | None = None

    @property
    def cells(self) -> list[str]:
        """As text: estimates before measurements, and the ratios of both."""
        rows = [_cell(self.estimated_in), _cell(self.rows_in), _cell(self.estimated_out), _cell(self.rows_out)]
        cost = [_cell(self.estimated_micros), _cell(self.micros), _ratio(self.micros, self.estimated_micros)]
        held = [_cell(self.estimated_bytes), _cell(self.bytes), _ratio(self.bytes, self.estimated_bytes)]
        return [self.name, *rows, *cost, *held]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _filled(names: Iterable[str]) -> Iterator[str]:
    """A name stands for those without one behind it."""
    last = ""
    for name in names:
        last = name or last
        yield last


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if math.isfinite(value) else "all"


def _ratio(measured: float, estimate: float | None) -> str:
    known = estimate is not None and math.isfinite(estimate) and estimate > 0
    return f"{measured / estimate:.2f}" if known and estimate is not None else ""


@dataclass(frozen=True)
class Analysis:
    """``length``: how much progress the rows cover, in units; ``limited``: sources of which only a part was read."""

    lines: tuple[Line, ...]
    estimates: Estimates
    length: float
    rows: Mapping[str, int]
    limited: tuple[str, ...]
    late: int

    @property
    def header(self) -> list[str]:
        """What the cells of a line are."""
        return [f"{what} {how}".strip() for what, how in zip(_filled(HEADER), COLUMNS, strict=True)]

    @property
    def notes(self) -> list[str]:
        """What to know of the figures."""
        read = ", ".join(f"{count:,} rows of {name}" for name, count in self.rows.items())
        first = ", ".join(self.limited)
        part = f", which are the first ones of {first}" if first else ""
        found = [
            f"run in this process over {read}{part}, at most {BATCH:,} of each at a time",
            f"estimates ({self.estimates.basis}) are for the {self.length:,.1f} {self.estimates.unit}s of progress in "
            "them; us are of CPU; state is the greatest between two batches; ratios are measured / estimated",
        ]
        if self.late:
            found.append(
                f"{self.late:,} rows were late, as they came in batches like these, and are missing in what follows"
            )
        return found

    def text(self) -> str:
        """As an aligned table."""
        table = [list(HEADER), list(COLUMNS), *(line.cells for line in self.lines)]
        widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
        rows = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table]
        return "\n".join(["Analysis", *(f"  {row}" for row in rows), *(f"  {note}" for note in self.notes)])

    def as_json(self) -> dict[str, Any]:
        """For programs: what is not known is null, and what is held until the end has no estimate."""
        parts = [{name: _finite(value) for name, value in asdict(line).items()} for line in self.lines]
        return {
            "parts": parts,
            "basis": self.estimates.basis,
            "unit": self.estimates.unit,
            "length": self.length,
            "rows": dict(self.rows),
            "limited": list(self.limited),
            "late": self.late,
            "batch": BATCH,
        }


def analyzed(
    plan: Plan,
    sources: Mapping[str, pl.DataFrame | Own],
    samples: Rows | None = None,
    limit: int = LIMIT,
    each: Callable[[float], None] = lambda _done: None,
) -> Analysis:
    """Run a plan over the first rows of finite sources, in batches, as a stream would bring them.

    ``each`` is told after every batch which share of the rows has been taken.
    """
    data = {name: _first(plan, name, source, limit + 1) for name, source in sources.items()}
    limited = tuple(name for name, rows in data.items() if rows.height > limit)
    data = {name: rows.head(limit) for name, rows in data.items()}
    _run(plan, {name: rows.head(BATCH) for name, rows in data.items()})  # compiles what must be compiled
    run, watch = _run(plan, data, each)
    estimates = estimated(plan, samples)
    length = watch.length / estimates.per
    lines = [line for part in estimates.parts for line in _lines(part, watch, length)]
    counts = {name: rows.height for name, rows in data.items()}
    return Analysis((*lines, _total(lines)), estimates, length, counts, limited, run.counts["rows_late"])


class _Watch(Spent):
    """Notes how much progress rows make as they come out of sources, too."""

    first, last = math.inf, -math.inf

    @property
    def length(self) -> float:
        return max(0.0, self.last - self.first + 1)

    def ran(self, node: int, item: Item, produced: Iterable[Item]) -> None:
        super().ran(node, item, produced)
        if isinstance(item, pl.DataFrame) and self.graph.node(node).name.startswith("read"):
            for frame in produced:
                if isinstance(frame, pl.DataFrame) and frame.height and PROGRESS in frame.columns:
                    self.first = min(self.first, int(frame[PROGRESS].min()))  # type: ignore[arg-type]
                    self.last = max(self.last, int(frame[PROGRESS].max()))  # type: ignore[arg-type]
            self.mark()


def _first(plan: Plan, name: str, source: pl.DataFrame | Own, most: int) -> pl.DataFrame:
    """The first rows of a source; a file that cannot be read has none."""
    if isinstance(source, pl.DataFrame):
        return source.head(most)
    [scan] = [scan for scan in plan.scans() if scan.name == name]
    needed, found, left = plan.read_from(scan), list[pl.DataFrame](), most
    if isinstance(source, Topic):
        for rows in of_now(source, needed)[1]:
            found.append(rows.head(left))
            if (left := left - rows.height) <= 0:
                break
        return pl.concat([frame((), needed), *found])
    for file in source.listed():
        try:
            found += [] if left <= 0 or source.problem(file, needed) else source.rows(file, needed)
        except Unreadable:
            continue
        left = most - sum(rows.height for rows in found)
    return pl.concat(found).head(most) if found else pl.DataFrame(schema=source.schema)


def _run(plan: Plan, data: Rows, each: Callable[[float], None] = lambda _done: None) -> tuple[LocalRun, _Watch]:
    """All sources in step, like micro-batches: each gives the same share of its rows. ``each`` hears what is done."""
    run = LocalRun(plan)
    watch = _Watch(run.graph)
    run.graph.measure(watch)
    steps = max(1, *(-(-rows.height // BATCH) for rows in data.values()))
    for step in range(steps):
        for name, rows in data.items():
            start, end = (rows.height * at // steps for at in (step, step + 1))
            watch.mark()
            run.push(name, rows[start:end])
            run.results()
        watch.look()
        each((step + 1) / steps)
    run.end()
    return run, watch


def _lines(part: Estimate, watch: _Watch, length: float) -> Iterator[Line]:
    """A part of the plan, and below it its operators."""
    graph = watch.graph
    prefix = f"{part.scope}/"
    nodes = [node for node in graph.nodes if node.name.startswith(prefix)]
    inside = {node.number for node in nodes}
    operators = [_operator(node, watch) for node in nodes]
    before = [p for number in inside for p in graph.predecessors(number) if p not in inside]
    given = sum(watch.flows[p].rows_out for p in before)
    first = [number for feeds in graph.inputs for number, port in feeds if port == 0]  # on port 1 come answers
    given += sum(watch.flows[number].rows_in for number in first if number in inside)
    ends = [number for number in inside if not inside & set(graph.successors(number))]
    yield Line(
        part.name,
        given,
        sum(watch.flows[number].rows_out for number in ends),
        sum(line.micros for line in operators),
        sum(line.bytes for line in operators),
        part.rows_in * length,
        part.rows_out * length,
        part.micros * length,
        part.bytes,
    )
    yield from operators


def _operator(node: Node, watch: _Watch) -> Line:
    flow, name = watch.flows[node.number], node.name.split("/")[-1].split("-", 1)[-1]
    micros = watch.nanos[node.number] / 1000
    return Line(f"  {name}", flow.rows_in, flow.rows_out, micros, watch.state[node.number])


def _total(lines: Sequence[Line]) -> Line:
    parts = [line for line in lines if line.estimated_micros is not None]
    sources = [line for line in parts if line.name.startswith("source ")]
    return Line(
        "the plan",
        sum(line.rows_in for line in sources),
        parts[-1].rows_out,
        sum(line.micros for line in parts),
        sum(line.bytes for line in parts),
        sum(line.estimated_in or 0 for line in sources),
        parts[-1].estimated_out,
        sum(line.estimated_micros or 0 for line in parts),
        sum(line.estimated_bytes or 0 for line in parts),
    )
