"""Left rows beside right ones, which are at some places of several frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from windrow.operators.kernels.nearest import Spots
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS

Types = Mapping[str, pl.DataType]


class Partners(NamedTuple):
    """Rows of a frame, by their places, as partners of some left rows, by their places; None: of all in turn."""

    frame: Batch
    places: Spots
    of: Spots | None = None


def beside(rows: Batch, partners: Sequence[Partners], types: tuple[Types, Types]) -> Batch:
    """The columns of both sides, with NULL for left rows without a partner, and the progress value of the left row.

    >>> left, right = pl.DataFrame({"a": [1, 2], "@t": [5, 6]}), pl.DataFrame({"b": ["x", "y"]})
    >>> types = {"a": pl.Int64()}, {"b": pl.String()}
    >>> beside(left, [Partners(right, np.array([1]), np.array([0]))], types).rows()
    [(1, 'y', 5), (2, None, 6)]
    """
    columns = [rows[name] for name in types[0]]
    if not types[1]:  # a frame without columns has no rows to take
        return pl.DataFrame([*columns, rows[PROGRESS]])
    if len(partners) == 1 and partners[0].of is None:
        at = pl.Series(partners[0].places)
        columns += [partners[0].frame[name].gather(at) for name in types[1]]
    elif partners:
        columns += _scattered(rows.height, partners, list(types[1]))
    else:
        columns += [pl.Series(name, [None], dtype).new_from_index(0, rows.height) for name, dtype in types[1].items()]
    return pl.DataFrame([*columns, rows[PROGRESS]])


def _scattered(height: int, partners: Sequence[Partners], names: list[str]) -> list[pl.Series]:
    order = np.full(height, -1)
    frames, start = [], 0
    for frame, places, of in partners:
        frames.append(frame.select(names)[places])
        order[slice(None) if of is None else of] = np.arange(start, start + len(places))
        start += len(places)
    at = pl.Series(order, dtype=pl.Int64).replace(-1, None)
    found = pl.concat(frames)
    return [found[name].gather(at) for name in names]
