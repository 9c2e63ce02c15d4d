"""What every experiment gives: figures, claims that hold or not, and a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """``figures`` by name, ``holds`` by claim; ``plot`` draws on a matplotlib figure."""

    figures: dict[str, float] = field(default_factory=dict)
    holds: dict[str, bool] = field(default_factory=dict)
    plot: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class Experiment:
    """``run(quick, say)`` does it; ``say(text, done)`` reports progress as a share between 0 and 1.

    ``paper`` is the figure that it reproduces.
    """

    name: str
    about: str
    run: Callable[[bool, Callable[[str, float], None]], Outcome]
    paper: str = "ours"
