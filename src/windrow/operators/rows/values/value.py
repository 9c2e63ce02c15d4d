"""What the formats share: values in, rows out, with the reason for each value that is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import polars as pl

from windrow.spec.time import iso_timestamp

Reasons = dict[int, str]  # by the number of the value


class Values(Protocol):
    """A format. The frame has a row for each value; a row with a reason is no row, whatever is in it."""

    def rows(self, values: list[bytes]) -> tuple[pl.DataFrame, Reasons]: ...


def from_text(text: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A column of texts as one of another type; NULL where a text is no such value.

    >>> from_text(pl.Series(["1.5", "1.255", "x"]), pl.Decimal(10, 2)).to_list()
    [Decimal('1.50'), None, None]
    """
    column = pl.col("text")
    match dtype:
        case pl.String():
            return text
        case pl.Boolean():
            found = column.str.to_lowercase().replace_strict({"true": True, "false": False}, default=None)
        case pl.Date():
            found = column.str.to_date("%Y-%m-%d", strict=False)
        case pl.Datetime():
            found = iso_timestamp(column)
            found = found if dtype.time_zone else found.dt.replace_time_zone(None)
        case pl.Binary():
            found = column.str.decode("base64", strict=False)
        case pl.Decimal():
            cut = column.str.extract(r"\.(\d*?)0*$").str.len_bytes() > dtype.scale
            found = pl.when(~cut.fill_null(False)).then(column.cast(dtype, strict=False))
        case _:
            found = column.cast(dtype, strict=False)
    return text.alias("text").to_frame().select(found.cast(dtype).alias(text.name)).to_series()


def misfits(text: pl.Series, column: pl.Series, wanted: str) -> Reasons:
    """The reasons for texts that became NULL."""
    odd = (text.is_not_null() & column.is_null()).arg_true().to_list()
    return {row: f"column {wanted}: {text[row]!r:.100} is no {column.dtype}" for row in odd}


def first(*found: Mapping[int, str]) -> Reasons:
    """The reasons of several columns: of each value the first."""
    together: Reasons = {}
    for each in found:
        together = {**each, **together}
    return together
