"""A query over a few rows as a picture in plain text: rows as marks on a line, and a bar for every window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.api.stream import Stream
from windrow.errors import QueryError
from windrow.logical.nodes import Filter, Node, Project, Top, WindowAggregate
from windrow.spec.names import WINDOW_END, WINDOW_START
from windrow.testing.oracle import oracle
from windrow.testing.replay import latest
from windrow.windows import Partitioned, SlideByTuple

COLUMNS = 100  # a longer line is drawn to scale
TICKS = (1, 2, 5)
AT = "@at"


def timeline(query: Stream) -> str:
    """The rows of a window query and the windows of its result, over an integer progress attribute or row numbers.

    A digit is a number of rows at the same place. ``[`` and ``]`` belong to a window, ``(`` and ``)`` do not, and
    ``<`` is the beginning of the stream. Where every partition has windows of its own rows (PA), a line counts them.

    >>> from windrow import count, stream
    >>> rows = [{"t": 1, "k": "a"}, {"t": 3, "k": "a"}, {"t": 9, "k": "a"}, {"t": 4, "k": "b"}]
    >>> print(timeline(stream(rows, progress="t").session(5).group_by("k").agg(n=count())))
                   5    10
    a          x x     x
    a [1, 8)   [======)
    a [9, 14)          [====)
    b             x
    b [4, 9)      [====)
    """
    if any(source.spark for source in query.sources.values()):
        raise QueryError("a timeline needs rows in this process: give wr.stream a list or a table")
    node = _window(query.node)
    result = latest(query.collect(), query)
    if not {WINDOW_START, WINDOW_END} <= set(result.columns):
        raise QueryError("a timeline needs the bounds of the windows: keep window_start and window_end")
    if not result.schema[WINDOW_END].is_integer():
        raise QueryError(f"a timeline needs an integer attribute, not {result.schema[WINDOW_END]}")
    keys = [name for name, _ in node.keys if name in result.columns]
    rows = _rows(node, Stream(node.input, query.sources), keys)
    return _Picture(result, rows, keys, isinstance(node.window, SlideByTuple)).text()


def _window(node: Node) -> WindowAggregate:
    """The outermost window of a query."""
    while isinstance(node, (Filter, Project, Top)):
        node = node.input
    if not isinstance(node, WindowAggregate):
        raise QueryError("a timeline needs a query with a window")
    return node


def _rows(node: WindowAggregate, given: Stream, keys: list[str]) -> pl.DataFrame:
    """The place of each row on the line, and its keys."""
    number = node.input.arrival[-1] if node.by_rows else node.attribute
    columns = (*node.keys, (AT, exp.cast(exp.column(number), "BIGINT")))
    placed = oracle(replace(given, node=Project(node.input, columns))).drop_nulls(AT)
    if isinstance(node.window, Partitioned):
        placed = placed.sort(AT).with_columns(pl.int_range(pl.len()).over(list(node.parts)).alias(AT))
    return placed.select(*keys, AT)


class _Picture:
    def __init__(self, result: pl.DataFrame, rows: pl.DataFrame, keys: list[str], ends_at_row: bool) -> None:
        self.keys = keys
        self.groups = pl.concat([rows.select(keys), result.select(keys)]).unique().sort(keys) if keys else None
        self.rows = rows
        self.result = result.sort(WINDOW_END, WINDOW_START)
        self.brackets = "(]" if ends_at_row else "[)"
        places = [*rows[AT], *result[WINDOW_START].drop_nulls(), *result[WINDOW_END]]
        self.low, self.high = min(places, default=0), max(places, default=0)
        self.scale = -(-(self.high - self.low + 1) // COLUMNS)  # values per column

    def text(self) -> str:
        lines = [("", self._ticks())]
        for key in self.groups.rows() if self.groups is not None else [()]:
            name = " ".join(str(v) for v in key)
            lines.append((name or "rows", self._marks(self._of(self.rows, key)[AT].to_list())))
            for start, end in self._of(self.result, key).select(WINDOW_START, WINDOW_END).rows():
                lines.append((f"{name} {self._bounds(start, end)}".strip(), self._bar(start, end)))
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:{width}}  {drawn}".rstrip() for label, drawn in lines)

    def _of(self, frame: pl.DataFrame, key: tuple[Any, ...]) -> pl.DataFrame:
        same = [pl.col(n).eq_missing(pl.lit(v, frame.schema[n])) for n, v in zip(self.keys, key, strict=True)]
        return frame.filter(same) if same else frame

    def _column(self, value: int) -> int:
        return (value - self.low) // self.scale

    def _ticks(self) -> str:
        room = max(len(str(self.low)), len(str(self.high))) + 1
        sizes = (digit * 10**power * self.scale for power in range(20) for digit in TICKS)
        step = next(size for size in sizes if size // self.scale >= max(room, 5))
        line = ""
        for value in range(-(-self.low // step) * step, self.high + 1, step):
            line = line.ljust(self._column(value)) + str(value)
        return line

    def _marks(self, places: list[int]) -> str:
        columns = [self._column(p) for p in places]
        counts = [columns.count(c) for c in range(max(columns, default=-1) + 1)]
        return "".join(" " if not n else "x" if n == 1 else str(n) if n < 10 else "+" for n in counts)

    def _bounds(self, start: int | None, end: int) -> str:
        return f"{'..' if start is None else f'{self.brackets[0]}{start}'}, {end}{self.brackets[1]}"

    def _bar(self, start: int | None, end: int) -> str:
        first, last = 0 if start is None else self._column(start), self._column(end)
        if first == last:
            return " " * first + "|"
        opening = "<" if start is None else self.brackets[0]
        return " " * first + opening + "=" * (last - first - 1) + self.brackets[1]
