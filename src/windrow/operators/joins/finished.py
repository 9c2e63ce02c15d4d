"""Keys of which a side of a join has promised more than of all rows: punctuation on data attributes (Li, chapter 4)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from windrow.operators.state.keyed import matched
from windrow.progress import Punctuation
from windrow.spec.batches import Batch

PROMISED = "@promised"


@dataclass(frozen=True)
class Named:
    """How a side names a key: ``columns``, the key columns in the order of its names, with the types that they have
    there; ``types``, the types in which keys are compared.
    """

    columns: tuple[tuple[str, pl.DataType], ...]
    types: tuple[tuple[str, pl.DataType], ...]

    def frame(self, group: object) -> Batch:
        """A key as a row."""
        assert isinstance(group, tuple)
        return pl.DataFrame([group], schema=dict(self.columns), orient="row").cast(dict(self.types))


@dataclass
class Finished:
    """The promises of one side about single keys. Those that say no more than the promise about all are forgotten."""

    named: Named | None = None
    keys: Batch | None = None
    _changed: bool = field(default=False, init=False)

    def give(self, promise: Punctuation) -> Batch | None:
        """Take a promise: the key as a row, or None if it says nothing new."""
        if self.named is None:
            return None
        key = self.named.frame(promise.group)
        new = key.with_columns(pl.lit(promise.value, pl.Int64).alias(PROMISED))
        if self.keys is not None:
            before = matched(key, self.keys, key.columns, "inner")
            if before.height and before[PROMISED][0] >= promise.value:
                return None
            new = pl.concat([matched(self.keys, key, key.columns, "anti"), new])
        self.keys, self._changed = new, True
        return key

    def promised(self, rows: Batch, by_all: int) -> int | pl.Series:
        """What is promised about the keys of some rows; one value for all if there is nothing special."""
        if self.keys is None:
            return by_all
        found = matched(rows.select(self._names()), self.keys, self._names(), "left")[PROMISED]
        return pl.Series(PROMISED, np.maximum(found.fill_null(by_all).to_numpy(), by_all))

    def forget(self, by_all: int) -> None:
        """What is promised about all rows needs no mention of single keys."""
        if self.keys is not None:
            kept = self.keys.filter(pl.col(PROMISED) > by_all)
            self._changed |= kept.height < self.keys.height
            self.keys = kept if kept.height else None

    def _names(self) -> list[str]:
        assert self.named is not None
        return [name for name, _ in self.named.columns]

    # -- state -------------------------------------------------------------------------------------------------
    def changed(self) -> bool:
        """Whether anything changed since the last call."""
        before, self._changed = self._changed, False
        return before

    def snapshot(self) -> Batch | None:
        return self.keys

    def restore(self, keys: Batch | None) -> None:
        self.keys, self._changed = keys, False
