"""What every experiment gives: figures, claims that hold or not, and a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """``figures`` by name, ``holds`` by claim; ``plot`` draws on a matplotlib figure.

    ``curves``: for a claim whose workload was chosen after the figures were seen, what the others give.
    ``not_measured``: figures that only a longer run has.
    """

    figures: dict[str, float] = field(default_factory=dict)
    holds: dict[str, bool] = field(default_factory=dict)
    plot: Callable[[Any], None] | None = None
    curves: dict[str, dict[str, float]] = field(default_factory=dict)
    not_measured: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """``run(quick, say)`` does it; ``say(text, done)`` reports progress as a share between 0 and 1.

    ``paper`` is the figure that it reproduces.
    """

    name: str
    about: str
    run: Callable[[bool, Callable[[str, float], None]], Outcome]
    paper: str = "ours"


AFTERWARDS = "chosen after seeing the figures"


def afterwards(claim: str, what: str) -> str:
    """A claim that holds for a workload, or has a bound, that was not fixed beforehand. Its own line says so.

    >>> afterwards("it is faster", "batches of 10 rows")
    'it is faster (batches of 10 rows: chosen after seeing the figures)'
    """
    return f"{claim} ({what}: {AFTERWARDS})"
