"""Static tables, which streams can be joined with."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.api import given
from windrow.api.functions import Udf
from windrow.api.resolved import Names, key_pairs
from windrow.errors import DataError, QueryError, listing
from windrow.logical import expressions
from windrow.logical.checked_join import all_columns
from windrow.logical.checked_lookup import looked_up
from windrow.logical.nodes import Lookup, Node
from windrow.sources.frames import dicts, normal
from windrow.sources.frames import table as as_frame
from windrow.spec.tables import Table

LIMIT = "256 MB"
UNNAMED = "table"


def table(data: Any, *, name: str = UNNAMED, limit: str | int = LIMIT) -> Table:
    """A static table, to join streams with: ``stream.join(wr.table(..), on="k")``.

    ``data``: rows, Arrow, pandas or Polars data, or a Spark DataFrame that is not streaming, whose rows are collected
    once, when a query with it starts. All rows go to every worker, so they must not be larger than ``limit``. They
    are not part of a checkpoint: after a restart a query uses the table as it is then.

    >>> import windrow as wr
    >>> names = wr.table([{"k": 1, "name": "one"}], name="names")
    >>> wr.stream([{"t": 5, "k": 1}, {"t": 6, "k": 2}], progress="t").join(names, on="k").collect().rows()
    [(5, 1, 1, 'one')]
    """
    given.text(name, "name")
    most = given.size(limit)
    if given.is_spark(data):
        return _from_spark(data, name, most)
    frame = as_frame(data)
    if frame is None:
        frame = normal(pl.DataFrame(dicts(data), infer_schema_length=None))
    if not frame.width:
        raise DataError(f"table {name!r} has no columns: give at least one row, or a table with a schema")
    if (size := int(frame.estimated_size())) > most:
        raise DataError(f"table {name!r} has {size:,} bytes, more than its limit of {most:,}: give a greater limit=")
    return Table(name, tuple(frame.schema.items()), partial(_same, frame))


def _same(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def _from_spark(data: Any, name: str, most: int) -> Table:
    from windrow.hosts.spark.schema import from_spark
    from windrow.hosts.spark.tables import collected

    if data.isStreaming:
        raise DataError(f"table {name!r} is a streaming DataFrame: a stream is declared with wr.stream")
    if twice := {c for c in data.columns if data.columns.count(c) > 1}:
        raise DataError(f"columns need different names; given twice: {listing(twice)}")
    return Table(name, tuple(from_spark(data.schema).items()), partial(collected, data, name, most))


def joined_with(
    node: Node,
    right: Table,
    keys: tuple[Names, Names, Names],
    how: str,
    where: str | Udf | None,
    suffix: str,
    others: dict[str, Any],
) -> Lookup:
    """``Stream.join`` with a table. ``others``: arguments that are about two streams only."""
    given.one_of(how, "how", ("inner", "left", "right", "full", "semi", "anti"))
    if odd := [name for name, value in others.items() if value is not None]:
        raise QueryError(
            f"{listing(odd)}: a join with a table has no times that could be near, and nothing is late in it. To join "
            "two streams, declare both with wr.stream"
        )
    on = key_pairs(node, right, *keys)
    columns = all_columns(node, right, given.text(suffix, "suffix"))
    if where is None or isinstance(where, Udf):
        return looked_up(node, right, on, columns, how=how, test=where.function if where is not None else None)
    text = given.text(where, "where")
    pairs = looked_up(node, right, on, columns, how=how).pairs
    condition: exp.Expr = expressions.resolve(expressions.column_or(text, pairs), pairs, text)
    return looked_up(node, right, on, columns, condition, text, how=how)
