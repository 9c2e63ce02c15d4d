"""CAST between all types that Spark (ANSI) casts between; the lenient form gives NULL where the strict one raises."""

from __future__ import annotations

from functools import partial

import polars as pl

from windrow.logical.scalar import texts
from windrow.logical.scalar.strict import Formula, applied, says
from windrow.logical.scalar.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Typed,
    is_instant,
    is_number,
    is_text,
    type_name,
)

MICROS = 1_000_000
X = pl.col("0")
INSTEAD = "try_cast gives NULL there"


def castable(source: pl.DataType, target: pl.DataType) -> bool:
    """Whether there is such a cast: what Spark (ANSI) refuses is refused here."""
    if source in (target, pl.Null()) or (isinstance(source, pl.Duration) and isinstance(target, pl.Duration)):
        return True
    if is_text(source) or target == TEXT:
        return not isinstance(source, (pl.Duration, pl.List, pl.Struct, pl.Array))
    if is_number(source) or source == pl.Boolean:
        numbers = is_number(target) or target == pl.Boolean
        return numbers or (target == TIMESTAMP and is_number(source) and not isinstance(source, pl.Decimal))
    if is_instant(source):
        return is_instant(target) or (source == TIMESTAMP and is_number(target))
    return False


def implicit(source: pl.DataType, target: pl.DataType) -> bool:
    """Whether a value of one type stands for one of the other without a CAST."""
    spans = isinstance(source, pl.Duration) and isinstance(target, pl.Duration)
    kin = spans or (is_number(source) and is_number(target)) or (is_instant(source) and is_instant(target))
    known = kin or is_text(source) or source in (target, pl.Null()) or target == TEXT
    return known and castable(source, target)


def cast(given: Typed, target: pl.DataType, text: str, lenient: bool = False) -> Typed:
    """A value in another type; ``text`` is what was written, for the error where a row has none."""
    source = given.dtype
    if source == target:
        return given
    if source == pl.Null:
        return Typed(pl.lit(None, target), target)
    if isinstance(given.value, int) and target in (BIGINT, DOUBLE):
        return Typed(pl.lit(given.value, target), target, value=given.value)
    inner = Typed(given.expr.cast(TEXT), TEXT, given.fallible) if is_text(source) else given
    fails = None if lenient else says(f"{text} has no value of type {type_name(target)}", INSTEAD)
    if is_text(source):
        return inner if target == TEXT else applied(_reader(target), [inner], target, fails)
    if is_number(target) and not _widens(source, target):
        return applied(partial(_narrowed, dtype=target), [inner], target, fails)
    if target == TIMESTAMP and source.is_float():
        return applied(_instant_of_float, [inner], target, fails)
    if target == TIMESTAMP and source.is_integer():
        return applied(_INSTANT_OF_INTEGER, [inner], target)
    if target == TEXT and (source.is_float() or isinstance(source, pl.Datetime)):
        return applied(texts.of_anything, [inner], target)
    return Typed(_plain(inner.expr, source, target), target, given.fallible)


def _widens(source: pl.DataType, target: pl.DataType) -> bool:
    """Whether every number of one type has a value in the other."""
    if target.is_float():
        return not is_instant(source)
    if source.is_integer() and target.is_integer():
        (low, high), (least, most) = _ends(source), _ends(target)
        return least <= low and high <= most
    if isinstance(target, pl.Decimal):
        return isinstance(source, pl.Decimal) and target.precision == 38 and target.scale >= source.scale
    return source == pl.Boolean


def _ends(dtype: pl.DataType) -> tuple[int, int]:
    bits = int(str(dtype).lstrip("UInt"))
    return (0, 2**bits - 1) if dtype.is_unsigned_integer() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _plain(value: pl.Expr, source: pl.DataType, target: pl.DataType) -> pl.Expr:
    """A cast that has a value for every row."""
    if target == BOOLEAN:
        return value != 0
    if isinstance(target, pl.Datetime):
        zone = target.time_zone
        return value.cast(TIMESTAMP_NTZ).dt.replace_time_zone(zone) if source == DATE else _zoned(value, source, zone)
    if target == DATE:
        return value.dt.date()
    return value.cast(target, strict=False)


def _zoned(value: pl.Expr, source: pl.DataType, zone: str | None) -> pl.Expr:
    same = isinstance(source, pl.Datetime) and source.time_zone in (None, "UTC")
    instants = value if same else value.dt.convert_time_zone("UTC")
    return instants.dt.replace_time_zone(zone).dt.cast_time_unit("us")


def _narrowed(value: pl.Series, dtype: pl.DataType) -> pl.Series:
    """A number, or the seconds of an instant, in a type that may be too small: cut off towards zero, NULL outside."""
    if isinstance(value.dtype, pl.Datetime):
        micros = value.dt.cast_time_unit("us").to_physical()
        if dtype.is_float():
            seconds = pl.Series(micros.to_numpy() / MICROS, dtype=DOUBLE)  # Polars would multiply by the reciprocal
            return seconds.set(micros.is_null(), None).cast(dtype)
        value = micros // MICROS
    if value.dtype.is_float() and dtype == BIGINT:  # the double beside the greatest integer counts as that, in Spark
        whole = value.cast(BIGINT, strict=False)
        return whole.set((value == 2.0**63).fill_null(False), 2**63 - 1)
    return value.cast(dtype, strict=False)


_HIGHEST = (2**63 - 1) // MICROS  # beyond it Spark stays at the end of time
_ENDS = pl.when(X > _HIGHEST).then(2**63 - 1).when(X < -_HIGHEST).then(-(2**63))
_INSTANT_OF_INTEGER = Formula(_ENDS.otherwise(X.cast(BIGINT) * MICROS).cast(TIMESTAMP))


def _instant_of_float(seconds: pl.Series) -> pl.Series:
    return _narrowed(seconds.cast(DOUBLE) * MICROS, BIGINT).cast(TIMESTAMP)


def _reader(target: pl.DataType) -> partial[pl.Series]:
    if target.is_integer():
        return partial(texts.integer, dtype=target)
    if target.is_float():
        return partial(texts.number, dtype=target)
    if isinstance(target, pl.Datetime):
        return partial(_stamp, dtype=target)
    if target == DATE:
        return partial(texts.date)
    if target == BOOLEAN:
        return partial(texts.boolean)
    return partial(Formula(X.cast(target, strict=False)))


def _stamp(text: pl.Series, dtype: pl.Datetime) -> pl.Series:
    return texts.timestamp(text, zoned=dtype.time_zone is not None).cast(dtype)
