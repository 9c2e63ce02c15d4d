"""Rows of Spark's sources with the time at which they arrived: that of their micro-batch, or of the whole query.

On a stream, ``current_timestamp()`` is the time of the micro-batch. Spark keeps it in the offset log, beside the
offsets, so that a micro-batch that runs again has the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from windrow.errors import PlanError
from windrow.logical.checked import UNNUMBERED
from windrow.planner import Plan
from windrow.sources.own import OWN, Own
from windrow.spec.names import ARRIVAL_TS, POSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_stamps(plan: Plan, sources: Mapping[str, DataFrame | Own]) -> None:
    """Refuse what Spark cannot tell of its rows."""
    for scan in plan.scans():
        if POSITION in scan.stamps and not isinstance(sources[scan.name], OWN):
            raise PlanError(f"stream {scan.name!r} has nothing that numbers its rows. {UNNUMBERED}")


def stamped(source: DataFrame, stamps: Collection[str], columns: Sequence[str] = ("*",)) -> DataFrame:
    """Columns of a DataFrame, as SQL writes them, and when its rows arrived, if that is wanted."""
    if ARRIVAL_TS not in stamps:
        return source.select(*columns)
    return source.selectExpr(*columns, f"current_timestamp() AS {ARRIVAL_TS}")
