"""The arguments of ``Stream.join``, checked: keys of both sides, and how far apart times may be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl
from sqlglot import exp

from windrow.api import given
from windrow.api.resolved import resolved
from windrow.errors import PlanError, QueryError
from windrow.logical.checked_join import joined
from windrow.logical.nodes import Node
from windrow.spec.lengths import Length, length

Names = str | Sequence[str]


def joined_streams(
    left: Node, right: Node, on: Names, left_on: Names, right_on: Names, within: tuple[Length, Length]
) -> Node:
    """A join as the Python API declares it."""
    if left.progress is None or right.progress is None:
        raise PlanError("join() needs the progressing column of both streams: keep it in select()")
    low, high = _within(within, left.schema[left.progress])
    return joined(left, right, _keys(left, right, on, left_on, right_on), low, high)


def _keys(left: Node, right: Node, on: Names, left_on: Names, right_on: Names) -> list[tuple[exp.Expr, exp.Expr]]:
    both = given.texts(on, "on")
    mine, others = given.texts(left_on, "left_on"), given.texts(right_on, "right_on")
    if len(mine) != len(others):
        raise QueryError(f"left_on and right_on need the same number of keys, not {len(mine)} and {len(others)}")
    pairs = [*zip(both, both, strict=True), *zip(mine, others, strict=True)]
    if not pairs:
        raise QueryError("not supported yet: a join without equal keys; give on=, or left_on= and right_on=")
    return [(resolved(left, a), resolved(right, b)) for a, b in pairs]


def _within(within: tuple[Length, Length], dtype: pl.DataType) -> tuple[int, int]:
    if isinstance(within, str) or not isinstance(within, Sequence) or len(within) != 2:
        raise QueryError(
            f"within={within!r} must be two lengths, such as ('-5 seconds', '10 seconds'): the least and the greatest "
            "value of the right time less the left time"
        )
    low, high = within
    return _distance(low, dtype), _distance(high, dtype)


def _distance(value: Length, dtype: pl.DataType) -> int:
    """A length that may be negative."""
    if isinstance(value, str):
        negative = value.strip().startswith("-")
        size = length(value.strip().removeprefix("-"), dtype, "within", zero=True)
    else:
        below: Length = timedelta(0) if isinstance(value, timedelta) else 0
        negative = isinstance(value, (int, timedelta)) and not isinstance(value, bool) and value < below  # type: ignore[operator]
        size = length(-value if negative else value, dtype, "within", zero=True)
    return -size if negative else size
