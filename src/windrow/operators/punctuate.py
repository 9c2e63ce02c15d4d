"""Punctuate: promises from slack. The stream is never more than ``slack`` behind the greatest value seen."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import PROGRESS, Batch, Changes, Item, State, Stateless
from windrow.progress import START, Punctuation


class Punctuate(Stateless):
    """After each batch, promises ``max(@t) - slack`` if that is more than before. ``slack=0`` is an ordered stream.

    >>> Punctuate(3).on_batch(0, pl.DataFrame({"@t": [10, 7]}))[1]
    Punctuation(value=7, group=None)
    """

    def __init__(self, slack: int) -> None:
        self.slack = slack
        self.promised = START
        self._saved = START

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        greatest = batch[PROGRESS].max()
        if greatest is None or (promise := int(greatest) - self.slack) <= self.promised:  # type: ignore[arg-type]
            return [batch]
        self.promised = promise
        return [batch, Punctuation(promise)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise from further up is as good as one of ours."""
        if promise.group is None:
            if promise.value <= self.promised:
                return []
            self.promised = promise.value
        return [promise]

    def snapshot(self) -> State:
        return {"promised": pl.DataFrame({"value": [self.promised]})}

    def changes(self) -> Changes:
        if self.promised == self._saved:
            return {}
        self._saved = self.promised
        return dict(self.snapshot())

    def restore(self, state: State) -> None:
        self.promised = self._saved = int(state["promised"]["value"][0]) if "promised" in state else START
