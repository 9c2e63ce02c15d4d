"""The arguments of ``Stream.join``, checked: keys of both sides, and how far apart times may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, cast

import polars as pl

from windrow.api import given
from windrow.api.functions import Udf
from windrow.api.resolved import Names, key_pairs
from windrow.errors import PlanError, QueryError
from windrow.hosts.local import Value, value
from windrow.logical import expressions
from windrow.logical.checked_join import all_columns, joined
from windrow.logical.nodes import HOWS, How, Join, Node
from windrow.spec.in_order import MODES
from windrow.spec.joining import Limits
from windrow.spec.keeping import KEPT
from windrow.spec.lengths import Length, length, policy
from windrow.spec.options import Policy
from windrow.windows.pairing import Pairing, SameWindow, Within

Distances = tuple[Length, Length]
IN_ROWS = re.compile(r"\s*(-?\d+)\s*rows?\s*", re.IGNORECASE)
FORCED = ("oa", "iop", "opob", "opib", *MODES, *KEPT)


@dataclass(frozen=True)
class Asked:
    """What ``Stream.join`` was asked for; how, where and how late is as it was given there."""

    on: Names
    left_on: Names
    right_on: Names
    within: Distances | None
    tumbling: Length | None
    origin: Value | None
    how: str
    where: str | Udf | None
    suffix: str
    late: str | Sequence[str]
    using: str | None
    alpha: float | None = None
    cost: float | None = None
    limits: Limits | None = None

    def of(self, left: Node, right: Node) -> Join:
        """The join of two streams."""
        given.one_of(self.how, "how", HOWS)
        if self.using is not None:
            given.one_of(self.using, "using", FORCED)
        window, by_rows = self._window(left, right)
        columns = all_columns(left, right, given.text(self.suffix, "suffix"))
        test = self.where.function if isinstance(self.where, Udf) else None
        keys = key_pairs(left, right, self.on, self.left_on, self.right_on)
        make = partial(joined, left, right, keys, window, columns)
        more = {"how": cast("How", self.how), "late": self._late(), "by_rows": by_rows, **self._physical()}
        pairs = make(test=test, **more)
        if self.where is None or test is not None:
            return pairs
        text = given.text(self.where, "where")
        where = expressions.resolve(expressions.column_or(text, pairs.pairs), pairs.pairs, text)
        return make(where, text, **more)

    def _physical(self) -> dict[str, Any]:
        """Which join it is, and when it changes."""
        alpha = None if self.alpha is None else given.number(self.alpha, "alpha")
        return {
            "using": self.using,
            "alpha": alpha,
            "cost": None if self.cost is None else given.number(self.cost, "cost"),
            "limits": self.limits,
        }

    def _late(self) -> tuple[Policy, Policy]:
        both = (self.late, self.late) if isinstance(self.late, str) else tuple(self.late)
        if len(both) != 2:
            raise QueryError(f"late={self.late!r} must be a policy, or one for the left and one for the right side")
        return policy(both[0]), policy(both[1])

    def _window(self, left: Node, right: Node) -> tuple[Pairing, bool]:
        """How near times must be, and whether they are row numbers."""
        if (self.within is None) == (self.tumbling is None):
            raise QueryError(
                "a join of streams must bound how far apart times are, or its state would grow forever: give within=, "
                "the least and the greatest distance, or tumbling=, the length of a window that both are in"
            )
        if self.within is not None and (rows := _in_rows(self.within)) is not None:
            return Within(*rows), True
        if left.progress is None or right.progress is None:
            raise PlanError("join() needs the progressing column of both streams: keep it in select()")
        dtype = left.schema[left.progress]
        if self.tumbling is not None:
            origin = 0 if self.origin is None else value(self.origin, dtype, "origin")
            return SameWindow(length(self.tumbling, dtype, "tumbling"), origin), False
        if self.origin is not None:
            raise QueryError("origin= is about tumbling windows: a band has none")
        assert self.within is not None
        low, high = self.within
        return Within(_distance(low, dtype), _distance(high, dtype)), False


def _in_rows(within: Distances) -> tuple[int, int] | None:
    """A band of row numbers, if it is one."""
    if isinstance(within, str) or not isinstance(within, Sequence) or len(within) != 2:
        raise QueryError(
            f"within={within!r} must be two lengths, such as ('-5 seconds', '10 seconds'): the least and the greatest "
            "value of the right time less the left time"
        )
    found = [IN_ROWS.fullmatch(each) for each in within if isinstance(each, str)]
    rows = [int(each[1]) for each in found if each is not None]
    if len(rows) == 1:
        raise QueryError(f"within={within!r}: both must be in rows, or none")
    return (rows[0], rows[1]) if rows else None


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
