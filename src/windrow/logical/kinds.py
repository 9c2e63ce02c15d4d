"""The kinds of logical nodes: with one input, on rows one by one, of rows as they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import polars as pl

from windrow.logical.node import Node, Times
from windrow.logical.source import Scan


class Single(Node):
    """A node with one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def rebuild(self, *inputs: Node) -> Self:
        (node,) = inputs
        return replace(self, input=node)  # type: ignore[type-var]


class OnRows(Single):
    """A node that changes rows one by one: whatever it says of its input holds for columns that it passes on."""

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The names that columns of the input have in the output; none if one of them is not kept as it is."""
        return columns

    @property
    def arrival(self) -> tuple[str, ...]:
        return self.passed_on(self.input.arrival)

    @property
    def promised_by(self) -> tuple[str, ...]:
        return self.passed_on(self.input.promised_by)

    @property
    def versioned(self) -> bool:
        return self.input.versioned

    @property
    def scans(self) -> list[Scan]:
        return self.input.scans

    @property
    def origin(self) -> Node:
        return self.input.origin


class SameRows(Single):
    """A node whose rows are rows of its input, as they were."""

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.input.schema

    @property
    def times(self) -> Times:
        return self.input.times

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.input.hidden

    @property
    def pair_times(self) -> dict[str, str]:
        return self.input.pair_times

    @property
    def origin(self) -> Node:
        return self.input.origin
