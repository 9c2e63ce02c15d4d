"""What the rows of a node depend on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from windrow.logical.nodes import Node
from windrow.testing.oracle.values import Row


@dataclass(frozen=True)
class Given:
    """``by_rows``: the next window is over row numbers, which are the progress values then. ``needs``: columns of the
    source that it needs. ``branch``: the rows that a branch of a split begins with. ``bad`` counts bad rows as they are
    found."""

    frames: Mapping[str, pl.DataFrame]
    rows_of: Callable[[Node, Given], list[Row]]
    by_rows: bool = False
    needs: tuple[str, ...] = ()
    branch: list[Row] = field(default_factory=list)
    bad: Counter[str] = field(default_factory=Counter)
    found: dict[Any, list[Row]] = field(default_factory=dict)

    def over(self, by_rows: bool, needs: tuple[str, ...] = ()) -> Given:
        """The same for the input of a window."""
        return replace(self, by_rows=by_rows, needs=needs)

    def branching(self, rows: list[Row]) -> Given:
        """The same for one branch of a split."""
        return replace(self, branch=rows, found={})
