"""Describe (Tucker's, Li 8.1): promises rolled up to what the windows behind it can use; the others end here."""

from __future__ import annotations

from windrow.operators.operator import Item
from windrow.operators.progress.promised import Promised
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch


class Describe(Promised):
    """Windows close at ``origin`` plus multiples of ``step``: between two of them, promises say nothing new.

    >>> describe = Describe(60)
    >>> [describe.on_punctuation(0, Punctuation(v)) for v in (61, 118, 121)]
    [[Punctuation(value=60, group=None)], [], [Punctuation(value=120, group=None)]]
    """

    def __init__(self, step: int, origin: int = 0) -> None:
        super().__init__()
        self.step = step
        self.origin = origin

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        value = promise.value
        rolled = value if value == END else value - (value - self.origin) % self.step
        found = Punctuation(rolled, promise.group, reached=promise.reached)
        return [found] if self.give(found) else []
