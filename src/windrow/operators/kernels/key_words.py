"""Key words: the columns of a group key as 64-bit integers, equal exactly where the keys are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from windrow.operators.state.keyed import matched
from windrow.spec.batches import Batch, State
from windrow.windows.tuples import Bools, Ints

MOST_KEYS = 62  # their NULL flags share a word
VALUE, CODE = "value", "code"


def encodable(dtype: pl.DataType) -> bool:
    """Whether values of this type can be words, by themselves or by a number that stands for them."""
    return _numeric(dtype) or _numbered(dtype)


def _numeric(dtype: pl.DataType) -> bool:
    narrow = dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128)
    return narrow or dtype.is_float() or dtype.is_temporal() or dtype == pl.Boolean


def _numbered(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Binary) or dtype.is_decimal()


class KeyWords:
    """One word per key, and one for which of them are NULL. The types of the keys come with the first batch.

    Texts are numbered. A text keeps its number as long as an entry has it; those of no entry are forgotten by
    ``prune``, so that the numbers are bounded by the table.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.width = len(self.keys) + 1 if self.keys else 0
        self.types: dict[str, pl.DataType] = {}
        self.known: dict[str, Batch] = {}

    def learn(self, schema: Mapping[str, pl.DataType]) -> None:
        """Take the types of the keys from a batch."""
        if not self.types:
            self.types = {k: schema[k] for k in self.keys}
            self.known = {k: _numbers(t) for k, t in self.types.items() if _numbered(t)}

    def encode(self, batch: Batch, into: Ints) -> None:
        """Write the words of a batch into the columns of an array."""
        if self.keys:
            into[:, -1] = 0
        for i, key in enumerate(self.keys):
            column = batch[key]
            into[:, i] = self._numbers_of(key, column) if key in self.known else _words(column)
            if column.null_count():
                nulls = column.is_null().to_numpy()
                into[:, -1] |= nulls.astype(np.int64) << i

    def decode(self, words: Ints) -> list[pl.Series]:
        """The key columns of some words."""
        found = []
        for i, key in enumerate(self.keys):
            column = words[:, i]
            nulls = (words[:, -1] >> i & 1).astype(bool)
            if key in self.known:
                found.append(self._texts(key, column, nulls))
            else:
                found.append(_masked(_values(key, column, self.types[key]), nulls))
        return found

    def many(self) -> int:
        """How many texts of a key are numbered, at most."""
        return max((frame.height for frame in self.known.values()), default=0)

    def prune(self, words: Ints) -> None:
        """Forget the numbers that none of these words has."""
        for i, key in enumerate(self.keys):
            if key in self.known:
                kept = pl.Series(CODE, np.unique(words[:, i]))
                self.known[key] = self.known[key].filter(pl.col(CODE).is_in(kept.implode()))

    # -- numbers for texts -----------------------------------------------------------------------------------------
    def _numbers_of(self, key: str, column: pl.Series) -> Ints:
        given = pl.DataFrame({VALUE: column})
        codes = matched(given, self.known[key], [VALUE], "left")[CODE]
        if codes.null_count() > column.null_count():
            fresh = given.filter(codes.is_null() & column.is_not_null()).unique(maintain_order=True)
            # Only an entry needs its number; a forgotten one may be given again.
            first = int(self.known[key][CODE].to_numpy().max(initial=0)) + 1
            numbers = pl.Series(CODE, np.arange(first, first + fresh.height))
            self.known[key] = pl.concat([self.known[key], fresh.with_columns(numbers)])
            codes = matched(given, self.known[key], [VALUE], "left")[CODE]
        return codes.fill_null(0).to_numpy()

    def _texts(self, key: str, codes: Ints, nulls: Bools) -> pl.Series:
        known = self.known[key]
        at = np.searchsorted(known[CODE].to_numpy(), codes)  # they were appended in order
        places = pl.Series(at).set(pl.Series(nulls), None) if nulls.any() else pl.Series(at)
        return known[VALUE].gather(places).alias(key)

    # -- state -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return {f"numbers/{self.keys.index(k)}": frame for k, frame in self.known.items()}

    def restore(self, state: State) -> None:
        for key in self.known:
            self.known[key] = state[f"numbers/{self.keys.index(key)}"]

    def state_bytes(self) -> int:
        return int(sum(frame.estimated_size() for frame in self.known.values()))


def _numbers(dtype: pl.DataType) -> Batch:
    return pl.DataFrame(schema={VALUE: dtype, CODE: pl.Int64()})


def _words(column: pl.Series) -> Ints:
    if column.dtype.is_float():
        # 0.0 and -0.0 are equal keys, and so are all NaNs.
        values = column.cast(pl.Float64).fill_null(0.0).fill_nan(float("nan")).to_numpy() + 0.0
        return values.view(np.int64)
    return column.to_physical().cast(pl.Int64, wrap_numerical=True).fill_null(0).to_numpy()


def _values(key: str, words: Ints, dtype: pl.DataType) -> pl.Series:
    if dtype.is_float():
        return pl.Series(key, np.ascontiguousarray(words).view(np.float64)).cast(dtype)
    if dtype == pl.Boolean:
        return pl.Series(key, words != 0)
    physical = pl.Series([], dtype=dtype).to_physical().dtype
    return pl.Series(key, np.ascontiguousarray(words)).cast(physical, wrap_numerical=True).cast(dtype)


def _masked(column: pl.Series, nulls: Bools) -> pl.Series:
    if not nulls.any():
        return column
    missing = pl.Series(column.name, [None], dtype=column.dtype).new_from_index(0, len(column))
    return column.zip_with(pl.Series(~nulls), missing)
