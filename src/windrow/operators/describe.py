"""Describe (Tucker's, Li 8.1): promises rolled up to what the windows behind it can use; the others end here."""

from __future__ import annotations

from windrow.operators.meld import promises_frame, promises_of
from windrow.operators.operator import Batch, Changes, Item, State, Stateless
from windrow.progress import END, Promises, Punctuation


class Describe(Stateless):
    """Windows close at ``origin`` plus multiples of ``step``: between two of them, promises say nothing new.

    >>> describe = Describe(60)
    >>> [describe.on_punctuation(0, Punctuation(v)) for v in (61, 118, 121)]
    [[Punctuation(value=60, group=None)], [], [Punctuation(value=120, group=None)]]
    """

    def __init__(self, step: int, origin: int = 0) -> None:
        self.step = step
        self.origin = origin
        self.promises = Promises()
        self._told = False

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        value = promise.value
        rolled = value if value == END else value - (value - self.origin) % self.step
        found = Punctuation(rolled, promise.group)
        if not self.promises.give(found):
            return []
        self._told = True
        return [found]

    def snapshot(self) -> State:
        return {"promises": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        told, self._told = self._told, False
        return dict(self.snapshot()) if told else {}

    def restore(self, state: State) -> None:
        told = state.get("promises")
        self.promises = promises_of(told).get(0, Promises()) if told is not None else Promises()
        self._told = False

    def state_bytes(self) -> int:
        return 64 * len(self.promises.groups)
