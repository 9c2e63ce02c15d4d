"""Values in CSV: the columns in their order, without a header."""

from __future__ import annotations

import csv
from collections.abc import Mapping

import polars as pl

from windrow.operators.rows.values.value import Reasons, first, from_text, misfits


class CsvValues:
    """Each value is a line: fields between commas, in double quotes where they hold one. An empty field is NULL.

    >>> rows, bad = CsvValues({"k": pl.String(), "x": pl.Int64()}).rows([b"a,1", b'"b, c",2', b"d", b"e,f"])
    >>> rows.rows()[:2], bad[2]
    ([('a', 1), ('b, c', 2)], 'the value has 1 fields, and there are 2 columns')
    """

    def __init__(self, fields: Mapping[str, pl.DataType]) -> None:
        self.fields = dict(fields)

    def rows(self, values: list[bytes]) -> tuple[pl.DataFrame, Reasons]:
        bad: Reasons = {}
        lines = pl.Series("line", [_text(value) for value in values], dtype=pl.String)
        bad |= dict.fromkeys(lines.is_null().arg_true(), "the value is not UTF-8")
        lines = lines.str.strip_chars_end("\r\n")
        parts = lines.str.split(",")
        quoted = lines.str.contains('["\r\n]').fill_null(False).arg_true().to_list()
        if quoted:
            parts, odd = _unquoted(lines, parts, quoted)
            bad |= odd
        counts = parts.list.len()
        for row in (counts != len(self.fields)).fill_null(False).arg_true():
            bad.setdefault(row, f"the value has {counts[row]} fields, and there are {len(self.fields)} columns")
        columns, reasons = [], [bad]
        for place, (name, dtype) in enumerate(self.fields.items()):
            text = parts.list.get(place, null_on_oob=True).alias(name)
            text = text.set(text == "", None)
            columns.append(from_text(text, dtype).alias(name))
            reasons.append(misfits(text, columns[-1], name))
        return pl.DataFrame(columns), first(*reasons)


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _unquoted(lines: pl.Series, parts: pl.Series, quoted: list[int]) -> tuple[pl.Series, Reasons]:
    """The fields of lines with quotes, one by one."""
    found, bad = parts.to_list(), Reasons()
    for row in quoted:
        try:
            [found[row]] = csv.reader([lines[row]], strict=True)
        except (csv.Error, ValueError) as error:
            found[row], bad[row] = None, f"the value is not one line of CSV: {error}"
    return pl.Series(found, dtype=pl.List(pl.String)), bad
