"""Promised: what every operator does that remembers promises and no rows."""

from __future__ import annotations

from windrow.operators.operator import Forwarding
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.progress import Promises, Punctuation
from windrow.spec.batches import Changes, State


class Promised(Forwarding):
    """What was promised so far, for everyone and by group, over restarts."""

    def __init__(self) -> None:
        self.promises = Promises()
        self._told = False

    def give(self, promise: Punctuation) -> bool:
        """Take a promise; true if it says more than what was known."""
        new = self.promises.give(promise)
        self._told |= new
        return new

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
