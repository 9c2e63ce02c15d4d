"""Weighted set cover: few and idle nodes that together have all segments, as a pure function."""

from __future__ import annotations

from collections.abc import Sequence


def cover(holders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    """Nodes each of which holds something, so that every segment is held by one of them; of the ``holders`` of each
    segment. Greedy: next comes the node with the least weight for each segment that it adds, so that all weigh at most
    1 + 1/2 + 1/3 .. times as much as they have to. Nodes without which the rest is enough are left out.

    >>> cover([(0, 1), (1, 2), (2, 3)], [1, 1, 1, 1]), cover([(0, 1), (1, 2), (2, 3)], [1, 9, 1, 1])
    ([1, 2], [0, 2])
    """
    left = {number: frozenset(nodes) for number, nodes in enumerate(holders)}
    chosen: list[int] = []
    while left:
        adds: dict[int, int] = {}
        for nodes in left.values():
            for node in nodes:
                adds[node] = adds.get(node, 0) + 1
        best = min(adds, key=lambda node: (weights[node] / adds[node], node))
        chosen.append(best)
        left = {number: nodes for number, nodes in left.items() if best not in nodes}
    for node in sorted(chosen, key=lambda node: (-weights[node], node)):
        others = [other for other in chosen if other != node]
        if all(any(other in nodes for other in others) for nodes in holders):
            chosen = others
    return sorted(chosen)


def spread(holders: Sequence[Sequence[int]], sizes: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Which of the chosen nodes each segment is probed at: where the fewest rows are so far.

    >>> spread([(0, 1), (0, 1), (0,)], [5, 5, 2], [0, 1])
    [0, 1, 0]
    """
    rows = dict.fromkeys(chosen, 0)
    found = []
    for nodes, size in zip(holders, sizes, strict=True):
        node = min((n for n in nodes if n in rows), key=lambda n: (rows[n], n))
        rows[node] += size
        found.append(node)
    return found
