"""The late and bad rows of a session: by micro-batch, a folder with records and, when it is complete, the counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from windrow.hosts.spark.outbox import QUERIES
from windrow.hosts.spark.parts_written import bad_folder, late_folder
from windrow.hosts.standing import Standing
from windrow.sinks.parquet import BATCH

COUNTS = "counts.json"


@dataclass
class Counted:
    """What a query had in a micro-batch."""

    rows: int = 0
    late: int = 0
    bad: int = 0


class Sides:
    """Counts and records are of the same micro-batches as results: one that runs again replaces them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def at(self, batch: int) -> Path:
        return self.folder / f"{BATCH}{batch:08d}"

    def clear(self, queries: Iterable[Standing], at: int) -> None:
        """Remove what was written of micro-batches that were not committed."""
        known = {query.number: query for query in queries}
        for folder in self._folders(at - 1):
            for number, (late, bad) in _counts(folder).items():
                if number in known:
                    known[number].rows_late -= late
                    known[number].rows_bad -= bad
            shutil.rmtree(folder)

    def count(self, queries: Iterable[Standing]) -> None:
        """How many late and bad rows each query has had, by what is there."""
        known = {query.number: query for query in queries}
        for query in known.values():
            query.rows_late = query.rows_bad = 0
        for folder in self._folders(-1):
            self._add(_counts(folder), known)

    def finish(self, queries: Iterable[Standing], batch: int, found: Mapping[int, Counted]) -> None:
        """The records of a micro-batch are complete; nothing is written where there are none."""
        if not self.at(batch).is_dir() and not any(each.late or each.bad for each in found.values()):
            return
        counts = {number: (each.late, each.bad) for number, each in found.items()}
        self.at(batch).mkdir(parents=True, exist_ok=True)
        draft = self.at(batch) / f".{COUNTS}.new"
        draft.write_text(json.dumps(counts))
        draft.replace(self.at(batch) / COUNTS)
        self._add(counts, {query.number: query for query in queries})

    def late(self, query: Standing, after: int) -> list[tuple[int, pl.DataFrame]]:
        """The late records of a query by micro-batch, of micro-batches after a number."""
        return self._read(query, lambda folder: late_folder(folder, query.number), after)

    def bad(self, query: Standing, after: int) -> list[tuple[int, pl.DataFrame]]:
        """The bad rows that a query does without: where each was found, why it is bad, and the row as JSON."""
        every = self._read(query, bad_folder, after)
        mine = [(n, rows.filter(pl.col(QUERIES).list.contains(query.number)).drop(QUERIES)) for n, rows in every]
        return [(number, rows) for number, rows in mine if rows.height]

    def _read(self, query: Standing, place: Callable[[Path], Path], after: int) -> list[tuple[int, pl.DataFrame]]:
        """Of micro-batches that count for the query: not one in which it failed, whatever was written there."""
        found: list[tuple[int, pl.DataFrame]] = []
        for folder in self._folders(after):
            files = sorted(place(folder).glob("*.parquet")) if query.number in _counts(folder) else []
            if files:
                found.append((_batch(folder), pl.concat([pl.read_parquet(f) for f in files], how="diagonal_relaxed")))
        return found

    def _folders(self, after: int) -> list[Path]:
        return sorted(folder for folder in self.folder.glob(f"{BATCH}*") if _batch(folder) > after)

    @staticmethod
    def _add(counts: Mapping[int, tuple[int, int]], known: Mapping[int, Standing]) -> None:
        for number, (late, bad) in counts.items():
            if number in known:
                known[number].rows_late += late
                known[number].rows_bad += bad


def _counts(folder: Path) -> dict[int, tuple[int, int]]:
    """By the number of a query, its late and bad rows; none in a folder that is not complete."""
    file = folder / COUNTS
    if not file.exists():
        return {}
    return {int(number): (late, bad) for number, (late, bad) in json.loads(file.read_text()).items()}


def _batch(folder: Path) -> int:
    return int(folder.name.removeprefix(BATCH))
