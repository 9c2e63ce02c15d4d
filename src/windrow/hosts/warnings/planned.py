"""What is known before anything has run, as a report: the plan, and a sample of the rows."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from windrow.hosts.outline import ROWS, outline_of
from windrow.hosts.report import Report, Source
from windrow.hosts.tally import Seen
from windrow.logical.nodes import Scan
from windrow.planner import Plan
from windrow.planner.origins import key_of
from windrow.spec.time import parsed, physical


def planned(plan: Plan, samples: Mapping[str, pl.DataFrame]) -> Report:
    """A report without a micro-batch. ``samples``: the first rows of sources where they can be read."""
    outline = outline_of(plan)
    reads = {key_of(read): read for read in plan.reads()}
    sources = []
    for declared in outline.sources:
        rows = samples.get(declared.name)
        known = rows is not None and declared.kind != ROWS and declared.attribute in rows.columns
        seen = _seen(rows, reads[declared.key].scan, declared.attribute) if rows is not None and known else Seen()
        sources.append(Source(declared, seen, seen.rows))
    return Report(outline, -1, tuple(sources), (), (), {}, {}, 0, 0)


def _seen(rows: pl.DataFrame, scan: Scan, attribute: str) -> Seen:
    """How many rows of a sample have a progress value, and the least and the greatest."""
    column = pl.col(attribute)
    kind, dtype = rows.schema[attribute], scan.schema[attribute]
    if kind == pl.String and attribute == scan.progress:
        column = parsed(column, scan.source.parse)
    elif kind.is_temporal() != dtype.is_temporal() or not (kind.is_temporal() or kind.is_integer()):
        return Seen()
    values = rows.select(physical(column, dtype)).to_series().drop_nulls()
    if not values.len():
        return Seen()
    return Seen(values.len(), least=int(values.min()), greatest=int(values.max()))  # type: ignore[arg-type]
