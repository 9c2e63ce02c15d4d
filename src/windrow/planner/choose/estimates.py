"""What a plan costs: the sum over its sources, its stages and what gives the result.

The first open question of Kang et al., a cost model for full query plans, and the second of the thesis: the rates,
groups and disorder that the model of one operator needs are those that the operators before it leave (flows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from windrow.logical.nodes import (
    AsOf,
    Distinct,
    Join,
    MultiJoin,
    Ordered,
    Side,
    Statistics,
    Together,
    Top,
    WindowAggregate,
)
from windrow.logical.nodes import Sequence as Sequenced
from windrow.operators.windows.panes import pane_length
from windrow.planner.choose.costs import rows as cost
from windrow.planner.choose.costs.aggregation import CHUNK, EMIT, MEMORY, MOVE, SLICES, TIME, A, B, C
from windrow.planner.choose.flow import Basis, Flow, together, weakest
from windrow.planner.choose.flows import Flows, of_rows
from windrow.planner.choose.results import keys_of, pairs_of, regulated, windows_of
from windrow.planner.choose.several import spent_on
from windrow.planner.choose.statistics import BATCH, WIDTH, Seen, Workload, declared
from windrow.planner.plan import Plan, Read, Stage
from windrow.windows import Landmark, Session

PROBE = 200.0  # a row of a join: put it in, look for partners, take it out
PAIR = 60.0  # a pair of a join
SIDES: tuple[Side, Side] = (0, 1)
Spent = tuple[float, float]  # nanoseconds for each smallest unit of progress, and bytes of state


@dataclass(frozen=True)
class Estimate:
    """A part of a plan: ``name`` is as in ``explain``, ``scope`` as in the graph of the plan. Rates are for a unit of
    progress: a second, a day, or 1. ``bytes`` are held between two batches.
    """

    scope: str
    name: str
    rows_in: float
    rows_out: float
    micros: float
    bytes: float
    basis: Basis

    @property
    def says(self) -> str:
        """For ``explain``."""
        held = f"{self.bytes / 1024:,.1f} KiB of state" if math.isfinite(self.bytes) else "state until the end"
        return f"{self.micros:,.1f} us for {self.rows_in:,.1f} rows in, {self.rows_out:,.1f} out; {held}"


@dataclass(frozen=True)
class Estimates:
    """Of a whole plan. ``unit``: what rates are for; ``per``: the smallest units of progress in it."""

    parts: tuple[Estimate, ...]
    unit: str
    per: int

    @property
    def micros(self) -> float:
        """The cost of the plan."""
        return sum(part.micros for part in self.parts)

    @property
    def basis(self) -> Basis:
        return weakest(part.basis for part in self.parts)

    def of(self, scope: str) -> Estimate:
        """A part of the plan."""
        return next(part for part in self.parts if part.scope == scope)

    @property
    def says(self) -> str:
        """For ``explain``."""
        return f"cost of the plan: {self.micros:,.1f} us per {self.unit} of progress ({self.basis})"


def estimated(
    plan: Plan,
    samples: Mapping[str, pl.DataFrame] | None = None,
    exchanged: bool = False,
    seen: Mapping[str, Seen] | None = None,
) -> Estimates:
    """``samples``: rows of sources. ``exchanged``: rows and state are in different places, as on Spark. ``seen``: what
    earlier micro-batches have shown of sources.
    """
    return _Estimating(plan, Flows(samples or {}, _shortest_pane(plan), seen or {}), exchanged).all()


def _shortest_pane(plan: Plan) -> float | None:
    """The choice of an algorithm assumes 1,000 rows in a pane: so do flows."""
    nodes = [s.node for s in plan.stages() if isinstance(s.node, WindowAggregate) and not s.node.by_rows]
    return min((pane_length(n.window.sliding, n.options) for n in nodes if n.window.sliding is not None), default=None)


@dataclass
class _Estimating:
    plan: Plan
    flows: Flows
    exchanged: bool

    def all(self) -> Estimates:
        reads = self.plan.reads()
        first = reads[0]
        dtype = first.scan.schema[first.attribute]
        self.per, unit = 1, "row" if first.by_rows else "unit"
        if not first.by_rows and not dtype.is_integer():
            self.per, unit = (1_000_000, "second") if isinstance(dtype, pl.Datetime) else (1, "day")
        found = [self._read(number, read) for number, read in enumerate(reads)]
        found += [self._stage(stage) for stage in self.plan.stages()]
        return Estimates((*found, self._result()), unit, self.per)

    def _part(self, names: tuple[str, str], given: float, out: Flow, spent: Spent) -> Estimate:
        per = self.per
        return Estimate(*names, given * per, out.rate * per, spent[0] * per / 1000, spent[1], out.basis)

    def _read(self, number: int, read: Read) -> Estimate:
        flow = self.flows.from_source(read)
        spent = cost.steps(flow.rate, len(read.steps), cost.ADMIT), 0.0
        return self._part((f"read{number}", f"source {read.scan.name}"), flow.rate, flow, spent)

    def _before(self, stage: Stage) -> float:
        """The steps before a stage, but for its own lower half."""
        found = 0.0
        for pipeline in stage.inputs:
            found += cost.steps(self.flows.from_source(pipeline.source).rate, len(of_rows(pipeline.steps)))
        return found

    def _stage(self, stage: Stage) -> Estimate:
        given, out = self.flows.into(stage), self.flows.from_source(stage)
        nanos, held = _STAGES.get(type(stage.node), _other)(stage, given, out)
        moved = 0.0
        if self.exchanged:
            sent = _partials(stage, given[0]) if _sends_partials(stage) else sum(f.rate for f in given)
            moved = MOVE * sent
        spent = nanos + moved + self._before(stage), held
        names = f"stage{stage.number}", f"stage {stage.number}"
        before = sum(self.flows.from_source(pipeline.source).rate for pipeline in stage.inputs)
        return self._part(names, before, out, spent)

    def _result(self) -> Estimate:
        before = [self.flows.from_source(p.source) for p in self.plan.outputs]
        out = together(self.flows.of(p) for p in self.plan.outputs)
        nanos = sum(cost.steps(f.rate, len(p.steps)) for f, p in zip(before, self.plan.outputs, strict=True))
        return self._part(("result", "result"), sum(f.rate for f in before), out, (nanos, 0.0))


# -- window aggregation ------------------------------------------------------------------------------------------------
def workload_of(stage: Stage, flow: Flow) -> Workload | None:
    """The numbers of a sliding window: as its algorithm was chosen by, or from what flows into it."""
    node = stage.node
    if not isinstance(node, WindowAggregate) or (window := node.window.sliding) is None:
        return None
    pane = pane_length(window, node.options)
    known = stage.choice.workload if stage.choice is not None else None
    if known is None or known.basis == "assumed" or flow.basis == "assumed":
        keys, columns = tuple(name for name, _ in node.keys), len(node.keys) + 1 + len(node.calls)
        groups = Statistics(flow.rate, flow.keys_in(keys, pane))
        known = declared(groups, 1, window, pane, 0, (columns, columns))
        batch = BATCH / flow.rate if flow.rate else 0.0
        known = replace(
            known, results=flow.keys_in(keys, window.range), seen=flow.keys_in(keys, max(window.range, batch))
        )
    return replace(known, wed=(window.range + flow.wait) / pane, exchanged=False)


def _aggregation(stage: Stage, given: Sequence[Flow], out: Flow) -> Spent:
    [flow], node = given, stage.node
    assert isinstance(node, WindowAggregate)
    work, window = workload_of(stage, flow), node.window.sliding
    in_order = stage.arms[0].meeting.name == "merge"
    order = cost.SORT * flow.rate if in_order else 0.0
    waiting = _held(flow, flow.wait) if in_order else 0.0
    if work is None or window is None:
        nanos, held = _other_window(stage, flow, out)
        return nanos + order, held + waiting
    name = next((name for name in stage.algorithm.split(", ") if name in TIME), "paned")
    return TIME[name](work) / window.slide + order, MEMORY[name](work) + waiting


def _other_window(stage: Stage, flow: Flow, out: Flow) -> Spent:
    node = stage.node
    assert isinstance(node, WindowAggregate)
    keys = flow.keys(tuple(name for name, _ in node.keys))
    partial = WIDTH * (len(node.keys) + 1 + len(node.calls))
    nanos = cost.TRACK * flow.rate + EMIT * out.rate
    match node.window:
        case Landmark():
            return nanos, partial * keys
        case Session():
            nanos += (cost.RUN - cost.TRACK) * flow.rate
            return nanos, partial * keys * max(1.0, (node.window.gap + flow.wait) * out.rate / keys)
    window: Any = node.window  # back from rows: those of a RANGE are kept
    rows = window.range * keys if node.by_rows else flow.rate * (window.range + flow.wait)
    return nanos, flow.width * rows


def _shared(stage: Stage, given: Sequence[Flow], out: Flow) -> Spent:
    """Queries that share panes: a pane level, and the windows of each."""
    [flow], node = given, stage.node
    assert isinstance(node, Together)
    windows = windows_of(stage, node)
    pane, longest = math.gcd(*(w.pane for w in windows)), max(w.range for w in windows)
    groups, keys = flow.keys_in(keys_of(stage), pane), keys_of(stage)
    slices = CHUNK * min(1.0, SLICES * pane / longest)
    again = 1 + longest / max(pane, BATCH / flow.rate) if flow.rate else 1.0
    per_pane = (B * groups + C * flow.keys_in(keys, longest)) * again + slices
    nanos = A * flow.rate + per_pane / pane + EMIT * out.rate
    return nanos, WIDTH * (len(keys) + 2) * groups * (longest + flow.wait) / pane


def _sends_partials(stage: Stage) -> bool:
    return isinstance(stage.node, WindowAggregate) and any(s.name == "panes" for p in stage.inputs for s in p.steps)


def _partials(stage: Stage, flow: Flow) -> float:
    work = workload_of(stage, flow)
    return flow.rate if work is None else flow.rate * work.groups / work.tuples


# -- rows, pairs and sequences -----------------------------------------------------------------------------------------
def _held(flow: Flow, length: float) -> float:
    """The bytes of the rows of a stretch of progress."""
    return flow.rate * flow.width * length if flow.rate else 0.0


def _rows(row: float) -> Callable[[Stage, Sequence[Flow], Flow], Spent]:
    def spent(_stage: Stage, given: Sequence[Flow], out: Flow) -> Spent:
        nanos = row * sum(f.rate for f in given) + cost.EMIT * out.rate
        return nanos, sum(_held(f, f.wait) for f in given)

    return spent


def _join(stage: Stage, given: Sequence[Flow], _out: Flow) -> Spent:
    """A row is kept until the other side has promised past its last partner; with limits, those that they allow."""
    node = stage.node
    assert isinstance(node, Join)
    if (found := regulated(node, given)) is not None:
        nanos = PROBE * sum(found.rates) + PAIR * pairs_of(stage, given) + cost.SORT * sum(f.rate for f in given)
        sides = zip(given, found.rows, strict=True)
        return nanos, sum(_held(f, f.wait) + rows * f.width for f, rows in sides)
    nanos = PROBE * sum(f.rate for f in given) + PAIR * pairs_of(stage, given)
    held = 0.0
    for side, flow in zip(SIDES, given, strict=True):
        last = int(node.window.partners(side, 0)[1])
        held += _held(flow, max(0, last) + max(f.wait for f in given))
    return nanos, held


def _as_of(stage: Stage, given: Sequence[Flow], out: Flow) -> Spent:
    """Left rows wait for the right side; of right rows the latest of each key is kept, and those in the tolerance."""
    node, (left, right) = stage.node, given
    assert isinstance(node, AsOf)
    wait = max(left.wait, right.wait)
    latest = right.keys(keys_of(stage, 1)) * right.width
    nanos = cost.LAST * (left.rate + right.rate) + cost.EMIT * out.rate
    return nanos, _held(left, wait) + latest + _held(right, wait)


def _sequence(stage: Stage, given: Sequence[Flow], out: Flow) -> Spent:
    node = stage.node
    assert isinstance(node, Sequenced)
    length = max(f.wait for f in given) + (node.within or 0)
    nanos = cost.MATCH * sum(f.rate for f in given) + cost.EMIT * out.rate
    return nanos, sum(_held(f, length) for f in given)


_other = _rows(cost.TRACK)
_STAGES: dict[type[Any], Callable[[Stage, Sequence[Flow], Flow], Spent]] = {
    WindowAggregate: _aggregation,
    Together: _shared,
    Distinct: _rows(cost.DISTINCT),
    Ordered: _rows(cost.SORT),
    Top: _rows(cost.RANK),
    Join: _join,
    MultiJoin: spent_on,
    AsOf: _as_of,
    Sequenced: _sequence,
}
