"""Which columns of a tree are used: of every node by those over it, and of every source by the query."""

from __future__ import annotations

from windrow.logical.node import Node
from windrow.logical.source import Scan


def columns_read(node: Node, wanted: set[str]) -> dict[str, set[str]]:
    """By the name of a source, the columns that are read from it so that these columns of a node can be computed."""
    asked, found = columns_asked(node, wanted), dict[str, set[str]]()
    for each in node.walk():
        if isinstance(each, Scan):
            found.setdefault(each.name, set()).update(asked[id(each)], each.source.columns)
    return found


def columns_asked(node: Node, wanted: set[str]) -> dict[int, set[str]]:
    """By the identity of each node of a tree, the columns of it that others use."""
    asked: dict[int, set[str]] = {id(node): set(wanted)}
    for each in reversed(list(node.walk())):  # consumers first
        for given, used in zip(each.inputs, each.columns_used(asked[id(each)]), strict=True):
            asked.setdefault(id(given), set()).update(used)
    return asked
