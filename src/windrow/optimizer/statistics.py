"""What the cost models need to know about a stream: measured on a sample, declared by the user, or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from windrow.aggregates import Partials
from windrow.operators.operator import PANE, PROGRESS
from windrow.windows import Sliding

TUPLES, GROUPS = 1000.0, 100.0  # a pane of which nothing is known
WIDTH = 8  # bytes of a value of which nothing is known


@dataclass(frozen=True)
class Statistics:
    """What a user declares of a source.

    ``rate``: rows per second of progress (per unit, where the progressing attribute is an integer, per day for dates).
    ``groups``: how many groups are active in a pane, for the queries that group this stream.
    """

    rate: float
    groups: float = 1.0


@dataclass(frozen=True)
class Workload:
    """A window aggregation in numbers, in the thesis's terms (Li 6.2.3, 6.3.2).

    ``tuples`` and ``groups`` are per pane; ``panes`` is P, the panes of a window, ``step`` the panes of a slide;
    ``wed`` is the duration of a window extent in panes; ``row`` and ``partial`` are bytes.
    """

    tuples: float
    groups: float
    panes: int
    step: int
    wed: float
    row: float
    partial: float
    basis: Literal["measured", "declared", "assumed"]
    sample: int = 0

    @property
    def says(self) -> str:
        known = f"measured on {self.sample:,} rows" if self.basis == "measured" else self.basis
        return (
            f"{known}: {self.tuples:,.1f} rows and {self.groups:,.1f} groups a pane, {self.panes:,} panes a window, "
            f"{self.step:,} a slide, windows open for {self.wed:,.1f} panes"
        )


def measured(rows: pl.DataFrame, window: Sliding, pane: int, keys: Sequence[str], aggregates: Partials) -> Workload:
    """From rows in order of arrival, as the aggregation gets them."""
    at = rows[PROGRESS]
    tagged = rows.with_columns(((at - window.origin) // pane).alias(PANE))
    panes = max(1, tagged[PANE].n_unique())
    groups = tagged.select(PANE, *keys).n_unique()
    disorder = int((at.cum_max() - at).max() or 0)  # type: ignore[arg-type]
    lifted = aggregates.lift(tagged, [PANE, *keys])
    return Workload(
        rows.height / panes,
        groups / panes,
        *_shape(window, pane, disorder),
        rows.estimated_size() / rows.height,
        lifted.estimated_size() / lifted.height,
        "measured",
        rows.height,
    )


def declared(
    given: Statistics, unit: int, window: Sliding, pane: int, disorder: int, columns: tuple[int, int]
) -> Workload:
    """From what the user says; ``columns`` are the widths of a row and of a partial in values."""
    tuples = max(given.rate * pane / unit, 1e-9)
    sizes = (columns[0] * WIDTH, columns[1] * WIDTH)
    return Workload(tuples, min(given.groups, tuples), *_shape(window, pane, disorder), *sizes, "declared")


def assumed(window: Sliding, pane: int, disorder: int, columns: tuple[int, int]) -> Workload:
    """A middling stream."""
    shape = _shape(window, pane, disorder)
    return Workload(TUPLES, GROUPS, *shape, columns[0] * WIDTH, columns[1] * WIDTH, "assumed")


def _shape(window: Sliding, pane: int, disorder: int) -> tuple[int, int, float]:
    return window.range // pane, window.slide // pane, (window.range + disorder) / pane
