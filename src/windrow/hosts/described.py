"""Bad rows as side outputs show them."""

from __future__ import annotations

import polars as pl

from windrow.spec.names import REASON

BAD_SCHEMA = {"source": pl.String(), "reason": pl.String(), "row": pl.String()}


def described(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Bad rows of any stage in the same columns: where, why, and the row as JSON, with bytes in base64.

    >>> described(pl.DataFrame({"n": [1], "img": [b"abc"], "reason": ["no picture"]}), "stage 0").row(0)
    ('stage 0', 'no picture', '{"n":1,"img":"YWJj"}')
    """
    names = [name for name in rows.columns if name != REASON and not name.startswith("@")]
    values = [_in_json(pl.col(name), rows.schema[name]).alias(name) for name in names]
    shown = pl.struct(values).struct.json_encode() if names else pl.lit("{}")
    return rows.select(pl.lit(source).alias("source"), pl.col(REASON), shown.alias("row"))


def _in_json(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Polars writes no bytes as JSON; Spark writes them in base64."""
    match dtype:
        case pl.Binary():
            return value.bin.encode("base64")
        case pl.List() if _has_bytes(dtype):
            return value.list.eval(_in_json(pl.element(), _inner(dtype)))
        case pl.Array() if _has_bytes(dtype):
            return _in_json(value.arr.to_list(), pl.List(dtype.inner))
        case pl.Struct() if _has_bytes(dtype):
            parts = [_in_json(value.struct.field(f.name), _of(f.dtype)).alias(f.name) for f in dtype.fields]
            return pl.when(value.is_not_null()).then(pl.struct(parts))
    return value


def _has_bytes(dtype: pl.DataType) -> bool:
    match dtype:
        case pl.List() | pl.Array():
            return _has_bytes(_inner(dtype))
        case pl.Struct():
            return any(_has_bytes(_of(each.dtype)) for each in dtype.fields)
    return dtype == pl.Binary


def _inner(dtype: pl.List | pl.Array) -> pl.DataType:
    return _of(dtype.inner)


def _of(dtype: object) -> pl.DataType:
    """Polars has some types as classes."""
    return dtype() if isinstance(dtype, type) else dtype  # type: ignore[return-value]
