"""Parquet folders, exactly once: what has been committed, and a folder per micro-batch for several outputs at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import polars as pl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = "_spark_metadata"
BATCH, DONE = "batch=", "_SUCCESS"


class ParquetBatches:
    """For ``foreachBatch``: each micro-batch has a folder ``batch=N``, which a repetition of it replaces.

    Spark's own Parquet sink takes one output of a query; this one takes any of several.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(self.path / f"{BATCH}{batch:08d}"))


def committed_files(folder: str | Path) -> list[Path]:
    """The files that belong to the result, by Spark's log of the sink, or by complete micro-batches.

    Spark sees the same files; a plain listing would also show leftovers of a crash.
    """
    if not (Path(folder) / LOG).exists():
        done = sorted(p.parent for p in Path(folder).glob(f"{BATCH}*/{DONE}"))
        return [file for part in done for file in sorted(part.glob("*.parquet"))]
    logs = [p for p in (Path(folder) / LOG).glob("*") if p.name.split(".")[0].isdigit()]
    files: dict[str, Path] = {}
    for log in sorted(logs, key=lambda p: int(p.name.split(".")[0])):
        if log.name.endswith(".compact"):
            files = {}
        for line in log.read_text().split("\n")[1:]:
            if line:
                entry = json.loads(line)
                path = Path(unquote(urlparse(entry["path"]).path))
                files[path.name] = Path(folder) / path.name
    return list(files.values())


def read_committed(folder: str | Path) -> pl.DataFrame:
    """All committed rows."""
    frames = [pl.read_parquet(f) for f in committed_files(folder)]
    if not frames:
        return pl.DataFrame()
    # Spark's 96-bit timestamps read as nanoseconds.
    return pl.concat(frames).with_columns(pl.selectors.datetime("ns").dt.cast_time_unit("us"))
