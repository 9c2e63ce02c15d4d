"""Results of a ring in files: written beside the sink, and seen there only when their epoch counts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.hosts.ring.folder import Folder

STAGED, PART = "_staged", "part-"
RESULT, LATE, BAD = "result", "late", "bad"
FOLDERS = {RESULT: "", LATE: "_late/", BAD: "_bad/"}  # in a sink; what begins with "_" is no part of the result
ROWS = 100_000  # that wait to be written together
Made = tuple[str, int, int, str]  # the kind of rows, epoch, node, and the staged file


@dataclass(frozen=True)
class Sink:
    """``columns``: of each kind of rows, as they are stored."""

    folder: str
    columns: Mapping[str, pa.Schema]

    @property
    def files(self) -> Folder:
        return Folder(self.folder)

    def publish(self, made: Iterable[Sequence[Any]]) -> None:
        """Show files of an epoch that counts, unless they have been shown; whoever reads the sink may have taken them
        away since.
        """
        files = self.files
        for kind, epoch, node, staged in made:
            if files.has(f"{STAGED}/{staged}"):
                with suppress(FileNotFoundError):  # an earlier attempt, which is about to end, has moved it meanwhile
                    files.move(f"{STAGED}/{staged}", f"{FOLDERS[kind]}{PART}{epoch:08d}-{node}.parquet")

    def is_empty(self) -> bool:
        """Whether no results are seen."""
        return not any(name.startswith(PART) for name in self.files.names())

    def forget(self, epoch: int) -> None:
        """Delete what is left of epochs that are over. Later ones may be of an attempt that still runs."""
        files = self.files
        for name in files.names(STAGED):
            if int(name.partition("-")[0]) <= epoch:
                files.delete(f"{STAGED}/{name}")


@dataclass
class Staged:
    """What one node puts out in an epoch."""

    sink: Sink
    node: int
    epoch: int
    _open: dict[str, _Open] = field(default_factory=dict)

    def add(self, kind: str, rows: pl.DataFrame) -> None:
        """Columns that the rows do not have are NULL."""
        if not rows.height:
            return
        columns = self.sink.columns[kind]
        missing = [pl.lit(None).alias(name) for name in columns.names if name not in rows.columns]
        table = rows.with_columns(missing).select(columns.names).to_arrow().cast(columns)
        if kind not in self._open:
            self._open[kind] = _Open(self.sink, f"{self.epoch}-{self.node}-{uuid.uuid4().hex}.parquet", columns)
        self._open[kind].add(table)

    def close(self) -> list[Made]:
        """All is written; returns the files, of which nobody sees anything yet."""
        for each in self._open.values():
            each.close()
        return [(kind, self.epoch, self.node, each.name) for kind, each in self._open.items()]


class _Open:
    """A file that is being written."""

    def __init__(self, sink: Sink, name: str, columns: pa.Schema) -> None:
        self.name = name
        self._stack, self._waiting = ExitStack(), list[pa.Table]()
        out = self._stack.enter_context(sink.files.writing(f"{STAGED}/{name}", lasting=True))
        self._writer = self._stack.enter_context(pq.ParquetWriter(out, columns))

    def add(self, table: pa.Table) -> None:
        self._waiting.append(table)
        if sum(each.num_rows for each in self._waiting) >= ROWS:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting = []

    def close(self) -> None:
        if self._waiting:
            self._write()
        self._stack.close()
