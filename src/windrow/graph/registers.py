"""TSM registers: how far each input of an operator that works in order has come (Bai et al., section 4, Figure 8).

A register has the time of the input's current row, and keeps it until the next row or promise. An ETS that came over
an arc of the enhanced graph makes it active until the operator has taken it. ``more`` is relaxed: a row can be taken if
its time is the least of all registers, also if other inputs are empty, so that simultaneous rows are all taken.
"""

from __future__ import annotations

import polars as pl

from windrow.errors import GraphError
from windrow.graph.buffers import ITEM, NEXT, Memory, Reader
from windrow.graph.states import State
from windrow.operators.operator import Item
from windrow.progress import END, Punctuation
from windrow.spec.names import PROGRESS


class Registered(State):
    """A state that takes rows of all inputs in the order of their times, or that is the end of ETS arcs, or both."""

    __slots__ = ()

    def more(self) -> bool:
        return self.oldest() is not None

    def oldest(self) -> Reader | None:
        for reader in self.readers:
            if reader.ets is not None:
                return reader  # it was written while the buffer was empty, so it comes before what is there now
        if self.node is None or not self.node.in_order:
            return super().oldest()
        return self._first()

    def idles(self) -> bool:
        """Whether it has rows that it cannot take yet."""
        assert self.node is not None
        return self.node.in_order and any(r.head[NEXT] is not None for r in self.readers) and not self.more()

    def _first(self) -> Reader | None:
        """A promise, or a row whose time is the least of the registers."""
        for reader in self.readers:
            if reader.head[NEXT] is None:
                continue
            item = reader.head[ITEM]
            if not isinstance(item, pl.DataFrame) or item.height == 0:
                return reader
            if reader.seen is not item or reader.seen_at != reader.offset:
                self._look(reader, item)
            reader.register = max(reader.register, reader.time)
        least = min([reader.register for reader in self.readers])
        for reader in self.readers:
            if reader.head[NEXT] is not None and reader.time <= least:
                return reader
        return None

    def _look(self, reader: Reader, item: pl.DataFrame) -> None:
        """Read the time of the current row once: it is asked for after every step nearby."""
        assert self.node is not None
        times = item[PROGRESS]
        if reader.seen is not item and item.height > 1 and not times.is_sorted():
            raise GraphError(f"{self.node.name} takes rows in order, and rows on its port {reader.port} are not sorted")
        reader.seen, reader.seen_at, reader.time = item, reader.offset, times[reader.offset]

    def take(self, reader: Reader, memory: Memory | None) -> Item:
        if reader.ets is not None:
            promise, reader.ets = Punctuation(reader.ets), None
            reader.register = max(reader.register, promise.value)
            return promise
        item = reader.head[ITEM]
        if isinstance(item, Punctuation) and item.group is None:
            reader.register = max(reader.register, item.value)
        if self.node is None or not self.node.in_order or not isinstance(item, pl.DataFrame) or item.height == 0:
            return super().take(reader, memory)
        if item.height - reader.offset == 1:
            return reader.take(memory)
        limit = min((r.register for r in self.readers if r is not reader), default=END)
        times = item[PROGRESS].slice(reader.offset)
        # At least the current row, whose time is the least of the registers; its own may be ahead of a late row.
        ready = max(1, int(times.search_sorted(limit, side="right")))
        return reader.some(min(ready, self.rows or ready), memory)
