"""Functions that Numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """By Numba; what it compiles is kept beside the file, or nowhere if no folder can be written."""
    from numba import njit

    try:
        found: F = njit(cache=True)(function)
    except RuntimeError:
        found = njit(function)
    return found


def inlined(function: F) -> F:
    """A part of kernels, put in where it is called: passing many arrays would cost more than most parts do."""
    from numba import njit

    found: F = njit(inline="always")(function)
    return found


def compiled_when_called(function: F) -> F:
    """The same at the first call, so that who never calls it does not wait for Numba. No kernel can call it."""

    @cache
    def made() -> F:
        return compiled(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return made()(*arguments)

    return cast("F", call)
