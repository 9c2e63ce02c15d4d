"""Gate: late rows leave here, while they still are rows, each with its window and how late it is."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.operators.operator import Item
from windrow.operators.progress.promised import Promised
from windrow.operators.progress.sourced import promised, promised_by_source
from windrow.operators.state.late import Lateness, Spans
from windrow.operators.state.levels import NOBODY, Named
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS, ROW
from windrow.spec.options import Options
from windrow.spec.time import Bounds
from windrow.windows.numbers import Numbered
from windrow.windows.tuples import Ints


class Gate(Promised):
    """Stands before the aggregation of a query with the policy "side", in the same place: it sees the same rows and
    promises, so that both agree on what is late. With generous slack a late row that has open windows goes on, too.
    """

    def __init__(self, window: Numbered, dtype: pl.DataType, options: Options, named: Named = NOBODY) -> None:
        super().__init__()
        self.window = window
        self.lateness = Lateness(window, options, Bounds(dtype, options.zone))
        self.named = dict(named.columns)  # the keys that promises about single groups name

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        at, promise = batch[PROGRESS].to_numpy(), self._promised(batch)
        if not (at < promise).any():  # only a row that breaks a promise can be late
            return [batch.drop(ROW)]
        spans = Spans(*self.window.numbers_array(at), self.window.released_array(promise))
        late = self.lateness.late_for(spans)
        if not late.any():
            return [batch.drop(ROW)]
        going_on = ~late | self.lateness.open_for(spans)
        rows = batch.filter(pl.Series(late)).select(ROW).unnest(ROW)
        side = self.lateness.aside(rows, spans.of(late), (promise - at)[late])
        return [batch.filter(pl.Series(going_on)).drop(ROW), side]

    def _promised(self, batch: Batch) -> Ints:
        """What is promised for each row: about everyone, its group or its source partition."""
        found = promised(batch, self.promises, self.named) if self.named else promised_by_source(batch, self.promises)
        return np.asarray(found.to_numpy())

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        self.give(promise)
        return [promise]

    def state_bytes(self) -> int:
        return 64 * (1 + len(self.promises.groups))
