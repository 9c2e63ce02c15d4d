"""LastInstant: the results of windows as a stream, which progresses on the last instant of each window."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Forwarding, Item, OnlyNews
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS


class LastInstant(OnlyNews, Forwarding):
    """``@t`` becomes ``end - lead``, and so do promises, which windows make about their ends. ``lead`` is 1 where the
    end is the first value that is not in the window. Rolling up in steps then equals doing it at once.

    The end of the stream says how far it came, as it does for a source: the greatest ``@t`` of any result, or what was
    promised about them.

    >>> instant = LastInstant(pl.col("window_end"), 1)
    >>> rows, = instant.on_batch(0, pl.DataFrame({"window_end": [10]}))
    >>> rows["@t"].to_list(), instant.on_punctuation(0, Punctuation(20))
    ([9], [Punctuation(value=19, group=None)])
    """

    def __init__(self, end: pl.Expr, lead: int) -> None:
        super().__init__()
        self.at = (end - lead).alias(PROGRESS)
        self.lead = lead
        self.greatest = self._saved = START

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        found = batch.with_columns(self.at)
        if found.height:
            self.greatest = max(self.greatest, int(found[PROGRESS].max()))  # type: ignore[arg-type]
        return [found]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.value == END and promise.group is None:
            reached = max(self.greatest, self.sent.low)
            return self.news(Punctuation(END, reached=reached if reached > START else None))
        return self.news(promise.mapped(lambda value: value - self.lead))

    def snapshot(self) -> State:
        return {"reached": pl.DataFrame({"value": [self.greatest]})} if self.greatest > START else {}

    def changes(self) -> Changes:
        changed, self._saved = self.greatest != self._saved, self.greatest
        return dict(self.snapshot()) if changed else {}

    def restore(self, state: State) -> None:
        self.greatest = self._saved = int(state["reached"]["value"][0]) if "reached" in state else START

    def state_bytes(self) -> int:
        return 0
