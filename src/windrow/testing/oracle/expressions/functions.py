"""Functions of texts and of time, for one row's values."""

from __future__ import annotations

import re
from decimal import Decimal

import polars as pl

from windrow.errors import QueryError
from windrow.testing.oracle.expressions import kinds, texts
from windrow.testing.oracle.expressions.arithmetic import fitting
from windrow.testing.oracle.expressions.cells import Cell, computed, converted
from windrow.testing.oracle.expressions.kinds import BIGINT, BOOLEAN, DATE, INT, STRING, TIMESTAMP

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": texts.SECOND,
    "minute": 60 * texts.SECOND,
    "hour": 3600 * texts.SECOND,
    "day": texts.DAY,
    "week": 7 * texts.DAY,
}
SHORT = {"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "m": "minute", "min": "minute"}
SHORT |= {"h": "hour", "hr": "hour", "d": "day", "w": "week"}
MONDAY = 4 * texts.DAY  # 1970-01-05 was one
IN_DATE, IN_CLOCK = ("year", "month", "day"), ("hour", "minute", "second")


def unit(name: str) -> int:
    """The microseconds of a unit of time by any of its names."""
    lower = name.lower()
    for word in (lower, lower.removesuffix("s")):
        if (found := UNITS.get(SHORT.get(word, word))) is not None:
            return found
    raise QueryError(f"{name} is not a unit of time")


def as_text(cell: Cell) -> Cell:
    return converted(cell, STRING)


def joined(*cells: Cell) -> Cell:
    return computed(STRING, lambda *parts: "".join(parts), *(as_text(c) for c in cells))


def substring(cell: Cell, start: Cell, length: Cell | None) -> Cell:
    """Positions count from 1, or from the end; those before the text count as well."""

    def of(text: str, position: int, size: int | None = None) -> str:
        begin = position - 1 if position > 0 else len(text) + position if position < 0 else 0
        end = len(text) if size is None else begin + size
        return text[max(begin, 0) : max(end, 0)]

    numbers = [converted(c, BIGINT) for c in (start, length) if c is not None]
    return computed(STRING, of, as_text(cell), *numbers)


def trimmed(cell: Cell, characters: Cell, where: str) -> Cell:
    def of(text: str, which: str) -> str:
        if not which:  # Python would strip blanks
            return text
        if where == "LEADING":
            return text.lstrip(which)
        return text.rstrip(which) if where == "TRAILING" else text.strip(which)

    return computed(STRING, of, as_text(cell), as_text(characters))


def like(cell: Cell, pattern: str, ignore_case: bool) -> Cell:
    """``%`` is any text, ``_`` any character, and a backslash makes them ordinary. ILIKE compares lower case."""
    parts = re.findall(r"\\.|.", pattern.lower() if ignore_case else pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = re.compile("".join(wild.get(p) or re.escape(p[-1]) for p in parts), re.DOTALL)
    return computed(BOOLEAN, lambda s: bool(regex.fullmatch(s.lower() if ignore_case else s)), as_text(cell))


# -- time ------------------------------------------------------------------------------------------------------------
def truncated(cell: Cell, size: int) -> Cell:
    """date_trunc: weeks begin on Mondays."""
    origin = MONDAY if size == UNITS["week"] else 0
    return computed(TIMESTAMP, lambda t: fitting((t - origin) // size * size + origin), converted(cell, TIMESTAMP))


def field(cell: Cell, name: str) -> Cell:
    """A part of a date, or of the time of day."""
    if name in IN_DATE:
        place = IN_DATE.index(name)
        return computed(INT, lambda d: texts.calendar(d)[place], converted(cell, DATE))
    size = UNITS[name]
    most = 24 if name == "hour" else 60
    given = cell if kinds.stamp(cell.dtype) else converted(cell, TIMESTAMP)
    return computed(INT, lambda t: t // size % most, given)


def seconds(cell: Cell) -> Cell:
    """The second of the minute with its fraction."""
    minute = UNITS["minute"]
    exact = pl.Decimal(8, 6)
    return computed(exact, lambda t: Decimal(t % minute).scaleb(-6), converted(cell, TIMESTAMP))
