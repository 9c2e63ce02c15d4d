"""Rows of some tables of a FROM, and what their columns are called there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from windrow.logical.checked import on_value
from windrow.logical.nodes import Node
from windrow.spec.options import Policy
from windrow.spec.tables import Table
from windrow.sql.band import Distance

Sides = tuple[tuple[Mapping[str, str], Node | Table], tuple[Mapping[str, str], Node | Table]]  # names, and rows
Origins = Mapping[str, tuple[int, str]]  # of each column of all tables, its table and its name there


@dataclass(frozen=True)
class Part:
    """Rows of some tables. ``own``: what the columns of all tables are called here. ``facts``: true of every row."""

    node: Node
    own: Mapping[str, str]
    facts: tuple[Distance, ...] = ()
    late: Policy = "drop"

    @property
    def times(self) -> list[str]:
        """The columns that it progresses on, as they are called among the columns of all tables."""
        return [name for column in self.node.times for name, own in self.own.items() if own == column]

    def on(self, time: Sequence[str]) -> Node:
        """Its rows, progressing on one of its times, if one is given."""
        return on_value(self.node, self.own[time[0]]) if time else self.node


def own_names(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """An expression with the names that its columns have in a part."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        own = exp.to_identifier(names[column.name])
        column.this.set("quoted", own.args["quoted"])
        column.this.set("this", own.name)
    return tree
