"""What the cost models need to know about a stream: measured on a sample, declared by the user, or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.logical.nodes import Statistics
from windrow.spec.names import PANE, PROGRESS
from windrow.windows import Sliding

TUPLES, GROUPS = 1000.0, 100.0  # a pane of which nothing is known
BATCH = 10_000  # rows that come at a time, where nothing else is known
WIDTH = 8  # bytes of a value of which nothing is known


@dataclass(frozen=True)
class Seen(Statistics):
    """What a micro-batch has shown of a source: so many rows at this rate, and the groups among them."""

    rows: int = 0


@dataclass(frozen=True)
class Workload:
    """A window aggregation in numbers, in the thesis's terms (Li 6.2.3, 6.3.2).

    ``tuples`` and ``groups`` are per pane; ``panes`` is P, the panes of a window, ``step`` the panes of a slide;
    ``wed`` is the duration of a window extent in panes; ``row`` and ``partial`` are bytes. ``exchanged``: rows and
    state are in different places, as on Spark. ``results`` are the groups of a window, ``seen`` those of all rows that
    are worked on together: a batch, or a window if that is longer. Without them, all panes have the same groups.
    """

    tuples: float
    groups: float
    panes: int
    step: int
    wed: float
    row: float
    partial: float
    smaller: float  # the bytes of a pane of a group as rows or as a partial, whichever is less, on average
    basis: Literal["measured", "declared", "assumed"]
    sample: int = 0
    exchanged: bool = False
    results: float = 0.0
    seen: float = 0.0

    def __post_init__(self) -> None:
        results = max(self.results, self.groups)
        object.__setattr__(self, "results", results)
        object.__setattr__(self, "seen", max(self.seen, results))

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
    row, partial = rows.estimated_size() / rows.height, lifted.estimated_size() / lifted.height
    return Workload(
        rows.height / panes,
        groups / panes,
        *_shape(window, pane, disorder),
        row,
        partial,
        float(np.minimum(lifted[ROWS].to_numpy() * row, partial).mean()),
        "measured",
        rows.height,
        results=_groups_in(tagged, keys, window.range // pane),
        seen=_groups_in(tagged, keys, max(window.range // pane, round(BATCH * panes / rows.height))),
    )


def _groups_in(tagged: pl.DataFrame, keys: Sequence[str], panes: int) -> float:
    """The groups of some panes that follow each other, on average."""
    if not keys:
        return 1.0
    found = tagged.select((pl.col(PANE) // max(1, panes)).alias("@stretch"), *keys)
    return found.n_unique() / found["@stretch"].n_unique()


def declared(
    given: Statistics, unit: int, window: Sliding, pane: int, disorder: int, columns: tuple[int, int]
) -> Workload:
    """From what the user says, or was seen before; ``columns`` are the widths of a row and of a partial in values."""
    tuples = max(given.rate * pane / unit, 1e-9)
    groups = min(max(given.groups, 1e-9), tuples)
    sizes, shape = _sizes(columns, tuples / groups), _shape(window, pane, disorder)
    if isinstance(given, Seen):
        return Workload(tuples, groups, *shape, *sizes, "measured", given.rows)
    return Workload(tuples, groups, *shape, *sizes, "declared")


def assumed(window: Sliding, pane: int, disorder: int, columns: tuple[int, int]) -> Workload:
    """A typical stream."""
    shape = _shape(window, pane, disorder)
    return Workload(TUPLES, GROUPS, *shape, *_sizes(columns, TUPLES / GROUPS), "assumed")


def _sizes(columns: tuple[int, int], rows_of_group: float) -> tuple[float, float, float]:
    row, partial = columns[0] * WIDTH, columns[1] * WIDTH
    return row, partial, min(row * rows_of_group, partial)


def _shape(window: Sliding, pane: int, disorder: int) -> tuple[int, int, float]:
    return window.range // pane, window.slide // pane, (window.range + disorder) / pane
