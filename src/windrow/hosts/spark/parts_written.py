"""The results of several queries at once: each task writes a Parquet file for each query that it has results of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.hosts.spark.exchange import Kind, decode

SUMMARY = "query INT, rows BIGINT, error STRING"
ARROW = pa.schema([("query", pa.int32()), ("rows", pa.int64()), ("error", pa.string())])


class WriteParts:
    """For ``mapInArrow``, over exchange rows. ``folders``: by the number of a query, where its files go.

    A task that runs again writes the same files anew. It yields how many rows each query had, and the errors of queries
    that failed.
    """

    def __init__(self, folders: Mapping[int, str]) -> None:
        self.folders = dict(folders)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        parts = _Parts(self.folders, context.partitionId() if context else 0)
        try:
            for batch in batches:
                blobs, ports = batch.column("blob"), batch.column("port")
                for i, kind in enumerate(batch.column("kind").to_pylist()):
                    if kind == Kind.RESULT:
                        parts.write(ports[i].as_py(), blobs[i].as_py())
                    elif kind == Kind.FAILED:
                        parts.failed.append((ports[i].as_py(), blobs[i].as_py().decode()))
        finally:
            parts.close()
        yield parts.summary()


class _Parts:
    def __init__(self, folders: Mapping[int, str], part: int) -> None:
        self.folders, self.part = folders, part
        self.failed: list[tuple[int, str]] = []
        self.rows: dict[int, int] = {}
        self.files: dict[int, pq.ParquetWriter] = {}

    def write(self, query: int, blob: bytes) -> None:
        table = decode(blob, f"a result of query {query}").to_arrow()
        if query not in self.files:
            folder = Path(self.folders[query])
            folder.mkdir(parents=True, exist_ok=True)
            self.files[query] = pq.ParquetWriter(folder / f"part-{self.part:05d}.parquet", table.schema)
        self.files[query].write_table(table)
        self.rows[query] = self.rows.get(query, 0) + table.num_rows

    def close(self) -> None:
        for file in self.files.values():
            file.close()

    def summary(self) -> pa.RecordBatch:
        found: list[tuple[int, int, str | None]] = [(query, rows, None) for query, rows in self.rows.items()]
        found += [(query, 0, error) for query, error in self.failed]
        columns: list[tuple[Any, ...]] = list(zip(*found, strict=True)) or [()] * len(ARROW)
        return pa.RecordBatch.from_arrays(
            [pa.array(c, t) for c, t in zip(columns, ARROW.types, strict=True)], schema=ARROW
        )
