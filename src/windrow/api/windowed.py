"""A stream with a window on it: groups, options, and the aggregates that make it a stream of results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl
from sqlglot import exp

from windrow.api.algorithm import refusal
from windrow.api.functions import AggregateExpr
from windrow.api.given import flag
from windrow.api.resolved import call, items
from windrow.errors import QueryError
from windrow.logical.checked import aggregated
from windrow.logical.nodes import Shape
from windrow.spec import lengths
from windrow.spec.flush import FlushPolicy
from windrow.spec.lengths import Length, length
from windrow.spec.options import PLAIN, Options
from windrow.windows import Partitioned, RowSliding

if TYPE_CHECKING:
    from windrow.api.stream import Stream


@dataclass(frozen=True)
class Windowed:
    """A stream with a window on it, waiting for groups or aggregates."""

    stream: Stream
    shape: Shape
    using: str | None = None
    keys: tuple[tuple[str, exp.Expr], ...] = ()
    options: Options = PLAIN
    parts: tuple[str, ...] = ()
    memory: int | None = None
    flush: FlushPolicy | None = None

    def __post_init__(self) -> None:
        if (found := refusal(self.shape, self.using, self.memory, self.flush)) is not None:
            raise QueryError(found[1])

    def group_by(self, *columns: str, **named: str) -> Windowed:
        """Group by columns, or by SQL expressions given by keyword."""
        chosen = items(self.stream.node, columns, named)
        parts = tuple(k for k in self.keys if k[0] in self.parts and k[0] not in chosen)
        return replace(self, keys=(*parts, *chosen.items()))

    def late(self, policy: str, *, generous: bool = False, keep: Length | None = None) -> Windowed:
        """What happens to late rows: "drop", "error", "side", or "revise" for as long as ``keep`` after the window.

        ``generous``: a late row still counts in its windows that are open.
        """
        held = None if keep is None else self._length(keep, "keep")
        flag(generous, "generous")
        options = replace(self.options, late=lengths.policy(policy), generous=generous, keep=held)
        return replace(self, options=options)

    def emit_early(self, every: Length) -> Windowed:
        """Results of open windows as well, each time the stream has advanced by ``every``, with version and status."""
        return replace(self, options=replace(self.options, early=self._length(every, "every")))

    def with_empty(self) -> Windowed:
        """A result for every window of a group from its first one on, even if it has no rows."""
        return replace(self, options=replace(self.options, empty=True))

    def without_partial(self) -> Windowed:
        """No results for windows that begin before the origin, or before the first row."""
        return replace(self, options=replace(self.options, partial=False))

    def _length(self, given: Length, what: str) -> int:
        by_rows = isinstance(self.shape, (RowSliding, Partitioned))
        return length(given, pl.Int64() if by_rows else self.stream._progressing(), what)

    def agg(self, **aggregates: AggregateExpr) -> Stream:
        """The aggregates of each window and group. Output: the keys, window_start, window_end, the aggregates.

        >>> from windrow import count, stream
        >>> rows = [{"t": 0, "k": "a"}, {"t": 3, "k": "b"}]
        >>> stream(rows, progress="t").window(range=4, slide=2).group_by("k").agg(n=count()).collect().rows()
        [('a', -2, 2, 1), ('a', 0, 4, 1), ('b', 0, 4, 1), ('b', 2, 6, 1)]
        """
        calls = tuple(call(self.stream.node, name, aggregate) for name, aggregate in aggregates.items())
        node = aggregated(
            self.stream.node,
            self.shape,
            self.keys,
            calls,
            self.using,
            options=self.options,
            parts=self.parts,
            memory=self.memory,
            flush=self.flush,
        )
        return replace(self.stream, node=node)
