"""What Spark's Parquet sink has committed: files of unfinished or repeated micro-batches do not count."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import polars as pl

LOG = "_spark_metadata"


def committed_files(folder: str | Path) -> list[Path]:
    """The files that belong to the result, by Spark's own log of the sink.

    Anything that reads the folder with Spark sees the same; a plain listing would also see leftovers of a crash.
    """
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
