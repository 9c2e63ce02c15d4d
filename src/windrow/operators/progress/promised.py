"""Promised: the base of operators that remember promises and no rows."""

from __future__ import annotations

from windrow.operators.operator import Forwarding
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.progress import Promises, Punctuation
from windrow.spec.batches import Changes, State


class Promised(Forwarding):
    """The promises so far, for everyone and by group; they survive restarts."""

    def __init__(self) -> None:
        self.promises = Promises()
        self._changed = False

    def give(self, promise: Punctuation) -> bool:
        """Take a promise; true if it is stronger than what was known."""
        new = self.promises.give(promise)
        self._changed |= new
        return new

    def snapshot(self) -> State:
        return {"promises": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        changed, self._changed = self._changed, False
        return dict(self.snapshot()) if changed else {}

    def restore(self, state: State) -> None:
        saved = state.get("promises")
        self.promises = promises_of(saved).get(0, Promises()) if saved is not None else Promises()
        self._changed = False

    def state_bytes(self) -> int:
        return 64 * len(self.promises.groups)
