"""What it costs to add a node to a join that is spread over nodes: unknown for ATR and CTR in the paper's Figure 7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.bench.ring_copies import MICROS, ORDERS, coming, joining
from windrow.hosts.ring.simulated_outcome import Come
from windrow.operators.ring.holder import Holder
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.sliced_join import Sent
from windrow.operators.ring.way import WAYS
from windrow.progress import Punctuation
from windrow.spec.batches import Batch

BEFORE, AFTER = 4, 5  # nodes
CHANGED, END = 20, 60  # seconds: when the node is added, and when the streams end
STEP = 0.5  # seconds of rows in a round
SEGMENT = 10  # seconds
SHARE = 0.9  # of the mean, from which on the new node has its share
CHANGES = {
    f"{name}_{relocation}": (way, relocation)
    for name, way in (("atr", "atr"), ("ctr", "ctr"), ("psp", "ring"))
    for relocation in ("passive", "aggressive")
}


@dataclass
class Moves:
    """Rows that a node has got from another one because nodes are more, or fewer, than before."""

    rows: int = 0

    def watch(self, node: Holder) -> None:
        """Count those of a node, from now on."""
        inner: Any = vars(type(node)).get("on_message") or type(node).on_message  # type: ignore[attr-defined]

        def counting(message: Message) -> Iterator[Sent]:
            before = held(node)
            yield from inner(node, message)
            if message.kind == Kind.MOVE:
                self.rows += len(held(node) - before)

        vars(node)["on_message"] = counting


def held(node: Holder) -> set[tuple[int, int]]:
    """The stream and the number of each row of a node."""
    return {(stream, int(n)) for stream, state in enumerate(node.slices) for n in state.numbers if n >= state.start}


def added(way: str, relocation: Any) -> dict[str, float]:
    """Rows that move when a node is added, and the seconds of the streams until it has its share of the rows."""
    rounds, moves = steps(coming(END)), Moves()
    ring, first = made(way, relocation, BEFORE), round(CHANGED / STEP)
    for each in rounds[:first]:
        took(ring, each)
    more = made(way, relocation, AFTER)
    more.restore(ring.snapshot())
    for node in holders(more):
        moves.watch(node)
    waited = float(END - CHANGED)
    for number, each in enumerate(rounds[first:], start=1):
        took(more, each)
        if has_share(more):
            waited = number * STEP
            break
    return {"moved_rows": moves.rows, "share_s": waited}


def made(way: str, relocation: Any, nodes: int) -> Ring:
    """The join, with so many nodes that hold rows."""
    wishes = Wishes(AFTER, nodes, segment=SEGMENT * MICROS, relocation=relocation, ordered=ORDERS)
    return Ring(joining(), wishes, way=WAYS[way])


def holders(ring: Ring) -> list[Holder]:
    """Its nodes."""
    return [node for node in ring.nodes.values() if isinstance(node, Holder)]


def has_share(ring: Ring) -> bool:
    """Whether the last node has about as many rows as the others."""
    rows = [len(held(node)) for node in holders(ring)]
    return rows[-1] >= SHARE * sum(rows) / len(rows)


def steps(come: Sequence[Come]) -> list[list[Batch]]:
    """By round the rows of each stream, and no promises: each round has its own."""
    found = [[list[Batch]() for _ in range(3)] for _ in range(round(END / STEP))]
    for at, port, item in come:
        if not isinstance(item, Punctuation):
            found[int(at / STEP)][port].append(item)
    return [[pl.concat(rows) if rows else pl.DataFrame() for rows in streams] for streams in found]


def took(ring: Ring, rows: Sequence[Batch]) -> None:
    """One round."""
    number = 1 + round(max(0, ring.taken) / MICROS / STEP)
    for port, each in enumerate(rows):
        if each.height:
            ring.on_batch(port, each)
    for port in range(len(rows)):
        ring.on_punctuation(port, Punctuation(round(number * STEP * MICROS)))
