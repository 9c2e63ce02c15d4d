"""Meld: the order-agnostic union. Rows pass at once; the union promises what its slowest input promises."""

from __future__ import annotations

import json

import polars as pl

from windrow.operators.operator import Batch, Changes, Item, State
from windrow.progress import START, Combined, Punctuation


class Meld:
    """Holds no rows, only the promises of its inputs (Li 1.1, 8.1). A NULL in a group key is a key like any other.

    >>> m = Meld(2)
    >>> m.on_punctuation(0, Punctuation(9)), m.on_punctuation(1, Punctuation(5))
    ([], [Punctuation(value=5, group=None)])
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.combined = Combined(inputs)
        self._changed = False

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        self._changed = True
        return list(self.combined.give(port, promise))

    def wake_at(self) -> int | None:
        """No promise makes it emit rows: it holds none."""
        return None

    def waits_for(self) -> list[int]:
        """The inputs that hold the union back."""
        low = min(p.low for p in self.combined.inputs)
        return [port for port, p in enumerate(self.combined.inputs) if p.low == low]

    def snapshot(self) -> State:
        given = [(-1, self.combined.given), *enumerate(self.combined.inputs)]
        rows: list[tuple[int, str | None, int]] = [(port, None, p.low) for port, p in given]
        rows += [(port, json.dumps(g), v) for port, p in given for g, v in p.groups.items()]
        schema = {"input": pl.Int64, "group": pl.String, "value": pl.Int64}
        return {"promises": pl.DataFrame(rows, schema=schema, orient="row")}

    def changes(self) -> Changes:
        changed, self._changed = self._changed, False
        return dict(self.snapshot()) if changed else {}

    def restore(self, state: State) -> None:
        self.combined = Combined(self.inputs)
        self._changed = False
        for port, group, value in state["promises"].rows() if "promises" in state else ():
            promises = self.combined.given if port < 0 else self.combined.inputs[port]
            if value > START:
                promises.give(Punctuation(value, None if group is None else _hashable(json.loads(group))))

    def state_bytes(self) -> int:
        return 64 * sum(1 + len(p.groups) for p in self.combined.inputs)


def _hashable(group: object) -> object:
    return tuple(group) if isinstance(group, list) else group
