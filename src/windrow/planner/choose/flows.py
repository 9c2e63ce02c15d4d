"""Flows through a plan: what sources give, and what is left of it after each step and stage.

A source is measured on the sample that a host gives, declared by the user, or assumed. Steps on rows are measured on
the sample, too. Results of a stage are estimated from what goes into it: see results.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from windrow.errors import WindrowError
from windrow.logical.nodes import Scan
from windrow.planner.choose.flow import SELECTIVITY, UNTIL_THE_END, Basis, Flow, assumed, together
from windrow.planner.choose.results import out_of
from windrow.planner.choose.statistics import GROUPS, WIDTH, Seen
from windrow.planner.plan import Pipeline, Read, Stage, Step
from windrow.spec.names import PROGRESS

LEAST = 1000  # rows of a sample: fewer say little about rates
FEW = 0.01  # the share of rows that may have wrong clocks
OF_STAGE = ("panes", "table", "bucket", "instants", "pairs", "unique")  # steps before a stage that are its lower half
NOT_RUN = ("apply", "split")  # a user's functions may be expensive
FILTERS = ("select", "retract")


@dataclass
class Flows:
    """``samples``: rows of sources in order of arrival. ``pane``: a source of which nothing is known is assumed to have
    1,000 rows in so much progress; without it, in a second (or unit, or day). ``seen``: what earlier micro-batches have
    shown of sources.
    """

    samples: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    pane: float | None = None
    seen: Mapping[str, Seen] = field(default_factory=dict)
    _reads: dict[Read, Flow] = field(default_factory=dict)
    _stages: dict[Stage, Flow] = field(default_factory=dict)
    _pipelines: dict[int, tuple[Pipeline, Flow]] = field(default_factory=dict)

    def into(self, stage: Stage) -> list[Flow]:
        """What goes into each arm of a stage, as its own operators get it."""
        return [together(self.of(pipeline) for pipeline in arm.inputs) for arm in stage.arms]

    def of(self, pipeline: Pipeline) -> Flow:
        """What comes out of a pipeline; if it leads into a stage, before what is the lower half of that."""
        known = self._pipelines.get(id(pipeline))
        if known is None:
            flow = self.from_source(pipeline.source)
            for step in of_rows(pipeline.steps):
                flow = through(step, flow)
            known = self._pipelines[id(pipeline)] = pipeline, flow
        return known[1]

    def from_source(self, source: Read | Stage) -> Flow:
        """What a source gives, or a stage."""
        if isinstance(source, Read):
            if source not in self._reads:
                self._reads[source] = self._read(source)
            return self._reads[source]
        if source not in self._stages:
            self._stages[source] = out_of(source, self.into(source))
        return self._stages[source]

    def _read(self, read: Read) -> Flow:
        flow = replace(self._declared(read), wait=_wait(read))
        sample = self.samples.get(read.scan.name)
        if sample is None or sample.height < LEAST:
            return flow
        rows = _through_all(read.steps, sample)
        if rows is None or not rows.height:
            return flow
        length, disorder = _span(rows[PROGRESS])
        wait = disorder if flow.wait == 0 and read.scan.source.slack is None else flow.wait
        width = rows.estimated_size() / rows.height
        return Flow(rows.height / length, flow.groups, disorder, wait, width, "measured", rows)

    def _declared(self, read: Read) -> Flow:
        scan, wait = read.scan, _wait(read)
        width = WIDTH * len(scan.schema)
        known = scan.statistics or self.seen.get(scan.name)
        basis: Basis = "assumed" if known is None else "measured" if isinstance(known, Seen) else "declared"
        if read.by_rows:  # it is the number of a row that progresses
            return Flow(1.0, GROUPS if known is None else known.groups, 0.0, wait, width, basis)
        unit = ticks(scan)
        if known is None:
            return assumed(self.pane or unit, width, wait)
        return Flow(known.rate / unit, known.groups, float(scan.source.slack or 0), wait, width, basis)


def ticks(scan: Scan) -> int:
    """The smallest units of progress in the one that rates are declared by: a second, a day, or 1."""
    return 1_000_000 if isinstance(scan.schema[scan.progress], pl.Datetime) else 1


def _span(at: pl.Series) -> tuple[float, float]:
    """How much progress rows cover, and how far they are out of order. A few whose clock is far off do not count."""
    at = at.cast(pl.Float64)  # a difference of two could overflow
    low, high = (float(at.quantile(q, "nearest") or 0.0) for q in (FEW, 1 - FEW))
    far = high - low + 1
    near = at.filter(at.is_between(low - far, high + far))
    ends = [float(end) for end in (near.min(), near.max())]  # type: ignore[arg-type]
    return ends[1] - ends[0] + 1, float((near.cum_max() - near).max() or 0.0)  # type: ignore[arg-type]


def _wait(read: Read) -> float:
    """How far promises are behind rows, as far as that is declared."""
    source = read.scan.source
    if read.by_rows:
        return float(source.row_slack)
    if not read.on_its_progress:
        return float(dict(source.also).get(read.attribute, 0))
    return float(source.slack or source.skew) if source.promises else UNTIL_THE_END


def of_rows(steps: Sequence[Step]) -> list[Step]:
    """The steps on rows, before what is the lower half of a stage."""
    found: list[Step] = []
    for step in steps:
        if step.name in OF_STAGE:
            break
        found.append(step)
    return found


def through(step: Step, flow: Flow) -> Flow:
    """What is left of a flow after a step, measured on its sample if it has one."""
    if flow.rows is not None and flow.rows.height and step.name not in NOT_RUN:
        rows = _through_all([step], flow.rows)
        if rows is not None:
            return flow.passed(rows.height / flow.rows.height, rows)
    return flow.passed(SELECTIVITY if step.name in FILTERS else 1.0)


def _through_all(steps: Sequence[Step], rows: pl.DataFrame) -> pl.DataFrame | None:
    """Rows after some steps; None if they fail: the query itself will raise it, where it can say which row it was."""
    for step in steps:
        try:
            items = step.make().on_batch(0, rows)
        except WindrowError:
            return None
        frames = [item for item in items if isinstance(item, pl.DataFrame)]
        if not frames:
            return None
        rows = pl.concat(frames)
    return rows
