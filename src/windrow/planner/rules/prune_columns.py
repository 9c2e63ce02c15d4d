"""Prune columns: a join or sequence has only the columns that are used after it, so that its results are small."""

from __future__ import annotations

from dataclasses import replace

from windrow.logical.node import Node
from windrow.logical.nodes import AsOf, Join, Lookup, MultiJoin, Sequence, columns_asked
from windrow.planner.rules.transform import transform


def prune_columns(node: Node) -> Node:
    """Columns that are not used are removed from every join, with streams and with tables, and from sequences."""
    asked = columns_asked(node, set(node.schema))

    def pruned(before: Node, now: Node) -> Node:
        if isinstance(now, Sequence):
            measures = tuple(m for m in now.measures if m.name in asked[id(before)])
            return now if measures == now.measures or not measures else replace(now, measures=measures)
        if not isinstance(now, (AsOf, Join, Lookup, MultiJoin)):
            return now
        if isinstance(now, Join) and now.limits is not None:
            return now
        used = asked[id(before)] | now.tested
        if isinstance(now, Lookup):  # what its rows progress by stays
            used |= {*now.times, *now.arrival, *now.promised_by}
        kept = tuple(column for column in now.columns if column[0] in used)
        return now if kept == now.columns else replace(now, columns=kept)  # type: ignore[arg-type]

    return transform(node, pruned)
