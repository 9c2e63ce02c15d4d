"""Streams over folders of files that Windrow reads itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from windrow.api.columns import Columns, columns
from windrow.api.stream import Stream, stream
from windrow.errors import QueryError
from windrow.sources.files import Files, Format
from windrow.spec.lengths import Length, length


def read_parquet(
    path: str | Path,
    progress: str,
    *,
    streaming: bool = False,
    max_files: int | None = None,
    remember: Length = "7 days",
    schema: Columns | None = None,
    **options: Any,
) -> Stream:
    """A stream over a folder of Parquet files, with the map side of the query inside the reader.

    Much faster than ``wr.stream(spark.readStream.parquet(path), ...)``: only pane partials enter Spark. ``streaming``:
    files that appear later are read, too (default: what is there now); ``max_files``: at most so many a micro-batch;
    ``remember``: how much older than the newest file a file can turn up. ``schema``: the columns, as SQL text
    ("ts TIMESTAMP, k STRING") or as names with types; without it they are those of the first file that is there.
    ``options`` are those of :func:`stream`. A torn or foreign file, or one that turns up too old, is set aside: it
    counts in ``files_bad`` and is in ``bad_rows()``.

    >>> import windrow as wr
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> pl.DataFrame({"t": [1, 2, 5], "x": [3, 4, 5]}).write_parquet(f"{folder}/1.parquet")
    >>> packets = read_parquet(folder, progress="t")
    >>> packets.window(range=4).agg(total=wr.sum("x")).collect().rows()
    [(0, 4, 7), (4, 8, 5)]
    """
    return stream(_files("parquet", path, streaming, max_files, remember, schema), progress, **options)


def read_arrow(
    path: str | Path,
    progress: str,
    *,
    streaming: bool = False,
    max_files: int | None = None,
    remember: Length = "7 days",
    schema: Columns | None = None,
    **options: Any,
) -> Stream:
    """The same over files in Arrow's own format, as files or as streams (.arrow, .feather, .ipc)."""
    return stream(_files("arrow", path, streaming, max_files, remember, schema), progress, **options)


def _files(
    kind: Format,
    path: str | Path,
    streaming: bool,
    max_files: int | None,
    remember: Length,
    schema: Columns | None,
) -> Files:
    if max_files is not None and max_files < 1:
        raise QueryError(f"max_files is at least 1, not {max_files}")
    kept = length(remember, pl.Datetime("us"), "remember") // 1_000_000
    declared = () if schema is None else tuple(columns(schema).items())
    files = Files(str(path), kind, declared, streaming, max_files, kept)
    return files if declared else files.with_columns_of_first()
