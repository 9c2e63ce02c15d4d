"""Audit: counts the promises of a source that are weaker than an earlier one, where the parts of the source meet."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, Side
from windrow.operators.progress.meld import group_of
from windrow.operators.progress.promised import Promised
from windrow.progress import Punctuation
from windrow.spec.batches import Batch

GROUP, VALUE = "group", "value"


class Audit(Promised):
    """Takes the markers of all parts since the last call: a group as text or NULL, and a value.

    They have no order among them, so each is compared with the promises before; inside a part Punctuate counts.

    >>> audit = Audit()
    >>> audit.on_batch(0, marks_frame({None: [7, 9]})), audit.on_batch(0, marks_frame({None: [8, 9]}))[0].count
    ([], 1)
    """

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        marks = [(None if g is None else group_of(g), tuple(v)) for g, v in _by_group(batch).rows()]
        promises = [Punctuation(values[-1], group, values) for group, values in marks]
        count = sum(self.promises.backwards(promise) for promise in promises)
        for promise in promises:
            self.give(promise)
        return [Side("ignored", count)] if count else []


def marks_frame(marks: dict[str | None, list[int]]) -> Batch:
    """The values of markers, by group, as Audit takes them."""
    rows = [(group, value) for group, values in marks.items() for value in values]
    return pl.DataFrame(rows, schema={GROUP: pl.String, VALUE: pl.Int64}, orient="row")


def _by_group(batch: Batch) -> Batch:
    return batch.sort(VALUE).group_by(GROUP, maintain_order=True).agg(VALUE)
