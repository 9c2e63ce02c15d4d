"""Sources as the head of a ring reads them: what has come to a folder since the last look."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from windrow.sources.arriving import Arrival, TornError, readable
from windrow.sources.files import File, Files
from windrow.sources.position import Position
from windrow.spec.names import ARRIVAL_TS, POSITION


@dataclass(frozen=True)
class Come:
    """Rows that have come, and the files that are set aside, each with the reason."""

    rows: pl.DataFrame | None
    aside: tuple[str, ...]


@dataclass
class Tail:
    """Files in the order in which Spark's file source takes them, with the same positions. ``columns``: those that are
    read; ``stamps``: what the query wants to know of the arrival of rows.
    """

    files: Files
    columns: tuple[str, ...]
    stamps: Collection[str] = ()
    position: Position = field(default_factory=Position)

    def look(self, now: int) -> Come | None:
        """All that has come since the last look, at most ``max_files`` files of it; None if nothing has. ``now``: in
        microseconds. Rows of files that come together are one batch: none of them makes another one late.
        """
        there, remember = self.files.listed(), self.files.remember
        fresh = self.position.fresh(there, remember)[: self.files.max_files]
        if not fresh:
            return None
        arrived = max(self.position.arrived, now)
        read, sizes, aside, frames = list[File](), list[int](), list[tuple[File, str]](), list[pl.DataFrame]()
        for file in fresh:
            own = self._frames(file, Arrival(arrived, {file.path: self.position.rows + sum(sizes)}))
            if isinstance(own, str):
                aside.append((file, own))
                continue
            read.append(file)
            sizes.append(sum(frame.height for frame in own))
            frames += own
        at = now if ARRIVAL_TS in self.stamps else None
        numbered = sizes if POSITION in self.stamps else []
        self.position = self.position.after(read, aside, remember, there, at, numbered)
        return Come(pl.concat(frames) if frames else None, tuple(reason for _, reason in aside))

    def _frames(self, file: File, arrival: Arrival) -> list[pl.DataFrame] | str:
        """The rows of a file, or why it is set aside. It counts as a whole or not at all."""
        why = self.position.reason_too_old(file, self.files.remember) or self.files.problem(file, self.columns)
        if why is not None:
            return why
        try:
            return list(readable(self.files, file, self.columns, arrival=arrival, stamps=self.stamps))
        except TornError as error:
            return str(error)
