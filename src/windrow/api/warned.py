"""Warnings of a query before it runs, for whoever called."""

from __future__ import annotations

import sys
import warnings as python
from collections.abc import Iterable, Mapping

import polars as pl

from windrow.errors import WindrowWarning
from windrow.hosts.warnings import Looked, Warned, planned, warned
from windrow.planner import Plan


def warnings(plan: Plan, samples: Mapping[str, pl.DataFrame], endless: frozenset[str]) -> list[Warned]:
    """What a plan and a sample of the rows show."""
    return warned(Looked(planned(plan, samples), endless=endless))


def warn(found: Iterable[Warned]) -> None:
    """As Python warns, at the line that called Windrow. Hints are for ``explain``: they may well be meant so."""
    for each in found:
        if not each.hint:
            python.warn(each.says, WindrowWarning, stacklevel=_outside())


def _outside() -> int:
    """How many calls away the first caller is that is not part of Windrow, as seen by ``warn``."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "windrow":
        level, frame = level + 1, frame.f_back
    return level
