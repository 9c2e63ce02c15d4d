"""Prune columns: a join keeps only the columns that somebody uses behind it, so that state and pairs are narrow."""

from __future__ import annotations

from dataclasses import replace

from windrow.logical.node import Node, columns_in
from windrow.logical.nodes import Join, columns_asked
from windrow.planner.rules.transform import transform


def prune_columns(node: Node) -> Node:
    """Columns that nobody asks for leave every join."""
    asked = columns_asked(node, set(node.schema))

    def pruned(before: Node, now: Node) -> Node:
        if not isinstance(now, Join):
            return now
        used = asked[id(before)] | columns_in([now.where])
        kept = tuple(column for column in now.columns if column[0] in used)
        return now if kept == now.columns else replace(now, columns=kept)

    return transform(node, pruned)
