"""What a call of the Python API was given, checked: an argument of another kind is an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from numbers import Integral, Real
from typing import Any

from windrow.errors import QueryError

MOST = 1e300  # infinity, and what is not a number, are none here


def text(given: Any, what: str) -> str:
    """A name or another text.

    >>> text(3, "progress")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: progress=3 must be a text
    """
    if not isinstance(given, str):
        raise QueryError(f"{what}={given!r} must be a text")
    return given


def texts(given: Any, what: str) -> tuple[str, ...]:
    """One text, or several."""
    if isinstance(given, str):
        return (given,)
    found = tuple(given) if isinstance(given, Sequence) else (given,)
    if not all(isinstance(each, str) for each in found):
        raise QueryError(f"{what}={given!r} must be a text, or several of them")
    return found


def whole(given: Any, what: str) -> int:
    """A whole number.

    >>> whole(1.5, "row_slack")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: row_slack=1.5 must be a whole number of 64 bits
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or not -(2**63) <= int(given) < 2**63:
        raise QueryError(f"{what}={given!r} must be a whole number of 64 bits")
    return int(given)


def number(given: Any, what: str) -> float:
    """A number."""
    if isinstance(given, bool) or not isinstance(given, Real) or not -MOST < float(given) < MOST:
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
        raise QueryError(f"{what}={given!r} is not known; there are: {', '.join(possible)}")
    return given
