"""Timestamps of sources, and enabling timestamps (ETS) on demand (Bai et al., section 4).

When an operator waits for the time of an empty input and everything before it has run, its source is asked how far it
has come. The graph reads no clock: what ``now`` is, is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from windrow.errors import GraphError
from windrow.progress import START
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS


@dataclass(frozen=True)
class Timestamps:
    """How the rows of a source get their times, and so what can be promised about those still to come.

    Internal: a row is stamped when it arrives, so all later ones have at least the time it is now. External: a row has
    a time when it comes, and comes at most ``delay`` later. Latent: no operator waits for times, and none are given.

    >>> clock = iter([7, 9])
    >>> stamped = Timestamps.internal(lambda: next(clock))
    >>> stamped.stamp(pl.DataFrame({"x": [1, 2]})).rows(), stamped.ets()
    ([(1, 7), (2, 7)], 9)
    >>> Timestamps.external(lambda: 9, delay=5).ets(), Timestamps.latent().ets()
    (4, None)
    """

    kind: Literal["internal", "external", "latent"]
    now: Callable[[], int] | None = None
    delay: int = 0

    @classmethod
    def internal(cls, now: Callable[[], int]) -> Timestamps:
        return cls("internal", now)

    @classmethod
    def external(cls, now: Callable[[], int], delay: int) -> Timestamps:
        if delay < 0:
            raise GraphError(f"the delay of external timestamps is at least 0, not {delay}")
        return cls("external", now, delay)

    @classmethod
    def latent(cls) -> Timestamps:
        return cls("latent")

    def stamp(self, batch: Batch) -> Batch:
        """Rows with their times, as they arrive."""
        if self.kind != "internal" or self.now is None:
            return batch
        # Not with_columns, which takes three times as long for a single row.
        times = pl.Series(PROGRESS, np.full(batch.height, self.now(), dtype=np.int64))
        if PROGRESS not in batch.columns:
            return batch.hstack([times])
        return batch.clone().replace_column(batch.get_column_index(PROGRESS), times)

    def ets(self) -> int | None:
        """A time that no later row is before."""
        return None if self.now is None else self.now() - self.delay


@dataclass
class Source:
    """An input with timestamps. ``tried``: how much work had been done when it was last asked; no more, no ETS."""

    timestamps: Timestamps
    promised: int = START
    tried: int = -1

    def ets(self, worked: int) -> int | None:
        """A better ETS than before, unless the last one helped nobody. This is what ends the cycles."""
        if self.tried == worked:
            return None
        value = self.timestamps.ets()
        if value is None or value <= self.promised:
            return None
        self.promised, self.tried = value, worked
        return value
