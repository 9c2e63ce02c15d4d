"""Rewriting a tree bottom up. A node that is used twice stays one node, so that hosts still share it."""

from __future__ import annotations

from collections.abc import Callable

from windrow.logical.node import Node


def transform(node: Node, change: Callable[[Node, Node], Node]) -> Node:
    """The tree with ``change`` applied to every node, inputs first; it gets the node as it was, and over new inputs."""
    done: dict[int, Node] = {}

    def of(each: Node) -> Node:
        if id(each) not in done:
            inputs = tuple(of(given) for given in each.inputs)
            same = all(a is b for a, b in zip(inputs, each.inputs, strict=True))
            done[id(each)] = change(each, each if same else each.rebuild(*inputs))
        return done[id(each)]

    return of(node)
