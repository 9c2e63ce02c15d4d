"""What a call of the Python API was given, checked: an argument of another kind is an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from numbers import Integral, Real
from typing import Any

from windrow.errors import QueryError


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


def whole(given: Any, what: str, least: int = 0) -> int:
    """A whole number.

    >>> whole(-1, "row_slack")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: row_slack=-1 must be a whole number from 0 on
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or not least <= int(given) < 2**63:
        raise QueryError(f"{what}={given!r} must be a whole number from {least} on")
    return int(given)


def number(given: Any, what: str, above: float, most: float) -> float:
    """A number above one and up to another."""
    if isinstance(given, bool) or not isinstance(given, Real) or not above < float(given) <= most:
        raise QueryError(f"{what}={given!r} must be a number above {above:g} and at most {most:g}")
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
