"""Functions of values, of texts and of time, apart from arithmetic and casts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import polars as pl

from windrow.logical.scalar.strict import Formula, even

REGEX_SPECIAL = "\\.+*?()|[]{}^$#&-~"
SECONDS = pl.Decimal(8, 6)
X = pl.col("0")


def eq(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """NaN equals itself and is greater than every number; the others likewise."""
    return a == b


def ne(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a != b


def gt(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a > b


def ge(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a >= b


def lt(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a < b


def le(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    return a <= b


def any_of(tests: Sequence[pl.Expr]) -> pl.Expr:
    """Whether one is true; NULL if none is and one is NULL."""
    return reduce(lambda a, b: a | b, tests)


def null_where(value: pl.Series, equal: pl.Series) -> pl.Series:
    """The value, except where it is equal."""
    value, equal = even([value, equal])
    return pl.Series([None], dtype=value.dtype).new_from_index(0, len(value)).zip_with(equal.fill_null(False), value)


def extreme(greatest: bool, *values: pl.Series) -> pl.Series:
    """The greatest or least value that is not NULL. NaN is the greatest, and of equal values the first counts.

    >>> extreme(False, pl.Series([float("nan"), 1.0]), pl.Series([2.0, None])).to_list()
    [2.0, 1.0]
    """
    found, *others = even(values)
    for other in others:
        better = other > found if greatest else other < found
        found = other.zip_with((better | found.is_null()).fill_null(False), found)
    return found


def substring(text: pl.Series, start: pl.Series, length: pl.Series | None = None) -> pl.Series:
    """From a position on, counted from 1, or from the end if it is negative; positions before the text count, too.

    >>> substring(pl.Series(["abc"] * 3), pl.Series([2, -5, 0]), pl.Series([5, 3, 1])).to_list()
    ['bc', 'a', 'a']
    """
    position, size = pl.col("1"), X.str.len_chars().cast(pl.Int64)
    before = pl.when(position < 0).then(size + position)
    begin = pl.when(position > 0).then(position - 1).when(position < 0).then(before).otherwise(0)
    first = pl.max_horizontal(begin, 0)
    if length is None:
        return Formula(X.str.slice(first))(text, start)
    taken = pl.max_horizontal(begin + pl.col("2").clip(-(2**31), 2**31 - 1) - first, 0)
    none = pl.any_horizontal(pl.all().is_null())
    return Formula(pl.when(~none).then(X.str.slice(first, taken)))(text, start, length)


def seconds(stamps: pl.Series) -> pl.Series:
    """The second of the minute, with its fraction."""
    micros = X.dt.second().cast(pl.Int64) * 1_000_000 + X.dt.microsecond()
    return Formula((micros.cast(pl.Decimal(38, 6)) / 1_000_000).cast(SECONDS))(stamps)


def like_regex(pattern: str) -> str | None:
    """``%`` and ``_`` as regular expressions; a backslash makes them, and itself, ordinary. None if it is misplaced.

    >>> like_regex("a_%"), like_regex("a" + chr(92) + "_"), like_regex("a" + chr(92))
    ('a..*', 'a_', None)
    """
    found, escaped = [], False
    for c in pattern:
        if escaped and c not in "%_\\":
            return None
        if not escaped and c == "\\":
            escaped = True
            continue
        wild = {"%": ".*", "_": "."}.get(c) if not escaped else None
        found.append(wild or ("\\" + c if c in REGEX_SPECIAL else c))
        escaped = False
    return None if escaped else "".join(found)
