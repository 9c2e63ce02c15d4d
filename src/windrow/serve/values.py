"""Rows as JSON text, with the values that the JSON-lines sink (Spark's ``to_json``) writes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

SLICE = 1000  # rows that are text at one time


def rows(frame: pl.DataFrame, size: int = SLICE) -> Iterator[str]:
    """The elements of a JSON array of rows, in pieces of at most ``size`` rows.

    >>> list(rows(pl.DataFrame({"k": ["a", None, "é"], "x": [1.5, float("nan"), 2.0]}), size=2))
    ['{"k": "a", "x": 1.5}, {"k": null, "x": "NaN"}', ', {"k": "\\\\u00e9", "x": 2.0}']
    """
    names = [json.dumps(name) for name in frame.columns]
    for start in range(0, frame.height, size):
        part = frame.slice(start, size).with_columns(_instants(frame))
        texts = (
            "{" + ", ".join(f"{name}: {text(value)}" for name, value in zip(names, row, strict=True)) + "}"
            for row in part.iter_rows()
        )
        yield (", " if start else "") + ", ".join(texts)


def text(value: Any) -> str:
    """One value as JSON. All of it is ASCII, so that no reader takes a character of a text for the end of a line.

    >>> text([Decimal("0.10"), datetime(2024, 1, 1, 10), date(2024, 1, 1), {"n": None}, b"ab"])
    '[0.10, "2024-01-01T10:00:00.000", "2024-01-01", {"n": null}, "YWI="]'
    """
    match value:
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case None | bool() | int() | float() | str():
            return json.dumps(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return json.dumps(_instant(value))
        case date() | time():
            return json.dumps(value.isoformat())
        case timedelta():
            return json.dumps(value / timedelta(seconds=1))
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case dict():
            return "{" + ", ".join(f"{json.dumps(str(k))}: {text(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(text, value)) + "]"
    raise TypeError(f"no JSON for values of type {type(value).__name__}")


def _instant(value: datetime) -> str:
    exact = "microseconds" if value.microsecond % 1000 else "milliseconds"
    if value.tzinfo is None:
        return value.isoformat(timespec=exact)
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=exact) + "Z"


def _instants(frame: pl.DataFrame) -> list[pl.Expr]:
    """Columns of timestamps as text: Polars knows years beyond 9999, and Python does not."""
    found = []
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.Datetime):
            column, zone = pl.col(name), ""
            if dtype.time_zone is not None:
                column, zone = column.dt.convert_time_zone("UTC"), "Z"
            fine = column.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.6f{zone}")
            plain = column.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.3f{zone}")
            found.append(pl.when(column.dt.microsecond() % 1000 == 0).then(plain).otherwise(fine).alias(name))
    return found
