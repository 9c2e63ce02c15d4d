"""Functions that Numba compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """By Numba; what it compiles is kept beside the file, or nowhere if no folder can be written."""
    try:
        found: F = njit(cache=True)(function)
    except RuntimeError:
        found = njit(function)
    return found
