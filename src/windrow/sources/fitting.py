"""Rows that are pushed into a running query, brought to the columns and types that its source was declared with."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import DataError, listing
from windrow.operators.progress.admit import UNPARSABLE, foreign
from windrow.sources.frames import dicts, normal, normal_type, table
from windrow.spec.names import REASON

TEXTS = (pl.String, pl.Categorical, pl.Enum)
MISFIT = (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError)
KINDS: dict[type[pl.DataType], type] = {pl.Int64: int, pl.Float64: float, pl.String: str, pl.Boolean: bool}
FEW = 8  # rows
NOTHING = pl.DataFrame()
Odd = dict[int, Any]  # the values that do not fit, by row


@dataclass(frozen=True)
class Fitting:
    """The declared columns of a source, and which of them a query needs.

    A batch is taken whole or not at all. A value goes into a column whose type can hold it: an integer into a wider
    one or a float, a whole float or decimal into an integer, a decimal into one of another precision if nothing is cut
    off, a timestamp of another unit or zone (one without a zone is in UTC), a date into a timestamp. A row whose
    progress value does not fit is a bad row, and so is a marker about a group of another type; any other value that
    does not fit is an error. Dicts may leave columns out, which are NULL then; a table must have all that the query
    needs. Other columns are left out.

    >>> Fitting("s", {"t": pl.Int64(), "x": pl.Float64()}, "t").fit([{"t": 1, "x": 2}, {"t": 3, "y": 0}])[0].rows()
    [(1, 2.0), (3, None)]
    """

    name: str
    schema: Mapping[str, pl.DataType]
    progress: str
    needed: Collection[str] = ()
    marker: str | None = None  # its values can be anything: those that are no promise are bad rows
    stamps: Collection[str] = ()  # columns that rows get as they arrive, and must not have yet

    def fit(self, data: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows as the query takes them, and the bad ones with the reason, their progress values as text."""
        if (ready := self._as_declared(data)) is not None:
            return ready, NOTHING
        given = table(data)
        if given is not None:
            self._check_columns(given)
            self._check_stamps(given.columns)
            found = {c: fitted(given[c], t) for c, t in self.schema.items() if c in given.columns}
            marks = [given[self.marker]] if self.marker is not None else []
        else:
            rows = dicts(data)
            self._check_stamps({name for row in rows for name in row} if self.stamps else ())
            found = {c: _of_values(c, [row.get(c) for row in rows], t) for c, t in self.schema.items()}
            marks = [_marks(self.marker, rows)] if self.marker is not None else []
        frame = pl.DataFrame([*(series for series, _ in found.values()), *marks])
        markers = set(marks[0].is_not_null().arg_true()) if marks else set()
        bad: dict[int, str] = {}
        for column, (_, odd) in found.items():
            bad |= {row: foreign(column, value, self.schema[column]) for row, value in odd.items() if row in markers}
            rest = odd.keys() - markers
            if rest and column != self.progress:
                raise self._misfit(column, min(rest), odd[min(rest)])
            bad |= dict.fromkeys(rest, UNPARSABLE)
        return self._parted(frame, bad, found[self.progress][1]) if bad else (frame, NOTHING)

    def _as_declared(self, data: Any) -> pl.DataFrame | None:
        """A frame with the declared columns, in their order, and nothing else, or a few rows with values of exactly
        their types: nothing can be wrong with these, and looking for it would take longer than all that follows.
        """
        if self.marker is not None:
            return None
        if isinstance(data, pl.DataFrame):
            return data if data.columns == self._names and data.dtypes == self._dtypes else None
        if type(data) is not list or not 0 < len(data) <= FEW or self._kinds is None:
            return None
        if not all(type(row) is dict and {c: type(v) for c, v in row.items()} == self._kinds for row in data):
            return None
        try:
            return pl.DataFrame(data, schema=self.schema)
        except MISFIT:  # a number beyond its type
            return None

    @cached_property
    def _names(self) -> list[str]:
        return list(self.schema)

    @cached_property
    def _dtypes(self) -> list[pl.DataType | None]:
        """The declared types; None, which no column has, for those that are changed to others inside a query."""
        return [dtype if normal_type(dtype) == dtype else None for dtype in self.schema.values()]

    @cached_property
    def _kinds(self) -> dict[str, type] | None:
        """The types of Python values that are those of the columns; None if a column has no such type."""
        found = {c: KINDS.get(type(dtype)) for c, dtype in self.schema.items()}
        return {c: kind for c, kind in found.items() if kind is not None} if None not in found.values() else None

    def _parted(self, frame: pl.DataFrame, bad: Mapping[int, str], odd: Odd) -> tuple[pl.DataFrame, pl.DataFrame]:
        inside = pl.Series(np.isin(np.arange(frame.height), list(bad)))
        shown = [str(odd[row]) if row in odd else None for row in sorted(bad)]
        text = pl.Series(self.progress, shown, dtype=pl.String)
        why = pl.Series(REASON, [bad[row] for row in sorted(bad)], dtype=pl.String)
        return frame.filter(~inside), frame.filter(inside).with_columns(text, why)

    def _check_columns(self, given: pl.DataFrame) -> None:
        wanted = {*self.needed, self.progress, *([self.marker] if self.marker is not None else [])}
        if missing := wanted.difference(self.stamps, given.columns):
            raise DataError(
                f"the table for source {self.name!r} lacks {listing(missing)}, which the query needs; it has: "
                f"{listing(given.columns)}. Nothing of it was taken"
            )

    def _check_stamps(self, columns: Collection[str]) -> None:
        if there := [c for c in self.stamps if c in columns]:
            raise DataError(
                f"rows of source {self.name!r} get {listing(there)} as they arrive, and these have values there: "
                "declare the stream with that column, or leave it out. Nothing of the batch was taken"
            )

    def _misfit(self, column: str, row: int, value: Any) -> DataError:
        hint = " (at the start it had only NULLs: declare its type)" if self.schema[column] == pl.Null else ""
        return DataError(
            f"column {column!r} of source {self.name!r} is of type {self.schema[column]}{hint}, and row {row} of the "
            f"batch, counted from 0, has {value!r} of type {type(value).__name__}. Nothing of the batch was taken"
        )


def fitted(given: pl.Series, dtype: pl.DataType) -> tuple[pl.Series, Odd]:
    """A column as one of another type, and the values that this type cannot hold; they are NULL.

    >>> fitted(pl.Series("x", [1.0, 1.5]), pl.Int64())[1]
    {1: 1.5}
    """
    if normal_type(given.dtype) != given.dtype:
        given = normal(given.to_frame()).to_series()
    if given.dtype == dtype:
        return given, {}
    if not _takes(dtype, given.dtype):
        lost = given.is_not_null()
        return pl.Series(given.name, [None] * len(given), dtype=dtype), _odd(given, lost)
    cast = given.cast(dtype, strict=False)
    if given.dtype == pl.Null:
        return cast, {}
    lost = given.is_not_null() & (cast.is_null() | _changed(given, cast))
    return cast.zip_with(~lost, pl.Series([None], dtype=dtype)) if lost.any() else cast, _odd(given, lost)


def _odd(given: pl.Series, lost: pl.Series) -> Odd:
    rows = lost.arg_true().to_list()
    return dict(zip(rows, given.filter(lost).to_list(), strict=True))


def _takes(dtype: pl.DataType, given: pl.DataType) -> bool:
    """Whether a column of one type can take values of another, as far as they fit."""
    if given in (dtype, pl.Null()):
        return True
    if isinstance(dtype, pl.List | pl.Array) and isinstance(given, pl.List | pl.Array):
        return _takes(_inner(dtype), _inner(given))
    if isinstance(dtype, pl.Struct) and isinstance(given, pl.Struct):
        wanted = {field.name: field.dtype for field in dtype.fields}
        return all(_takes(_kind(wanted[f.name]), _kind(f.dtype)) for f in given.fields if f.name in wanted)
    numbers = dtype.is_float() and given.is_numeric()
    whole = dtype.is_integer() and given.is_numeric()
    exact = dtype.is_decimal() and (given.is_integer() or given.is_decimal())
    times = isinstance(dtype, pl.Datetime | pl.Date) and isinstance(given, pl.Datetime | pl.Date)
    texts = isinstance(dtype, TEXTS) and isinstance(given, TEXTS)
    return numbers or whole or exact or times or texts or (isinstance(dtype, pl.Duration) and given == pl.Duration)


def _kind(dtype: Any) -> pl.DataType:
    """A type of a field or of elements, which Polars also lets be a class."""
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _inner(dtype: pl.List | pl.Array) -> pl.DataType:
    return _kind(dtype.inner)


def _changed(given: pl.Series, cast: pl.Series) -> pl.Series:
    """Where a cast did not give NULL, and yet lost something."""
    if cast.dtype.is_float():  # whatever it is rounded to is what such a column holds, unless it is beyond it
        return cast.is_infinite() & ~given.cast(pl.Float64).is_infinite()
    if isinstance(cast.dtype, (pl.Datetime, pl.Duration, *TEXTS)):  # text of categories, instants of other clocks
        return pl.Series([False]).new_from_index(0, len(cast))
    return cast.cast(given.dtype, strict=False).ne_missing(given)


# -- dicts -------------------------------------------------------------------------------------------------------------
def _of_values(name: str, values: Sequence[Any], dtype: pl.DataType) -> tuple[pl.Series, Odd]:
    """Python values as a column. Each type by itself: Polars would take the first for the type of all."""
    if dtype.is_nested():
        return _nested(name, values, dtype)
    rows: dict[Any, list[int]] = {}
    for row, value in enumerate(values):
        zoned = isinstance(value, datetime) and value.tzinfo is not None
        rows.setdefault((type(value), zoned), []).append(row)
    parts, odd = list[pl.Series](), Odd()
    for at in rows.values():
        column = _inferred(name, [values[row] for row in at])
        part, lost = fitted(column, dtype) if column is not None else (None, dict.fromkeys(range(len(at))))
        parts.append(pl.Series(name, [None] * len(at), dtype=dtype) if part is None else part)
        odd |= {at[i]: values[at[i]] for i in lost}
    if len(rows) < 2:
        return parts[0] if parts else pl.Series(name, [], dtype=dtype), odd
    places = np.argsort(np.concatenate([np.array(at) for at in rows.values()]))
    return pl.concat(parts).gather(places), odd


def _inferred(name: str, values: Sequence[Any]) -> pl.Series | None:
    try:
        found = pl.Series(name, values)
    except MISFIT:
        try:  # integers of many sizes: Polars goes by the first
            found = pl.Series(name, values, dtype=pl.Int128)
        except MISFIT:
            return None
    return None if found.dtype == pl.Object else found


def _nested(name: str, values: Sequence[Any], dtype: pl.DataType) -> tuple[pl.Series, Odd]:
    """Lists and structs, compared with what became of them: Polars cuts 2.5 to 2 inside them."""
    try:
        column = pl.Series(name, values, dtype=dtype)
    except MISFIT:
        held = [_held(value, dtype) for value in values]
        column = pl.Series(name, held, dtype=dtype)
    pairs = zip(values, column.to_list(), strict=True)
    return column, {row: value for row, (value, kept) in enumerate(pairs) if not _same(value, kept)}


def _held(value: Any, dtype: pl.DataType) -> Any:
    """What a column of this type holds of a value: nothing if it is of another kind."""
    try:
        return pl.Series([value], dtype=dtype).to_list()[0]
    except MISFIT:
        return None


def _same(given: Any, held: Any) -> bool:
    if isinstance(held, dict) and isinstance(given, Mapping):
        return all(_same(given.get(field), value) for field, value in held.items())
    if isinstance(held, list) and isinstance(given, Sequence | np.ndarray):
        return len(given) == len(held) and all(map(_same, given, held))
    if isinstance(held, float) and isinstance(given, float) and math.isnan(held):
        return math.isnan(given)
    if isinstance(held, datetime) and isinstance(given, datetime):  # of another zone, or of none
        return True
    return isinstance(given, bool) == isinstance(held, bool) and bool(given == held)


def _marks(name: str, rows: Sequence[Mapping[str, Any]]) -> pl.Series:
    """A column of markers as they are; of several types as text, which can be read as well."""
    values = [row.get(name) for row in rows]
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) < 2 and (found := _inferred(name, values)) is not None:
        return normal(found.to_frame()).to_series()
    return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
