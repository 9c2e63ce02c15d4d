"""Punctuate: promises from slack. The stream is never more than ``slack`` behind the greatest value seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from windrow.operators.operator import Forwarding, Item, Side
from windrow.operators.progress.audit import marks_frame
from windrow.operators.progress.meld import group_text, promises_frame, promises_of
from windrow.progress import END, START, Promises, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS, SOURCE


def ignored(held: Promises, promise: Punctuation) -> list[Side]:
    """A count of the markers in a promise that are weaker than what is known."""
    count = held.backwards(promise)
    return [Side("ignored", count)] if count else []


def unaudited(promise: Punctuation, counted: int) -> list[Side]:
    """The markers that this part of the stream cannot count as ignored: who sees all parts may have to."""
    rest = promise.marks[counted:]
    about = None if promise.group is None else group_text(promise.group)
    return [Side("marks", 0, marks_frame({about: list(rest)}))] if rest else []


class Punctuate(Forwarding):
    """After each batch, promises ``max(@t) - slack`` if that is more than before. ``slack=0`` is an ordered stream.

    ``distinct``: no two rows have the same value, so that the greatest itself is past, too. ``sourced``: each source
    partition (column ``@source``) promises for itself. Without slack it promises nothing until the stream ends; then
    it says how far the stream came, which is where windows without an end of their own end.

    >>> Punctuate(3).on_batch(0, pl.DataFrame({"@t": [10, 7]}))[1]
    Punctuation(value=7, group=None)
    """

    def __init__(self, slack: int | None, distinct: bool = False, sourced: bool = False) -> None:
        self.slack = slack
        self.ahead = 1 if distinct and slack == 0 else 0
        self.distinct = distinct
        self.sourced = sourced
        self.promises = Promises()
        self.greatest = START
        self._saved = True

    @property
    def promised(self) -> int:
        """The promise for everyone."""
        return self.promises.low

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if not batch.height:
            return [batch]
        self.greatest = max(self.greatest, int(batch[PROGRESS].max()))  # type: ignore[arg-type]
        return [batch, *self._promises(batch)]

    def _promises(self, batch: Batch) -> Iterator[Punctuation]:
        if self.slack is None:
            return
        tops = batch.group_by(SOURCE, maintain_order=True).agg(pl.col(PROGRESS).max()) if self.sourced else None
        found = tops.rows() if tops is not None else [(None, self.greatest)]
        for group, top in found:
            promise = Punctuation(int(top) - self.slack + self.ahead, group)
            if self.promises.give(promise):
                self._saved = False
                yield promise

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise from upstream is as good as one of our own. A weaker one than known is counted."""
        counted, before = ignored(self.promises, promise), self.promises.low
        if not self.promises.give(promise):
            return list(counted)
        self._saved = False
        if promise.value == END and promise.group is None and self.greatest > START:
            return list(ended(before, self.greatest + self.distinct))
        marks = unaudited(promise, counted[0].count if counted else 0)
        return [*counted, *marks, replace(promise, marks=())]

    def snapshot(self) -> State:
        reached = pl.DataFrame({"value": [self.greatest]})
        return {"promised": promises_frame([(0, self.promises)]), "reached": reached}

    def changes(self) -> Changes:
        if self._saved:
            return {}
        self._saved = True
        return dict(self.snapshot())

    def restore(self, state: State) -> None:
        saved = state.get("promised")
        self.promises = promises_of(saved).get(0, Promises()) if saved is not None else Promises()
        self.greatest = int(state["reached"]["value"][0]) if "reached" in state else START
        self._saved = True

    def state_bytes(self) -> int:
        return 0
