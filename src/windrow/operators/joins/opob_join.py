"""OpobJoin: the pairs of a WindowJoin in order, held until no earlier one can come (OPOB-Join, Li 7.3)."""

from __future__ import annotations

from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.operator import Item, Side, Wait
from windrow.operators.rows.sort import Sort
from windrow.operators.state.parts import part_of, together
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, Changes, State

JOIN, BUFFER = "join", "buffer"


class OpobJoin:
    """Order-preserving, output-buffered: rows are joined as they arrive, and results wait until the promise of the join
    covers them. So they come out in the order of the time that the join progresses on.

    >>> import polars as pl
    >>> from windrow.windows.pairing import Within
    >>> types = {"a": pl.String()}, {"b": pl.String()}
    >>> join = OpobJoin(WindowJoin(["k"], Within(0, 5), types, on="left"))
    >>> join.on_batch(0, pl.DataFrame({"k": [1, 1], "@t": [12, 10], "a": ["x", "y"]}))
    []
    >>> [counted] = join.on_batch(1, pl.DataFrame({"k": [1], "@t": [13], "b": ["z"]}))
    >>> join.on_punctuation(0, Punctuation(20)), join.on_punctuation(1, Punctuation(17))[0].rows()
    ([], [('y', 'z', 10), ('x', 'z', 12)])
    """

    def __init__(self, join: WindowJoin) -> None:
        self.join = join
        self.buffer = Sort()

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return self._in_order(self.join.on_batch(port, batch))

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return self._in_order(self.join.on_punctuation(port, promise))

    def on_flush(self) -> list[Item]:
        return self._in_order(self.join.on_flush())

    def _in_order(self, items: list[Item]) -> list[Item]:
        """What the join gives, through the buffer; what is counted apart from the results has no order."""
        found: list[Item] = []
        for item in items:
            if isinstance(item, Side):
                found.append(item)
            elif isinstance(item, Punctuation):
                found += self.buffer.on_punctuation(0, item)
            else:
                found += self.buffer.on_batch(0, item)
        return found

    def waits_for(self) -> list[Wait]:
        """The join's; a result waits for a promise of the join, which follows from those of its inputs."""
        return self.join.waits_for()

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return together({JOIN: self.join.snapshot(), BUFFER: self.buffer.snapshot()})

    def changes(self) -> Changes:
        return together({JOIN: self.join.changes(), BUFFER: self.buffer.changes()})

    def restore(self, state: State) -> None:
        self.join.restore(part_of(state, JOIN))
        self.buffer.restore(part_of(state, BUFFER))

    def state_bytes(self) -> int:
        return self.join.state_bytes() + self.buffer.state_bytes()
