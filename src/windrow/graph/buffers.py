"""Buffers between operators: one for each producer, read by all its consumers through heads of their own.

The paper puts a Fork operator and dummy buffers between a producer and several consumers (Bai et al., Figure 7). Here
the items of a buffer are a linked list and a consumer holds the cell that it reads next, so an item leaves the buffer
when the last of them has gone past it, without a copy and without bookkeeping.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.operators.operator import Item
from windrow.progress import START
from windrow.spec.batches import Batch

# A cell is [item, next cell, sequence number, readers left]; the last one of a buffer is empty and has no next cell.
# A list and not a class: the scheduler makes one per item.
Cell = list[Any]
ITEM, NEXT, SEQUENCE, LEFT = range(4)


@dataclass
class Flow:
    """What went through a node: how often it ran, on how many rows and bytes, and what it gave."""

    steps: int = 0
    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0


@dataclass
class Memory:
    """What buffers hold, each item counted once, however many consumers have yet to read it. Promises weigh nothing.

    >>> m = Memory()
    >>> m.arrived(pl.DataFrame({"x": [1, 2]})); m.left(pl.DataFrame({"x": [1, 2]}))
    >>> m.rows, m.peak_rows, m.peak_bytes
    (0, 2, 16)
    """

    rows: int = 0
    bytes: int = 0
    peak_rows: int = 0
    peak_bytes: int = 0
    flows: defaultdict[int, Flow] = field(default_factory=lambda: defaultdict(Flow))  # by node

    def anew(self) -> Memory:
        """What measures from now on, where the graph has another state."""
        return Memory()

    def ran(self, node: int, item: Item, produced: Iterable[Item]) -> None:
        """A node took an item and gave some."""
        flow = self.flows[node]
        flow.steps += 1
        if isinstance(item, pl.DataFrame):
            flow.rows_in += item.height
            flow.bytes_in += int(item.estimated_size())
        for each in produced:
            if isinstance(each, pl.DataFrame):
                flow.rows_out += each.height
                flow.bytes_out += int(each.estimated_size())

    def arrived(self, item: Item) -> None:
        if isinstance(item, pl.DataFrame):
            self.rows += item.height
            self.bytes += int(item.estimated_size())
            self.peak_rows = max(self.peak_rows, self.rows)
            self.peak_bytes = max(self.peak_bytes, self.bytes)

    def left(self, item: Item) -> None:
        if isinstance(item, pl.DataFrame):
            self.rows -= item.height
            self.bytes -= int(item.estimated_size())


class Buffer:
    """The output of the node ``producer``, or an input of a graph: then it is negative."""

    __slots__ = ("producer", "readers", "tail")

    def __init__(self, producer: int = -1) -> None:
        self.producer = producer
        self.readers: list[Reader] = []
        self.tail: Cell = [None, None, 0, 0]

    def put(self, item: Item, sequence: int) -> None:
        """Append an item; sequence numbers grow over all buffers of a graph, so that readers of several can compare."""
        cell = self.tail
        self.tail = tail = [None, None, 0, 0]
        cell[ITEM], cell[SEQUENCE], cell[LEFT] = item, sequence, len(self.readers)
        cell[NEXT] = tail

    def cells(self) -> Iterator[Cell]:
        """The items that somebody has yet to read, oldest first, each once."""
        heads = [reader.head for reader in self.readers if reader.head[NEXT] is not None]
        cell: Cell = min(heads, key=lambda head: int(head[SEQUENCE]), default=self.tail)
        while cell[NEXT] is not None:
            yield cell
            cell = cell[NEXT]

    def settle(self, memory: Memory) -> None:
        """Count what is there, and who has yet to read it."""
        for cell in self.cells():
            cell[LEFT] = 0
            memory.arrived(cell[ITEM])
        for reader in self.readers:
            cell = reader.head
            while cell[NEXT] is not None:
                cell[LEFT] += 1
                cell = cell[NEXT]


class Reader:
    """A consumer's head in a buffer: the next item on one port of one node.

    ``offset``: how many rows of that item it has taken already, if it takes fewer at a time than the item has.
    ``register`` and ``ets``: see registers.py; ``seen`` and ``seen_at``: the row whose ``time`` was read last.

    >>> b = Buffer()
    >>> one, two = Reader(b, node=1, port=0), Reader(b, node=2, port=0)
    >>> b.put("item", 1)
    >>> one.take(), one.more(), two.more()
    ('item', False, True)
    """

    __slots__ = ("buffer", "ets", "head", "node", "offset", "port", "register", "seen", "seen_at", "time")

    def __init__(self, buffer: Buffer, node: int, port: int) -> None:
        self.buffer, self.node, self.port = buffer, node, port
        self.head = buffer.tail
        self.offset = 0
        self.register = START
        self.ets: int | None = None  # not None: the register is active
        self.seen: Item | None = None
        self.seen_at, self.time = 0, START
        buffer.readers.append(self)

    def more(self) -> bool:
        return self.head[NEXT] is not None

    def take(self, memory: Memory | None = None) -> Item:
        """The next item, or what is left of it."""
        cell = self.head
        self.head = cell[NEXT]
        item: Item = cell[ITEM]
        if memory is not None:
            _release(cell, memory)
        if self.offset:
            assert isinstance(item, pl.DataFrame)
            item, self.offset = item.slice(self.offset), 0
        return item

    def take_rows(self, most: int, memory: Memory | None = None) -> Item:
        """Up to so many rows as one batch, from one item or several; a promise ends the batch, or comes alone."""
        first = self.head[ITEM]
        if not isinstance(first, pl.DataFrame) or first.height - self.offset == most:
            return self.take(memory)
        parts: list[Batch] = []
        room = most
        while self.head[NEXT] is not None and (room or not parts):
            batch = self.head[ITEM]
            if not isinstance(batch, pl.DataFrame) or (parts and batch.schema != parts[0].schema):
                break
            part = self.some(room, memory)
            room -= part.height
            parts.append(part)
        return parts[0] if len(parts) == 1 else pl.concat(parts)

    def some(self, most: int, memory: Memory | None = None) -> Batch:
        """Up to so many rows of the next item."""
        batch: Batch = self.head[ITEM]
        if batch.height - self.offset > most:
            part = batch.slice(self.offset, most)
            self.offset += most
            return part
        rest = self.take(memory)
        assert isinstance(rest, pl.DataFrame)
        return rest

    def close(self, memory: Memory | None = None) -> None:
        """Stop reading; what nobody else has yet to read is gone."""
        self.buffer.readers.remove(self)
        cell = self.head
        while memory is not None and cell[NEXT] is not None:
            _release(cell, memory)
            cell = cell[NEXT]
        self.head = self.buffer.tail


def _release(cell: Cell, memory: Memory) -> None:
    cell[LEFT] -= 1
    if cell[LEFT] == 0:
        memory.left(cell[ITEM])
