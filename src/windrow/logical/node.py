"""What every logical node has: inputs, a schema, columns that progress, and what it asks of its inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl
from sqlglot import exp

if TYPE_CHECKING:
    from windrow.logical.source import Scan


class Time(NamedTuple):
    """A column that progresses. ``lead``: how far its value is ahead of the progress value of its row. ``of``: which of
    the attributes of its stream it is; promises about one say nothing about another.
    """

    lead: int = 0
    of: str = ""


Times = dict[str, Time]


class Node(ABC):
    """Fields and schema, and the questions that hosts and planners ask of every node."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes whose rows it takes."""
        return ()

    @abstractmethod
    def rebuild(self, *inputs: Node) -> Self:
        """The same node over other inputs."""

    @property
    @abstractmethod
    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of its columns, in order."""

    @property
    @abstractmethod
    def times(self) -> Times:
        """The columns that progress; the first one is what windows are over where a query names none."""

    @abstractmethod
    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        """For each input, the columns that must come from it so that these columns of the node can be computed."""

    # -- progress ----------------------------------------------------------------------------------------------
    @property
    def progress(self) -> str | None:
        """The progressing attribute: what windows are over where a query names none."""
        return next(iter(self.times), None)

    @property
    def lead(self) -> int:
        """How far the value of ``progress`` is ahead of the progress value: 1 for the end of a window, else 0."""
        return next((time.lead for time in self.times.values()), 0)

    @property
    def pair_times(self) -> dict[str, str]:
        """Of pairs, the columns with the times of both rows, NULL where there is none: which of the two each one is."""
        return {}

    @property
    def arrival(self) -> tuple[str, ...]:
        """The columns that number its rows by arrival; none where rows have no common order of arrival."""
        return ()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns that ``*`` does not stand for."""
        return ()

    @property
    def promised_by(self) -> tuple[str, ...]:
        """The columns by which its promises can be about single groups; none if all are about everyone."""
        return ()

    @property
    def versioned(self) -> bool:
        """Whether its rows are results that can come in several versions."""
        return False

    # -- trees -------------------------------------------------------------------------------------------------
    @property
    def scans(self) -> list[Scan]:
        """The sources whose rows come here; of results nothing is known before there are any."""
        return []

    @property
    def origin(self) -> Node:
        """What a chain of steps on rows begins with: a source, a union, windows, a join."""
        return self

    def walk(self) -> Iterator[Node]:
        """Every node of the tree once, inputs first; a node that is used twice is one node."""
        yield from _walked(self, set())


def _walked(node: Node, seen: set[int]) -> Iterator[Node]:
    if id(node) in seen:
        return
    seen.add(id(node))
    for each in node.inputs:
        yield from _walked(each, seen)
    yield node


def columns_in(expressions: Iterable[exp.Expr | None]) -> set[str]:
    """The columns that some expressions name."""
    return {c.name for e in expressions if e is not None for c in e.find_all(exp.Column)}


def progressing(dtype: pl.DataType) -> bool:
    """Whether a column of this type can be a progressing attribute."""
    return dtype.is_integer() or isinstance(dtype, (pl.Datetime, pl.Date))


def before(column: str, dtype: pl.DataType) -> exp.Expr:
    """The value just before that of a column: the last instant of a window that ends there.

    >>> before("window_end", pl.Date()).sql("spark"), before("window_end", pl.Int64()).sql("spark")
    ("window_end - INTERVAL '1' DAY", 'window_end - 1')
    """
    unit = "DAY" if dtype == pl.Date else "MICROSECOND"
    step = (
        exp.Literal.number(1) if dtype.is_integer() else exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
    )
    return exp.Sub(this=exp.column(column), expression=step)
