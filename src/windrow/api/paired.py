"""A stream of pairs, grouped by both of their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.api.functions import AggregateExpr
from windrow.api.resolved import call
from windrow.logical.checked import paired

if TYPE_CHECKING:
    from windrow.api.stream import Stream


@dataclass(frozen=True)
class Paired:
    """Groups of a join by both times, waiting for aggregates. ``times``: the keys that are the left and right time."""

    stream: Stream
    times: tuple[str, str]
    keys: tuple[tuple[str, exp.Expr], ...]

    def agg(self, **aggregates: AggregateExpr) -> Stream:
        """The aggregates of each group. Output: the keys, the aggregates.

        >>> from windrow import count, stream
        >>> rows = [{"t": 0, "k": "a"}, {"t": 3, "k": "a"}]
        >>> s = stream(rows, progress="t", name="s")
        >>> s.join(s, on="k", within=(1, 5)).group_by("t", "t_right").agg(n=count()).collect().rows()
        [(0, 3, 1)]
        """
        calls = tuple(call(self.stream.node, name, aggregate) for name, aggregate in aggregates.items())
        return replace(self.stream, node=paired(self.stream.node, self.times, self.keys, calls))
