"""What several queries put out at once: each task writes a Parquet file for each query that it has results of.

Late records of a query, and bad rows of all, have files of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.hosts.spark.exchange import Kind, decode
from windrow.hosts.spark.outbox import QUERIES

SUMMARY = "query INT, rows BIGINT, late BIGINT, bad BIGINT, error STRING"
ARROW = pa.schema(
    [
        ("query", pa.int32()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("bad", pa.int64()),
        ("error", pa.string()),
    ]
)


def late_folder(sides: str | Path, query: int) -> Path:
    """Where the late records of a query are, of one micro-batch."""
    return Path(sides) / f"late-{query}"


def bad_folder(sides: str | Path) -> Path:
    """Where the bad rows of all queries are."""
    return Path(sides) / "bad"


class WriteParts:
    """For ``mapInArrow``, over exchange rows. ``folders``: by the number of a query, where its files go; ``sides``:
    where late and bad rows go.

    A task that runs again writes the same files anew. It yields what each query had, and the errors of queries that
    failed.
    """

    def __init__(self, folders: Mapping[int, str], sides: str) -> None:
        self.folders = dict(folders)
        self.sides = sides

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        parts = _Parts(self.folders, self.sides, context.partitionId() if context else 0)
        try:
            for batch in batches:
                blobs, ports, values = (batch.column(name) for name in ("blob", "port", "value"))
                for i, kind in enumerate(batch.column("kind").to_pylist()):
                    parts.take(kind, ports[i].as_py(), values[i].as_py(), blobs[i])
        finally:
            parts.close()
        yield parts.summary()


class _Parts:
    def __init__(self, folders: Mapping[int, str], sides: str, part: int) -> None:
        self.folders, self.sides, self.file = folders, sides, f"part-{part:05d}.parquet"
        self.failed: list[tuple[int, str]] = []
        self.rows, self.late, self.bad = Counter[int](), Counter[int](), Counter[int]()
        self.files: dict[int, pq.ParquetWriter] = {}
        self.aside: dict[Path, list[pl.DataFrame]] = {}

    def take(self, kind: int, query: int, value: int, blob: Any) -> None:
        if kind == Kind.RESULT:
            self._write(query, blob.as_py())
        elif kind == Kind.FAILED:
            self.failed.append((query, blob.as_py().decode()))
        elif kind == Kind.LATE:
            self.late[query] += value
            if blob.is_valid:
                found = decode(blob.as_py(), f"late records of query {query}")
                self.aside.setdefault(late_folder(self.sides, query), []).append(found)
        elif kind == Kind.BAD:
            found = decode(blob.as_py(), "bad rows")
            self.bad.update(found[QUERIES].explode().drop_nulls().to_list())
            self.aside.setdefault(bad_folder(self.sides), []).append(found)

    def _write(self, query: int, blob: bytes) -> None:
        table = decode(blob, f"a result of query {query}").to_arrow()
        if query not in self.files:
            folder = Path(self.folders[query])
            folder.mkdir(parents=True, exist_ok=True)
            self.files[query] = pq.ParquetWriter(folder / self.file, table.schema)
        self.files[query].write_table(table)
        self.rows[query] += table.num_rows

    def close(self) -> None:
        for file in self.files.values():
            file.close()
        for folder, frames in self.aside.items():
            folder.mkdir(parents=True, exist_ok=True)
            pl.concat(frames, how="diagonal_relaxed").write_parquet(folder / self.file)

    def summary(self) -> pa.RecordBatch:
        queries = sorted({*self.rows, *self.late, *self.bad})
        found: list[tuple[int, int, int, int, str | None]] = [
            (query, self.rows[query], self.late[query], self.bad[query], None) for query in queries
        ]
        found += [(query, 0, 0, 0, error) for query, error in self.failed]
        columns: list[tuple[Any, ...]] = list(zip(*found, strict=True)) or [()] * len(ARROW)
        return pa.RecordBatch.from_arrays(
            [pa.array(c, t) for c, t in zip(columns, ARROW.types, strict=True)], schema=ARROW
        )
