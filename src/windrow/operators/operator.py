"""The one interface of all operators: rows and promises in, rows and promises out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import polars as pl

from windrow.progress import Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State


@dataclass(frozen=True)
class Side:
    """Rows to be counted apart: bad ones and late ones left the main stream, late ones in revisions did not.
    Evidence is about rows, and counts none; marks are what markers said, for an audit. What is ignored or unmatched are
    promises: those that say less than one before, and those about a group of which nothing is held.

    ``count`` rows are meant; ``rows`` describes them: a bad row with its reason, a late one with its window.
    """

    kind: Literal["bad", "late", "revised", "evidence", "ignored", "unmatched", "marks"]
    count: int
    rows: Batch = field(default_factory=pl.DataFrame, compare=False)


Item = Batch | Punctuation | Side


class Operator(Protocol):
    """One thread owns an operator; a host may snapshot between any two calls.

    Configuration is fixed in ``__init__``; whatever changes later is in ``snapshot()``. It reads no clock, draws no
    random numbers and knows no host, so that every run can be replayed. A promise given to ``on_punctuation`` must
    be true: rows that break it are counted as late and never change a released result.
    """

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        """Take rows of input ``port``."""

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """Take a promise about the rows that will still come on ``port``."""

    def on_flush(self) -> list[Item]:
        """The host has given all it has for now: whatever is due without a promise can come out."""

    def wake_at(self) -> int | None:
        """The smallest promise of its stream that would make it emit or free something; None if none would."""

    def snapshot(self) -> State:
        """All state, as named chunks."""

    def changes(self) -> Changes:
        """The chunks that changed since the last call (None: freed). Applied in turn they add up to ``snapshot``."""

    def restore(self, state: State) -> None:
        """Take over a state that ``snapshot`` of an equally configured operator gave."""

    def state_bytes(self) -> int:
        """How much memory the state holds."""


class Stateless:
    """The state half of the interface for operators that remember nothing, and promises passed on as they are."""

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [promise]

    def on_flush(self) -> list[Item]:
        return []

    def wake_at(self) -> int | None:
        return None

    def snapshot(self) -> State:
        return {}

    def changes(self) -> Changes:
        return {}

    def restore(self, state: State) -> None:
        return None

    def state_bytes(self) -> int:
        return 0


class Rolling(Stateless):
    """For operators that turn several promises into the same one: only what says more than before goes on.

    What was said is forgotten with the operator: at worst a promise comes twice after a restart, and that is harmless.
    """

    def __init__(self) -> None:
        self.given = Promises()

    def news(self, promise: Punctuation) -> list[Item]:
        """The promise, if it is new."""
        return [promise] if self.given.give(promise) else []
