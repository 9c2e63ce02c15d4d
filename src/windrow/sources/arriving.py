"""The rows of files with what a query wants of their arrival: when they came, and their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from windrow.logical.arrival import TYPES
from windrow.sources.files import File, Files, Unreadable, short
from windrow.spec.names import ARRIVAL_TS, POSITION


class TornError(Exception):
    """A file turned out to be unreadable after its head had been read."""


class Arrival(NamedTuple):
    """When the files of a micro-batch were found, in microseconds, and the number of the first row of each."""

    at: int = 0
    first: Mapping[str, int] = {}

    def stamps(self, file: File, wanted: Collection[str], before: int) -> list[pl.Expr]:
        """The columns that say how rows of a file arrived; ``before``: how many rows of it come before these."""
        found = {
            ARRIVAL_TS: pl.lit(self.at, pl.Int64).cast(TYPES[ARRIVAL_TS]),
            POSITION: self.first.get(file.path, 0) + before + pl.int_range(pl.len(), dtype=pl.Int64),
        }
        return [found[name].alias(name) for name in wanted]


def readable(
    files: Files,
    file: File,
    columns: Sequence[str],
    also: Sequence[str] = (),
    arrival: Arrival = Arrival(),  # noqa: B008 (it is a constant)
    stamps: Collection[str] = (),
) -> Iterator[pl.DataFrame]:
    """The rows of a file, with what is wanted of their arrival; TornError alone tells that it cannot be read on."""
    frames, before = files.frames(file, columns, also), 0
    while True:
        try:
            frame = next(frames)
        except StopIteration:
            return
        except Unreadable as error:
            raise TornError(f"{file.path} is damaged: {short(error)}") from error
        yield frame.with_columns(arrival.stamps(file, stamps, before)) if stamps else frame
        before += frame.height
