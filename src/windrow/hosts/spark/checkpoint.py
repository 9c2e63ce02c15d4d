"""Checks a checkpoint folder before a query starts from it: errors name files that are damaged or foreign.

Spark notices most damage only when it reads the file, with an error from deep inside. Works on local folders; for
others (``hdfs://``, ``s3a://``) the file system keeps its own checksums and Spark reports what it finds.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from windrow.errors import CheckpointError
from windrow.hosts.spark.place import CRC_MAGIC, check_place

TOP = {"metadata", "offsets", "commits", "sources", "state", "version", "windrow"}
LOGS = ("offsets", "commits")
LOG_FILE = re.compile(r"\d+(\.compact|\.delta)?$")


def check(path: str | Path) -> None:
    """Raise CheckpointError for a torn or foreign file, and for a folder that is not where Spark wrote it.

    A folder that is empty or not there yet is fine.
    """
    if "://" in str(path):
        return
    folder = Path(path)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CheckpointError(f"the checkpoint {folder} is a file; give a folder")
    entries = [p for p in folder.iterdir() if not p.name.startswith(".")]
    for entry in entries:
        if entry.name not in TOP:
            raise CheckpointError(f"{entry} does not belong in a checkpoint: give a folder of its own, or remove it")
    if {p.name for p in entries} - {"windrow"} and not (folder / "metadata").exists():
        raise CheckpointError(f"{folder} has no file 'metadata': it is not the checkpoint of a streaming query")
    for file in _files(folder):
        _check_sum(file)
    if (folder / "metadata").exists():
        _check_lines(folder / "metadata", 0)
    for log in LOGS:
        for file in sorted((folder / log).glob("[!.]*")):
            if not LOG_FILE.match(file.name):
                raise CheckpointError(f"{file} does not belong in a checkpoint: remove it")
            _check_lines(file, 1)
    check_place(folder)


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            yield file


def _check_sum(file: Path) -> None:
    """Hadoop keeps a CRC-32 of every 512 bytes beside each file it writes to a local disk."""
    sums = file.with_name(f".{file.name}.crc")
    if not sums.exists():
        return
    stored = sums.read_bytes()
    if stored[:4] != CRC_MAGIC:
        raise CheckpointError(f"{sums} is torn or foreign: it is not a checksum file")
    size = int.from_bytes(stored[4:8], "big")
    with file.open("rb") as content:
        for at in range(8, len(stored), 4):
            block = content.read(size)
            if zlib.crc32(block) != int.from_bytes(stored[at : at + 4], "big"):
                raise CheckpointError(_torn(file))
        if content.read(1):
            raise CheckpointError(_torn(file))


def _check_lines(file: Path, header: int) -> None:
    """A log file is a version line, then JSON (or "-" for a source without an offset)."""
    try:
        lines = file.read_text().split("\n")
        if header and not re.fullmatch(r"v\d+", lines[0]):
            raise ValueError(lines[0])
        for line in lines[header:]:
            if line.strip() not in ("", "-"):
                json.loads(line)
        if not any(line.strip() for line in lines):
            raise ValueError("empty")
    except ValueError:
        raise CheckpointError(_torn(file)) from None


def _torn(file: Path) -> str:
    return f"{file} is torn or foreign: restore the checkpoint from a copy, or start with a new checkpoint folder"
