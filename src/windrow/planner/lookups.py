"""Joins with static tables as steps: they keep nothing, so they run wherever the rows are."""

from __future__ import annotations

from functools import partial

import polars as pl

from windrow.logical.checked_join import common_type
from windrow.logical.explain import lookup_condition
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.node import columns_in
from windrow.logical.nodes import Lookup
from windrow.operators import Lookup as LookupOperator
from windrow.operators.joins.condition import Condition
from windrow.planner.plan import Step


def looking_up(node: Lookup) -> Step:
    """A hash join of every batch with the table, of which only the columns that are used go to workers."""
    keys = [_key(node, i) for i in range(len(node.on))]
    used = {c for _, side, c in node.columns if side == 1} | columns_in(b for _, b in node.on)
    where = translate(node.where, node.pairs) if node.where is not None else None
    condition = None if where is None and node.test is None else Condition(where, node.test)
    make = partial(LookupOperator, node.table.only(used), keys, node.columns, node.how, condition)
    kept = {name: column for name, side, column in node.columns if side == 0}
    return Step("lookup", make, lookup_condition(node), renames=kept)


def _key(node: Lookup, number: int) -> tuple[pl.Expr, pl.Expr]:
    """A key of both sides in one type, so that 1 and 1.0 are equal."""
    mine, other = node.on[number]
    given, table = node.input.schema, node.table.schema
    dtype = common_type(mine, dtype_of(mine, given), other, dtype_of(other, table))
    return translate(mine, given).cast(dtype), translate(other, table).cast(dtype)
