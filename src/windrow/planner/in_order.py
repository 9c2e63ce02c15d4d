"""Plans in the in-order style (IOP): rows are put in order where inputs meet, and what that costs (Li 8.2, 8.3)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.errors import PlanError
from windrow.logical.explain import span
from windrow.logical.nodes import Distinct, Join, Node, WindowAggregate
from windrow.planner.choice import LEAST, Given, sample_of
from windrow.planner.plan import Meeting, Pipeline, Stage
from windrow.planner.rows import merging
from windrow.spec.in_order import MODES
from windrow.spec.names import PROGRESS
from windrow.windows import Partitioned

IOP = "iop"
ORDERED = tuple(f"{mode}-join" for mode in MODES)


def check_in_order(node: WindowAggregate) -> None:
    """Refuse what rows in order cannot do."""
    if isinstance(node.window, Partitioned) or (node.by_rows and len(node.input.arrival) > 1):
        raise PlanError("using='iop': rows of partitions have no common order; leave it out")
    if node.options.late not in ("drop", "error") or node.options.versioned:
        raise PlanError(
            "using='iop': a row that breaks the order is gone before a window sees it, so LATE SIDE, LATE REVISE and "
            "EMIT EARLY need the other plan: leave it out"
        )


def check_join_in_order(node: Join) -> None:
    """The same for a join."""
    if "side" in node.late:
        raise PlanError(
            "using='iop': a row that breaks the order is gone before the join sees it, so late='side' needs the other "
            "plan: leave it out"
        )


def merged(node: WindowAggregate | Distinct, inputs: Sequence[Pipeline], given: Given) -> Meeting:
    """The inputs of a stage in order."""
    late = node.options.late if isinstance(node, WindowAggregate) else "drop"
    return merging(late=late, cost=cost_of_order(node.input, inputs, given))


def cost_of_order(node: Node, inputs: Sequence[Pipeline], given: Given) -> str:
    """What it costs to have the rows of a node in order, for ``explain``: how long they wait, and the memory."""
    if inputs and all(isinstance(p.source, Stage) and p.source.algorithm in ORDERED for p in inputs):
        return "latency: none but that of the join; memory: its results of one promise"
    if isinstance(node.origin, WindowAggregate):  # a promise that closes windows also puts them in order
        return "latency: none but that of the windows; memory: the results of one promise"
    wait = _wait(node)
    if wait is None:
        return "latency and memory: until the slowest input promises; how far behind that is, is not known"
    dtype = node.schema[node.progress or ""]
    latency = f"latency: {span(wait, dtype)} of progress, and what the slowest input is behind the others"
    rows, size = _amount(node, inputs, given, wait, dtype)
    if rows is None:
        return f"{latency}; memory: all rows of that time; their rate is not known (declare it with wr.Statistics)"
    return f"{latency}; memory: about {rows:,.0f} rows or {rows * size:,.0f} bytes, and those of that skew"


def _wait(node: Node) -> int | None:
    """The slack of the slowest source, where all have one."""
    slacks = [scan.source.slack for scan in node.scans]
    known = [s for s in slacks if s is not None]
    return max(known) if known and len(known) == len(slacks) else None


def _amount(
    node: Node, inputs: Sequence[Pipeline], given: Given, wait: int, dtype: pl.DataType
) -> tuple[float | None, float]:
    """Rows that wait at the same time, and bytes of each; measured, declared, or not known."""
    rows = sample_of(inputs, given)
    if rows is not None and rows.height >= LEAST:
        length = int(rows[PROGRESS].max()) - int(rows[PROGRESS].min())  # type: ignore[arg-type]
        return rows.height * wait / max(1, length), rows.estimated_size() / rows.height
    statistics = [scan.statistics for scan in node.scans]
    if not statistics or any(s is None for s in statistics):
        return None, 0.0
    unit = 1_000_000 if isinstance(dtype, pl.Datetime) else 1
    return sum(s.rate for s in statistics if s) * wait / unit, 8.0 * len(node.schema)
