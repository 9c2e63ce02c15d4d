"""What AdaptWID watches of a stream (Li 6.3.1, 6.3.4.1): high watermarks, volumes and offsets of its sources."""

from __future__ import annotations

import numpy as np

from windrow.progress import START
from windrow.spec.batches import Batch
from windrow.spec.names import INPUT, PROGRESS

SINCE = "since"
Marks = dict[str, int]


class Watch:
    """The numbers are in the marks of an operator, by source: ``high``, the greatest progress value; ``now`` and
    ``last``, the rows of this window length and of the one before.
    """

    def __init__(self, inputs: int, range: int) -> None:
        self.inputs = inputs
        self.range = range

    def marks(self) -> Marks:
        """The marks that an operator must keep; START means nothing yet."""
        return {SINCE: START, **{f"{what}{i}": START for what in ("high", "now", "last") for i in range(self.inputs)}}

    def note(self, marks: Marks, batch: Batch) -> None:
        """Note rows."""
        at = batch[PROGRESS].to_numpy()
        source = batch[INPUT].to_numpy() if INPUT in batch.columns else np.zeros(len(at), np.int64)
        for i in np.unique(source).tolist():
            here = at[source == i]
            marks[f"high{i}"] = max(marks[f"high{i}"], int(here.max()))
            marks[f"now{i}"] = max(0, marks[f"now{i}"]) + len(here)

    def turn(self, marks: Marks, low: int) -> None:
        """Note the low watermark: after each window length the counting starts again."""
        if low - marks[SINCE] < self.range:
            return
        marks[SINCE] = low
        for i in range(self.inputs):
            marks[f"last{i}"], marks[f"now{i}"] = max(0, marks[f"now{i}"]), 0

    def high(self, marks: Marks) -> int:
        """The high watermark of the stream: that of the most advanced source."""
        return max(marks[f"high{i}"] for i in range(self.inputs))

    def arrived(self, marks: Marks, duration: int) -> float:
        """The share of the rows of a window extent that has arrived while it is open, for it is open for ``duration``
        but a source that lags has brought rows for its offset less: 1 - sum(vol_K offset_K) / (vol wed) in Cond. 6.9.
        """
        high = self.high(marks)
        counts = [max(0, marks[f"now{i}"]) + max(0, marks[f"last{i}"]) for i in range(self.inputs)]
        lags = [min(duration, high - marks[f"high{i}"]) for i in range(self.inputs)]
        missing = sum(count * lag for count, lag in zip(counts, lags, strict=True))
        return 1 - missing / (duration * max(1, sum(counts)))
