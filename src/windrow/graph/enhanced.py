"""The enhanced query graph: ETS arcs that skip operators which pass promises on unchanged (Bai et al., section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.graph.buffers import NEXT, Buffer, Reader
from windrow.graph.states import Node
from windrow.operators.operator import Forwarding
from windrow.progress import END, Punctuation


@dataclass(frozen=True)
class Arc:
    """An ETS arc: from a source or an operator that may idle-wait to the next such operator."""

    start: str
    end: str
    port: int


@dataclass
class Way:
    """What an ETS skips: the readers that must have nothing to read, and the registers at the ends.

    ``open``: a promise also goes somewhere without a register, so it has to take the usual way.
    """

    skipped: list[Reader]
    ends: list[Reader]
    open: bool

    def free(self) -> bool:
        """Whether an ETS overtakes nothing on this way."""
        if self.open or not self.ends:
            return False
        empty = all(reader.head[NEXT] is None for reader in (*self.skipped, *self.ends))
        return empty and all(reader.ets is None for reader in self.ends)

    def send(self, promise: Punctuation) -> bool:
        """Write a promise into the registers at the ends; false if it has to take the usual way.

        Only a plain promise fits a register. The end of a stream comes with what it reached, and goes the usual way.
        """
        plain = promise == Punctuation(promise.value) and promise.value != END and not promise.marks
        if not plain or not self.free():
            return False
        for reader in self.ends:
            reader.ets = promise.value
        return True


def skippable(node: Node, outputs: set[int]) -> bool:
    """Whether an operator passes each promise on unchanged, and nobody outside the graph sees that."""
    same = getattr(type(node.operator), "on_punctuation", None) is Forwarding.on_punctuation
    inside = bool(node.buffer.readers) and node.number not in outputs
    return same and inside and not node.in_order and len(node.readers) == 1


def way(buffer: Buffer, nodes: Mapping[int, Node], outputs: set[int]) -> Way:
    """From a buffer through operators that can be skipped to those that cannot."""
    found = Way([], [], open=buffer.producer in outputs)
    waiting = [buffer]
    while waiting:
        for reader in waiting.pop().readers:
            node = nodes[reader.node]
            if skippable(node, outputs):
                found.skipped.append(reader)
                waiting.append(node.buffer)
            elif idle_waiting_prone(node):
                found.ends.append(reader)
            else:  # an operator that promises leave the graph from
                found.open = True
    return found


def idle_waiting_prone(node: Node) -> bool:
    """Whether it does something with promises."""
    return node.in_order or getattr(type(node.operator), "on_punctuation", None) is not Forwarding.on_punctuation
