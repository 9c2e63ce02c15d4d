"""Checks of the arguments of the Python API: one of the wrong type is an error that names it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from windrow.errors import QueryError

GREATEST = 1e300  # excludes infinity and NaN
MOST_BYTES = 2**63 - 1
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(bytes?|[kmgt]i?b|)", re.IGNORECASE)
POWERS = {"": 1, "b": 1, "k": 1, "m": 2, "g": 3, "t": 4}


def text(given: Any, what: str) -> str:
    """A string.

    >>> text(3, "progress")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: progress=3 must be a string
    """
    if not isinstance(given, str):
        raise QueryError(f"{what}={given!r} must be a string")
    return given


def texts(given: Any, what: str) -> tuple[str, ...]:
    """One string, or several."""
    if isinstance(given, str):
        return (given,)
    found = tuple(given) if isinstance(given, Sequence) else (given,)
    if not all(isinstance(each, str) for each in found):
        raise QueryError(f"{what}={given!r} must be a string, or several")
    return found


def whole(given: Any, what: str) -> int:
    """An integer.

    >>> whole(1.5, "row_slack")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: row_slack=1.5 must be an integer of at most 64 bits
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or not -(2**63) <= int(given) < 2**63:
        raise QueryError(f"{what}={given!r} must be an integer of at most 64 bits")
    return int(given)


def number(given: Any, what: str) -> float:
    """A number."""
    if isinstance(given, bool) or not isinstance(given, Real) or not -GREATEST < float(given) < GREATEST:
        raise QueryError(f"{what}={given!r} must be a number")
    return float(given)


def function(given: Any, what: str) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(given):
        raise QueryError(f"{what}={given!r} must be a function")
    found: Callable[..., Any] = given
    return found


def flag(given: Any, what: str) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise QueryError(f"{what}={given!r} must be True or False")
    return given


def one_of(given: Any, what: str, possible: Collection[str]) -> str:
    """One of some words."""
    if not isinstance(given, str) or given not in possible:
        raise QueryError(f"{what}={given!r} is unknown; available: {', '.join(possible)}")
    return given


def size(given: str | int) -> int:
    """Bytes.

    >>> size("1.5 MB"), size("2 KiB"), size(7)
    (1500000, 2048, 7)
    """
    text = str(given).strip() if isinstance(given, (int, str)) and not isinstance(given, bool) else ""
    match = SIZE.fullmatch(text.removeprefix("-"))
    if match is None:
        raise QueryError(f"{given!r} is not a size: write 64 MB, 1.5 GiB or a number of bytes")
    unit = match.group(2).lower().removesuffix("ytes").removesuffix("yte")
    power = POWERS[unit[:1]] if unit not in ("", "b") else 0
    found = int(Fraction(match.group(1)) * (1024 if "i" in unit else 1000) ** power)
    if found <= 0 or text.startswith("-"):
        raise QueryError(f"a size must be positive, not {given}")
    if found > MOST_BYTES:
        raise QueryError(f"a size must be less than 2^63 bytes, not {given}")
    return found


def is_spark(data: object) -> bool:
    """Whether data is a Spark DataFrame, without importing Spark."""
    return any(cls.__module__.startswith("pyspark.sql") for cls in type(data).__mro__)
