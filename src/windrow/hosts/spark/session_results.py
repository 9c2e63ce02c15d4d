"""The results of a session: by query and micro-batch, a folder of Parquet files with a mark when it is complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from windrow.hosts.standing import Standing
from windrow.sinks.parquet import BATCH, DONE, committed_files


class Results:
    """A name that is used again has another folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, query: Standing) -> Path:
        """Where the results of a query are."""
        return self.folder / f"{query.name}-{query.number}"

    def at(self, query: Standing, batch: int) -> Path:
        """Where those of one micro-batch are."""
        return self.of(query) / f"{BATCH}{batch:08d}"

    def clear(self, queries: Iterable[Standing], at: int) -> None:
        """Remove what was written of micro-batches that were not committed: they run again, or not for this query."""
        for query in queries:
            for folder in self.of(query).glob(f"{BATCH}*"):
                if _batch(folder) >= at:
                    query.rows_out -= _rows(folder.glob("*.parquet")) if (folder / DONE).exists() else 0
                    shutil.rmtree(folder)

    def count(self, queries: Iterable[Standing]) -> None:
        """How many rows each query has put out, by what is there."""
        for query in queries:
            query.rows_out = _rows(committed_files(self.of(query)))

    def finish(self, query: Standing, batch: int, rows: int) -> None:
        """The files of a micro-batch are complete."""
        query.rows_out += rows
        (self.at(query, batch) / DONE).touch()

    def read(self, query: Standing, after: int) -> list[tuple[int, pl.DataFrame]]:
        """The results by micro-batch, as far as they are complete, of micro-batches after a number."""
        by_batch: dict[int, list[Path]] = {}
        for file in committed_files(self.of(query)):
            if _batch(file.parent) > after:
                by_batch.setdefault(_batch(file.parent), []).append(file)
        return [(number, pl.concat([pl.read_parquet(f) for f in files])) for number, files in sorted(by_batch.items())]


def _rows(files: Iterable[Path]) -> int:
    return sum(int(pq.read_metadata(file).num_rows) for file in files)


def _batch(folder: Path) -> int:
    return int(folder.name.removeprefix(BATCH))
