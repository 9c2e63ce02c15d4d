"""What is in the buffers, as chunks of state: nothing, unless a snapshot is taken while something can still run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.graph.buffers import ITEM, SEQUENCE, Buffer, Cell, Reader
from windrow.graph.states import Node
from windrow.operators.operator import Item
from windrow.operators.progress.meld import group_of, group_text
from windrow.progress import START, Punctuation
from windrow.spec.batches import Batch, Changes, State

PREFIX = "@arcs/"  # no name of a node begins like this
HEADS = f"{PREFIX}heads"
ROWS, PROMISE = "/rows", "/promise"
NOWHERE = -1  # of a reader that has read everything
SCHEMA = {
    "buffer": pl.String,
    "node": pl.String,
    "port": pl.Int64,
    "again": pl.Int64,
    "at": pl.Int64,
    "offset": pl.Int64,
    "register": pl.Int64,
    "ets": pl.Int64,
}
Buffers = Mapping[str, Buffer]
Nodes = Mapping[int, Node]


@dataclass
class Arcs:
    """Turns buffers into chunks and back. An item never changes, so its chunk is written and freed once."""

    written: State = field(default_factory=dict)

    def snapshot(self, buffers: Buffers, nodes: Nodes) -> State:
        found: State = {}
        for name, buffer in buffers.items():
            for cell in buffer.cells():
                key, chunk = _chunk(cell[ITEM])
                found[f"{PREFIX}{name}/{cell[SEQUENCE]}{key}"] = chunk
        heads = _heads(buffers, nodes)
        return found | {HEADS: heads} if heads.height else found

    def changes(self, buffers: Buffers, nodes: Nodes) -> Changes:
        before, self.written = self.written, self.snapshot(buffers, nodes)
        changed: Changes = {name: None for name in before if name not in self.written}
        for name, chunk in self.written.items():
            if name not in before or (name == HEADS and not chunk.equals(before[name])):
                changed[name] = chunk
        return changed

    def restore(self, state: State, buffers: Buffers, nodes: Nodes) -> int:
        """Fill the buffers with what a snapshot has; returns the greatest sequence number."""
        self.written = {name: chunk for name, chunk in state.items() if name.startswith(PREFIX)}
        heads = self.written.get(HEADS, pl.DataFrame(schema=SCHEMA))
        places = {(b, n, p, again): rest for b, n, p, again, *rest in heads.rows()}
        last = 0
        for name, buffer in buffers.items():
            cells = self._refill(name, buffer)
            last = max([last, *cells])
            for key, reader in _readers(name, buffer, nodes).items():
                at, reader.offset, reader.register, reader.ets = places.get(key, (NOWHERE, 0, START, None))
                reader.head = cells.get(at, buffer.tail)
        return last

    def _refill(self, name: str, buffer: Buffer) -> dict[int, Cell]:
        """The cells of a buffer by sequence number."""
        prefix = f"{PREFIX}{name}/"
        items: dict[int, Item] = {}
        for key, chunk in self.written.items():
            number, _, kind = key.removeprefix(prefix).partition("/")
            if key.startswith(prefix) and number.isdigit():
                items[int(number)] = chunk if f"/{kind}" == ROWS else _promise(chunk)
        buffer.tail = [None, None, 0, 0]
        cells: dict[int, Cell] = {}
        for sequence in sorted(items):
            cells[sequence] = buffer.tail
            buffer.put(items[sequence], sequence)
        return cells


def _chunk(item: Item) -> tuple[str, Batch]:
    if isinstance(item, pl.DataFrame):
        return ROWS, item
    assert isinstance(item, Punctuation)
    group = None if item.group is None else group_text(item.group)
    given = {"value": item.value, "group": group, "marks": item.marks, "reached": item.reached, "boxes": item.boxes}
    return PROMISE, pl.DataFrame({"promise": [json.dumps(given)]})


def _promise(chunk: Batch) -> Punctuation:
    given: dict[str, Any] = json.loads(chunk.item())
    group = None if given["group"] is None else group_of(given["group"])
    boxes = tuple((a, b) for a, b in given["boxes"])
    return Punctuation(given["value"], group, tuple(given["marks"]), given["reached"], boxes)


def _readers(name: str, buffer: Buffer, nodes: Nodes) -> dict[tuple[str, str, int, int], Reader]:
    """Readers by buffer, node, port, and how many of the same come before."""
    found: dict[tuple[str, str, int, int], Reader] = {}
    for reader in buffer.readers:
        key, again = (name, nodes[reader.node].name, reader.port), 0
        while (*key, again) in found:
            again += 1
        found[(*key, again)] = reader
    return found


def _heads(buffers: Buffers, nodes: Nodes) -> Batch:
    """Where each reader is that has something to read or a time in its register."""
    rows = [
        (*key, _place(reader), reader.offset, reader.register, reader.ets)
        for name, buffer in buffers.items()
        for key, reader in _readers(name, buffer, nodes).items()
        if reader.more() or reader.register > START or reader.ets is not None
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _place(reader: Reader) -> int:
    return int(reader.head[SEQUENCE]) if reader.more() else NOWHERE
