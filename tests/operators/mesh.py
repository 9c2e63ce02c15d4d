"""Nodes of a distributed join whose messages arrive in any order, but for those of one node to another."""

from collections import deque

import polars as pl

from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Message
from windrow.operators.ring.sliced_join import Found


class Mesh:
    """``choose`` says which of several messages that have been sent arrives next."""

    def __init__(self, way, joining, wishes, choose=lambda ways: ways[0], flight=64):
        self.nodes = [way.node(joining, number, wishes.most, None) for number in range(wishes.most)]
        self.first = way.first(self.nodes[0], Tuning(joining, wishes), flight)
        self.choose = choose
        self.queues = {}
        self.found, self.bad = [], []

    def round(self, rows):
        """Rows of each stream, in order."""
        self._take(0, self.first.begin(rows))
        while not self.first.done:
            ready = sorted(pair for pair, queue in self.queues.items() if queue)
            ways = [*ready, *([None] if self.first.can_feed() else [])]
            pair = self.choose(ways)
            if pair is None:
                self._take(0, self.first.feed())
            else:
                message, to = self.queues[pair].popleft(), pair[1]
                self._take(to, (self.first if to == 0 else self.nodes[to]).on_message(message))
        assert not any(self.queues.values())

    def seen(self):
        """After every step."""

    def _take(self, node, sent):
        for each in sent:
            if isinstance(each, Message):
                to = (node + 1) % len(self.nodes) if each.to is None else each.to
                self.queues.setdefault((node, to), deque()).append(each)
            elif isinstance(each, Found):
                self.found += each.rows.rows()
            else:
                self.bad += each.rows.rows()
            self.seen()


def held(mesh, stream):
    """The numbers of the rows of a stream, node by node."""
    return [node.slices[stream].numbers.tolist() for node in mesh.nodes]


def stream(name, times):
    """Rows of one column, which counts them."""
    return pl.DataFrame({name: range(len(times)), "@t": times}, schema={name: pl.Int64(), "@t": pl.Int64()})
