"""Versions: which results of a window have been emitted, so that the next one has the next number."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.aggregates import ROWS
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, STATUS, VERSION, WID

SHOWN = "@shown"  # how many rows the last result of a window and group had


class Versions:
    """The last version of every window and group that has had a result, while it can still have another."""

    def __init__(self, keys: Sequence[str], width: int) -> None:
        self.by = [WID, *keys]
        self.width = width
        self.chunks = Chunks(lambda f: f.group_by(self.by).agg(pl.col(VERSION).max(), pl.col(SHOWN).max()))

    def stamp(self, states: Batch, status: str, before: int, changed_only: bool) -> Batch:
        """States with the next version of each; ``before`` is the version of those that are not recorded."""
        chunks = [c for c in self.chunks.stacks if self._holds(c, states)]
        frames = [frame for c in chunks for frame in self.chunks.stacks[c]]
        if frames:
            known = self.chunks.combine(pl.concat(frames))
            states = matched(states, known, self.by, "left")
        else:
            states = states.with_columns(pl.lit(None, pl.Int64).alias(VERSION), pl.lit(None, pl.Int64).alias(SHOWN))
        if changed_only:
            states = states.filter(pl.col(ROWS).ne_missing(pl.col(SHOWN)))
        next_version = pl.col(VERSION).fill_null(before) + 1
        return states.drop(SHOWN).with_columns(next_version, pl.lit(status).alias(STATUS))

    def record(self, stamped: Batch) -> None:
        """Remember results that were emitted."""
        if stamped.height:
            entries = stamped.select(*self.by, VERSION, pl.col(ROWS).alias(SHOWN))
            self.chunks.append(entries.with_columns((pl.col(WID) // self.width).alias(CHUNK)))

    def free_below(self, wid: int) -> None:
        """Forget windows that can have no further result."""
        self.chunks.free_below(wid // self.width)

    def _holds(self, chunk: int, states: Batch) -> bool:
        low, high = states[WID].min(), states[WID].max()
        return low is not None and int(low) // self.width <= chunk <= int(high) // self.width  # type: ignore[arg-type]
