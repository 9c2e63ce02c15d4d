"""Sources: what a user declares of a stream, and the node that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import polars as pl

from windrow.logical.node import Node, Time, Times
from windrow.spec.ahead import Ahead
from windrow.spec.messages import Messages
from windrow.spec.rules import Rule


@dataclass(frozen=True)
class Progress:
    """How a source progresses. One of ``slack``, ``marker`` and ``rule`` makes promises; a finite source needs none."""

    attribute: str
    slack: int | None = None
    marker: str | None = None
    parse: str | None = None
    row_num: tuple[str, ...] = ()  # what numbers the rows by arrival: a column, or source partition and position
    row_slack: int = 0
    marker_by: tuple[str, ...] = ()  # the columns that say which group a marker is about
    rule: Rule | None = None  # how promises are made, if neither by slack nor by markers
    skew: int = 0  # how far markers, the readings of a clock, can be ahead of rows that are still to come
    ahead: Ahead | None = None  # rows that are further ahead of their arrival are bad
    lead: int = 0  # how far the attribute is ahead of the progress value, in a branch of the results of windows
    also: tuple[tuple[str, int], ...] = ()  # further attributes that progress, each with its own slack
    ordered: bool = False  # whether a slack of zero was declared in so many words: rows come in order
    delay: int | None = None  # in microseconds, how much later than its time a row can arrive
    idle_after: int | None = None  # in microseconds, after how long without rows the source counts as idle
    messages: Messages | None = None  # how rows are read from messages, if those are what the source gives

    @property
    def promises(self) -> bool:
        """Whether anything but its end, or its silence, says how far the source is."""
        return any(given is not None for given in (self.slack, self.marker, self.rule, self.delay))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell how far the source is; the marker's is not one of the stream."""
        arrival = (self.ahead.arrival,) if self.ahead is not None else ()
        return (self.attribute, *self.marker_by, *(self.rule.columns if self.rule is not None else ()), *arrival)


@dataclass(frozen=True)
class Statistics:
    """What a user declares of a source, for the optimizer.

    ``rate``: rows per second of progress (per unit, where the progressing attribute is an integer, per day for dates).
    ``groups``: how many groups are active in a pane, for the queries that group this stream.
    """

    rate: float
    groups: float = 1.0


@dataclass(frozen=True)
class Scan(Node):
    """A named source. ``columns`` are what a query sees: text progress values are already timestamps here."""

    name: str
    columns: tuple[tuple[str, pl.DataType], ...]
    source: Progress
    statistics: Statistics | None = None
    offers: tuple[str, ...] = ()  # the attributes of arrival that its host can give to rows: see logical.arrival
    stamps: tuple[str, ...] = ()  # those of them that are columns here: they are not in the data
    hidden: tuple[str, ...] = ()  # those that a query names without a declaration: * does not stand for them

    def rebuild(self, *inputs: Node) -> Self:
        assert not inputs
        return self

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    @property
    def times(self) -> Times:
        names = (self.source.attribute, *(name for name, _ in self.source.also))
        return {name: Time(self.source.lead if name == self.source.attribute else 0, name) for name in names}

    @property
    def progress(self) -> str:
        return self.source.attribute

    @property
    def arrival(self) -> tuple[str, ...]:
        return self.source.row_num

    @property
    def promised_by(self) -> tuple[str, ...]:
        return self.source.marker_by or (self.source.rule.by if self.source.rule is not None else ())

    @property
    def scans(self) -> list[Scan]:
        return [self]

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002
        return ()
