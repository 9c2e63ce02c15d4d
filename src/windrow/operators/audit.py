"""Audit: counts the promises of a source that say less than what it had promised before, where its parts meet."""

from __future__ import annotations

import polars as pl

from windrow.operators.meld import group_of, promises_frame, promises_of
from windrow.operators.operator import Batch, Changes, Item, Side, State, Stateless
from windrow.progress import Promises, Punctuation

GROUP, SAID = "group", "said"


class Audit(Stateless):
    """Takes what the markers of all parts said since the last call: a group as text or NULL, and a value.

    Among them there is no order, so each is held against what was promised before; inside a part Punctuate counts.

    >>> audit = Audit()
    >>> audit.on_batch(0, marks_frame({None: [7, 9]})), audit.on_batch(0, marks_frame({None: [8, 9]}))[0].count
    ([], 1)
    """

    def __init__(self) -> None:
        self.promises = Promises()
        self._saved = True

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        said = [(None if g is None else group_of(g), tuple(v)) for g, v in _by_group(batch).rows()]
        told = [Punctuation(values[-1], group, values) for group, values in said]
        count = sum(self.promises.backwards(promise) for promise in told)
        for promise in told:
            self._saved &= not self.promises.give(promise)
        return [Side("ignored", count)] if count else []

    def snapshot(self) -> State:
        return {"promised": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        if self._saved:
            return {}
        self._saved = True
        return dict(self.snapshot())

    def restore(self, state: State) -> None:
        told = state.get("promised")
        self.promises = promises_of(told).get(0, Promises()) if told is not None else Promises()
        self._saved = True

    def state_bytes(self) -> int:
        return 64 * len(self.promises.groups)


def marks_frame(marks: dict[str | None, list[int]]) -> Batch:
    """What markers said, by group, as Audit takes it."""
    rows = [(group, value) for group, values in marks.items() for value in values]
    return pl.DataFrame(rows, schema={GROUP: pl.String, SAID: pl.Int64}, orient="row")


def _by_group(batch: Batch) -> Batch:
    return batch.sort(SAID).group_by(GROUP, maintain_order=True).agg(SAID)
