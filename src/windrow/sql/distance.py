"""``WITHIN 10 MINUTES`` and ``KEYS 1000``: what bounds sequences and as-of joins."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.expressions import fail
from windrow.spec.lengths import length
from windrow.sql.trees import WindowLength


def distance(given: WindowLength, dtype: pl.DataType, sql: str) -> int:
    """The greatest distance, in the unit of the times."""
    unit = given.text("unit")
    if unit in ("ROW", "ROWS") or given.name == "ALL":
        raise fail(given, "WITHIN is a length of time: the times of rows may be this far apart", sql)
    try:
        return length(f"{given.name} {unit}".strip(), dtype, "WITHIN", zero=True)
    except QueryError as error:
        raise fail(given, str(error), sql) from None


def number(given: exp.Expr | None, sql: str) -> int | None:
    """The number of keys, if it is given."""
    if given is None:
        return None
    if not given.name.isdecimal() or int(given.name) == 0:
        raise fail(given, f"KEYS takes a whole number of keys, 1 or more, not {given.name}", sql)
    return int(given.name)
