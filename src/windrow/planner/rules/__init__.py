"""Rewrites of logical plans: each rule in its file, applied in the order of ``RULES``. None changes a meaning."""

from __future__ import annotations

from collections.abc import Callable

from windrow.logical.node import Node
from windrow.planner.rules.prune_columns import prune_columns
from windrow.planner.rules.push_filters import push_filters

Rule = Callable[[Node], Node]
RULES: tuple[Rule, ...] = (push_filters, prune_columns)


def rewritten(node: Node, rules: tuple[Rule, ...] = RULES) -> Node:
    """A plan after all rules."""
    for rule in rules:
        node = rule(node)
    return node
