"""Plain tumbling windows over a finite DataFrame as Spark's own aggregation, which is faster there and means the same.

Only there: on a stream Spark's aggregation would bring its watermark with it, which is one micro-batch late, is one for
all sources and drops rows that it does not count; and it is not faster (``windrow bench spark-sliding`` at 1). A finite
source has no late rows, so windows are groups like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlglot import exp

from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.stamped import stamped
from windrow.logical.nodes import (
    AggregateCall,
    Filter,
    Node,
    Scan,
    WindowAggregate,
)
from windrow.planner import Plan
from windrow.progress import FARTHEST
from windrow.sources.own import OWN, Own
from windrow.spec.names import WINDOW_END, WINDOW_START
from windrow.spec.options import PLAIN
from windrow.windows import Sliding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WID = "@window"
# What both evaluate alike whatever the values are: arithmetic, for one, is in 64 bits here, and in the operands' there.
LOGIC: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Is, exp.In, exp.Between)
COMPARED: tuple[type[exp.Expr], ...] = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
LEAVES: tuple[type[exp.Expr], ...] = (exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean)


def native(plan: Plan, sources: Mapping[str, DataFrame | Own]) -> DataFrame | None:
    """The result by Spark alone; None where it could differ, or where Spark is no faster."""
    node = plan.logical
    if not isinstance(node, WindowAggregate) or not applies(plan, sources):
        return None
    scan = _scan(node.input)
    source = sources[scan.name]
    assert not isinstance(source, OWN)
    rows = stamped(source, scan.stamps) if scan.stamps else source
    return _aggregated(node, scan, _filtered(node.input, rows), dict(plan.schema))


def applies(plan: Plan, sources: Mapping[str, DataFrame | Own]) -> bool:
    """Whether Spark's own aggregation gives the same results, and faster."""
    node = plan.logical
    if not isinstance(node, WindowAggregate) or not _is_native(node):
        return False
    source = sources[_scan(node.input).name]
    return not isinstance(source, OWN) and not source.isStreaming


def _is_native(node: WindowAggregate) -> bool:
    window = node.window
    plain = isinstance(window, Sliding) and window.range == window.slide and node.options == PLAIN
    asked = node.using is not None or node.memory is not None
    if not plain or asked or not _is_native_input(node.input):
        return False
    given = node.input.schema
    keys = all(isinstance(e, exp.Column) and _exact(given[e.name]) for _, e in node.keys)
    return keys and all(_is_native_call(call, given) for call in node.calls)


def _is_native_input(node: Node) -> bool:
    if isinstance(node, Filter):
        return _is_native_condition(node.predicate, node.schema) and _is_native_input(node.input)
    if not isinstance(node, Scan):
        return False
    if (
        node.source.messages is not None
        or node.source.parse is not None
        or node.source.marker is not None
        or node.source.ahead is not None
    ):
        return False
    dtype = node.schema[node.progress]
    return dtype.is_integer() or (isinstance(dtype, pl.Datetime) and dtype.time_zone is not None)


def _is_native_condition(predicate: exp.Expr, given: Mapping[str, pl.DataType]) -> bool:
    """Comparisons of integers with whole numbers, or of texts with texts: nothing is cast, nothing overflows."""
    if not all(isinstance(n, (*LOGIC, *COMPARED, *LEAVES)) or _is_negative(n) for n in predicate.walk()):
        return False
    columns = [given[c.name] for c in predicate.find_all(exp.Column)]
    literals = list(predicate.find_all(exp.Literal))
    texts = all(c == pl.String for c in columns) and all(x.is_string for x in literals)
    return texts or (all(c.is_signed_integer() for c in columns) and all(x.is_int for x in literals))


def _is_negative(node: exp.Expr) -> bool:
    return isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)


def _is_native_call(call: AggregateCall, given: Mapping[str, pl.DataType]) -> bool:
    if call.argument is None:
        return call.function == "count"
    if not isinstance(call.argument, exp.Column) or call.user is not None or call.parameters:
        return False
    dtype = given[call.argument.name]
    if call.function == "count":
        return True
    numbers = dtype.is_signed_integer()
    narrow = numbers and dtype != pl.Int64  # sums of those cannot overflow; of wider ones Spark's error says less
    return (call.function == "sum" and narrow) or (
        call.function in ("min", "max") and (numbers or dtype == pl.Date or isinstance(dtype, pl.Datetime))
    )


def _exact(dtype: pl.DataType) -> bool:
    """Types of which equal values look alike: a float zero has two signs."""
    return dtype.is_signed_integer() or dtype in (pl.String, pl.Boolean, pl.Date) or isinstance(dtype, pl.Datetime)


def _scan(node: Node) -> Scan:
    while isinstance(node, Filter):
        node = node.input
    assert isinstance(node, Scan)
    return node


def _filtered(node: Node, source: DataFrame) -> DataFrame:
    if not isinstance(node, Filter):
        return source
    return _filtered(node.input, source).where(node.predicate.sql("spark"))


def _aggregated(node: WindowAggregate, scan: Scan, frame: DataFrame, schema: dict[str, pl.DataType]) -> DataFrame:
    from pyspark.sql import functions as f

    assert isinstance(node.window, Sliding)
    size, origin = node.window.slide, node.window.origin
    timed = isinstance(node.bound, pl.Datetime)
    at = _column(scan.progress)
    value = f.unix_micros(at) if timed else at.cast("bigint")
    near = at.isNotNull() & (value > f.lit(-FARTHEST)) & (value < f.lit(FARTHEST))
    start = value - f.pmod(value - f.lit(origin), f.lit(size))
    groups = [_column(e.name).alias(n) for n, e in node.keys]
    grouped = frame.where(near).groupBy(start.alias(WID), *groups)
    results = grouped.agg(*(_call(c).alias(c.name) for c in node.calls))
    types = {field.name: field.dataType for field in spark_schema(schema)[0].fields}

    def bound(column: Column) -> Column:
        return f.timestamp_micros(column) if timed else column

    bounds: dict[str, Any] = {WINDOW_START: bound(_column(WID)), WINDOW_END: bound(_column(WID) + f.lit(size))}
    return results.select(*(bounds.get(c, _column(c)).cast(types[c]).alias(c) for c in schema))


def _call(call: AggregateCall) -> Column:
    from pyspark.sql import functions as f

    if call.argument is None:
        return f.count(f.lit(1))
    found: Column = getattr(f, call.function)(_column(call.argument.name))
    return found


def _column(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")
