"""The arguments of ``Stream.join_asof`` and ``Stream.following``, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import polars as pl
from sqlglot import exp

from windrow.api import given
from windrow.api.resolved import Names, key_pairs
from windrow.errors import PlanError, QueryError, listing
from windrow.logical import expressions
from windrow.logical.checked import attribute, on_value
from windrow.logical.checked_join import Columns, all_columns
from windrow.logical.checked_sequence import as_of
from windrow.logical.nodes import AS_OF_HOWS, STRATEGIES, AsOf, AsOfHow, Node, Strategy
from windrow.spec.lengths import Length, length, policy
from windrow.spec.options import Policy

WHICH = {True: "the left", False: "the right"}


@dataclass(frozen=True)
class Nearest:
    """What ``Stream.join_asof`` was asked for; its fields are the arguments there."""

    on: str | None
    left_on: str | None
    right_on: str | None
    by: Names
    by_left: Names
    by_right: Names
    strategy: str
    tolerance: Length | None
    allow_exact_matches: bool
    coalesce: bool
    how: str
    where: str | None
    suffix: str
    late: str | Sequence[str]
    max_keys: int | None

    def of(self, left: Node, right: Node) -> AsOf:
        """The as-of join of two streams."""
        given.one_of(self.strategy, "strategy", STRATEGIES)
        given.one_of(self.how, "how", AS_OF_HOWS)
        given.flag(self.allow_exact_matches, "allow_exact_matches")
        given.flag(self.coalesce, "coalesce")
        if self.on is not None and (self.left_on is not None or self.right_on is not None):
            raise QueryError("give on=, or left_on= and right_on=, not both")
        left = self._timed(left, self.on or self.left_on, True)
        right = self._timed(right, self.on or self.right_on, False)
        keys = key_pairs(left, right, self.by, self.by_left, self.by_right)
        columns = self._columns(left, right, keys)
        return nearest(
            left,
            right,
            keys,
            columns,
            cast("Strategy", self.strategy),
            self.tolerance,
            self.allow_exact_matches,
            cast("AsOfHow", self.how),
            self.where,
            self.late,
            self.max_keys,
        )

    def _timed(self, node: Node, column: str | None, left: bool) -> Node:
        """A stream that progresses on the named column."""
        if column is None:
            return node
        name = attribute(node, given.text(column, "on"))
        if name is None or name not in node.times:
            raise QueryError(
                f"on: {column!r} is not a progressing column of {WHICH[left]} stream, so no row would ever be known "
                f"to be the nearest; available: {listing(node.times)}"
            )
        return on_value(node, name)

    def _columns(self, left: Node, right: Node, keys: Sequence[tuple[exp.Expr, exp.Expr]]) -> Columns:
        """As Polars has them: no right keys, and no right time if it has the name of the left one."""
        dropped = {b.name for _, b in keys if isinstance(b, exp.Column)}
        if self.coalesce and right.progress == left.progress:
            dropped.add(right.progress or "")
        every = all_columns(left, right, given.text(self.suffix, "suffix"))
        return tuple(c for c in every if c[1] == 0 or c[2] not in dropped)


def nearest(
    left: Node,
    right: Node,
    keys: Sequence[tuple[exp.Expr, exp.Expr]],
    columns: Columns,
    strategy: Strategy,
    tolerance: Length | None,
    exact: bool,
    how: AsOfHow,
    where: str | None,
    late: str | Sequence[str],
    max_keys: int | None,
) -> AsOf:
    """The node, with lengths and a condition as they are written."""
    far = None if tolerance is None else length(tolerance, time_type(left), "tolerance", zero=True)
    most = None if max_keys is None else given.whole(max_keys, "max_keys")
    found = None
    if where is not None:
        schema = {name: (left, right)[side].schema[column] for name, side, column in columns}
        text = given.text(where, "where")
        found = expressions.resolve(expressions.column_or(text, schema), schema, text)
    policies = late_policies(late, 2)
    return as_of(
        left,
        right,
        keys,
        columns,
        where,
        strategy=strategy,
        exact=exact,
        tolerance=far,
        how=how,
        where=found,
        most_keys=most,
        late=(policies[0], policies[1]),
    )


def time_type(node: Node) -> pl.DataType:
    """The type of the times of a stream."""
    if node.progress is None:
        raise PlanError("the progressing column of each stream is needed: keep it in select()")
    return node.schema[node.progress]


def late_policies(late: str | Sequence[str], number: int) -> list[Policy]:
    """A late policy for each stream: one for all of them, or as many."""
    each = [late] * number if isinstance(late, str) else list(late)
    if len(each) != number:
        raise QueryError(f"late={late!r} must be a policy, or one for each of the {number} streams")
    return [policy(name) for name in each]
