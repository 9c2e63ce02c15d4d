"""Everyone: passes promises about all rows and stops those about single groups, which mean nothing further on."""

from __future__ import annotations

from windrow.operators.operator import Item, Side, Stateless
from windrow.progress import Punctuation
from windrow.spec.batches import Batch


class Everyone(Stateless):
    """Stands where a stream with promises by group meets an operator with other groups, or with none.

    ``counts``: whether such promises come from markers, and not as a by-product, so that ignoring them is counted.

    >>> Everyone(True).on_punctuation(0, Punctuation(5, ("a",)))[0].kind
    'ignored'
    """

    def __init__(self, counts: bool) -> None:
        self.counts = counts

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is None:
            return [promise]
        return [Side("ignored", 1)] if self.counts else []
