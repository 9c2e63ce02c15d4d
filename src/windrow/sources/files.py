"""Folders of Parquet or Arrow files: what is there, what is new, and their rows. No Spark here."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from windrow.errors import CheckpointError, DataError, WindrowError, listing
from windrow.sources.frames import normal, normal_type

Format = Literal["parquet", "arrow"]
SUFFIXES: dict[Format, tuple[str, ...]] = {"parquet": (".parquet",), "arrow": (".arrow", ".feather", ".ipc")}
ROWS_AT_ONCE = 1_000_000
DAY = 86_400
_ENTRY = struct.Struct("<Iq")  # modification time in seconds, hash of the path
Unreadable = (pa.ArrowException, pl.exceptions.PolarsError, OSError, WindrowError, ValueError)


@dataclass(frozen=True, order=True)
class File:
    """A file in the order in which it is read: by modification time, then by name."""

    mtime_ns: int
    path: str
    size: int

    @property
    def key(self) -> int:
        """What it is remembered by once it is read."""
        return _hash(self.path)

    @property
    def attempt(self) -> int:
        """What it is remembered by if it cannot be read: a file that is written anew is a new attempt."""
        return _hash(f"{self.path}\n{self.mtime_ns}\n{self.size}")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


@dataclass(frozen=True)
class Files:
    """All files of a format at or below a path: local, or any URI that Arrow's file systems know (s3://, hdfs://).

    As for Spark, names that begin with "_" or "." do not count, and a file should appear under its name when it is
    complete. ``columns`` is what the rows look like; a file that differs is foreign. ``streaming``: files that appear
    later are read, too, at most ``max_files`` at a time; ``remember`` is explained at Position.
    """

    path: str
    format: Format
    columns: tuple[tuple[str, pl.DataType], ...] = field(default=(), compare=False)
    streaming: bool = False
    max_files: int | None = None
    remember: int = 7 * DAY

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    def listed(self) -> list[File]:
        """All files, oldest first."""
        system, root = self._system()
        info = system.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            return []
        found = [info] if info.is_file else system.get_file_info(pafs.FileSelector(root, recursive=True))
        return sorted(File(i.mtime_ns or 0, i.path, i.size) for i in found if i.is_file and self._counts(i.path, root))

    def _counts(self, path: str, root: str) -> bool:
        inside = path[len(root) :].strip("/").split("/") if path != root else [path.rsplit("/", 1)[-1]]
        return path.endswith(SUFFIXES[self.format]) and not any(part.startswith(("_", ".")) for part in inside)

    def with_columns_of_first(self) -> Files:
        """The same with the columns of the first file that can be read."""
        reasons = []
        for file in self.listed():
            try:
                return replace(self, columns=tuple(self.schema_of(file).items()))
            except Unreadable as error:
                reasons.append(f"{file.path}: {short(error)}")
        detail = f" ({listing(reasons[:3])})" if reasons else ""
        raise DataError(f"{self.path} has no readable {self.format} file to take the columns from{detail}")

    def schema_of(self, file: File) -> dict[str, pl.DataType]:
        """The columns of a file; raises one of ``Unreadable`` if it is torn."""
        with self.open(file) as data:
            arrow = pq.read_schema(data) if self.format == "parquet" else _arrow_reader(data).schema
        frame = pl.from_arrow(arrow.empty_table())
        assert isinstance(frame, pl.DataFrame)
        return {name: normal_type(dtype) for name, dtype in frame.schema.items()}

    def problem(self, file: File) -> str | None:
        """Why a file cannot be read as part of the stream, as far as its head tells."""
        try:
            found = self.schema_of(file)
        except Unreadable as error:
            return f"{file.path} is torn or no {self.format} file: {short(error)}"
        for name, dtype in self.columns:
            if name not in found:
                return f"{file.path} is foreign: it has no column {name}"
            if found[name] != dtype:
                return f"{file.path} is foreign: column {name} is of type {found[name]} there, of {dtype} in the stream"
        return None

    def frames(self, file: File, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The rows of a file, about ROWS_AT_ONCE at a time; raises one of ``Unreadable`` where it is torn."""
        with self.open(file) as data:
            if self.format == "parquet":
                yield from _parquet_frames(data, columns)
            else:
                yield from _arrow_frames(_arrow_reader(data), columns)

    def sample(self, rows: int) -> pl.DataFrame | None:
        """The first rows of the oldest file that can be read: the same for as long as that file is there."""
        for file in self.listed():
            try:
                return next(self.frames(file, [c for c, _ in self.columns])).head(rows)
            except Unreadable:
                continue
        return None

    def open(self, file: File) -> IO[bytes]:
        """A file to read from."""
        opened: IO[bytes] = self._system()[0].open_input_file(file.path)
        return opened

    def _system(self) -> tuple[pafs.FileSystem, str]:
        if "://" not in self.path:
            return pafs.LocalFileSystem(), self.path.rstrip("/") or "/"
        system, root = pafs.FileSystem.from_uri(self.path)
        return system, root.rstrip("/")


def _parquet_frames(data: IO[bytes], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    rows = pq.read_metadata(data).num_rows
    data.seek(0)
    lazy = pl.scan_parquet(data.read()).select(columns)  # the compressed bytes; slices decode what they need of them
    for start in range(0, max(1, rows), ROWS_AT_ONCE):
        yield normal(lazy.slice(start, ROWS_AT_ONCE).collect())


def _arrow_reader(data: IO[bytes]) -> Any:
    """An IPC file or an IPC stream, whichever it is."""
    head = data.read(6)
    data.seek(0)
    return pa.ipc.open_file(data) if head == b"ARROW1" else pa.ipc.open_stream(data)


def _arrow_frames(reader: Any, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    table = reader.read_all().select(list(columns))
    table.validate(full=True)  # a torn body would otherwise be read as whatever is there
    for start in range(0, max(1, table.num_rows), ROWS_AT_ONCE):
        frame = pl.from_arrow(table.slice(start, ROWS_AT_ONCE))
        assert isinstance(frame, pl.DataFrame)
        yield normal(frame)


def short(error: BaseException) -> str:
    """The first line of a message."""
    return str(error).strip().split("\n")[0] or type(error).__name__


# -- what has been read ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Position:
    """How far a stream of files has come: an offset in Spark's checkpoint, so a dict of texts and numbers.

    ``batch`` are the files that the step to here reads and ``aside`` those it cannot, so that a step is repeated with
    the same files. Of those read before, the ones that are at most ``remember`` seconds older than the newest are
    remembered one by one; a file that turns up with an older time than that counts as read.
    """

    count: int = 0
    newest: int = 0  # modification time in seconds
    recent: frozenset[tuple[int, int]] = frozenset()
    batch: tuple[File, ...] = ()
    aside: tuple[tuple[File, str], ...] = ()

    def fresh(self, there: Iterable[File], remember: int) -> list[File]:
        """The files that have not been read, oldest first."""
        known = {key for _, key in self.recent}
        oldest = self.newest - remember
        return [f for f in there if seconds(f) >= oldest and f.key not in known and f.attempt not in known]

    def after(self, read: Sequence[File], aside: Sequence[tuple[File, str]], remember: int) -> Position:
        """The position after one more step."""
        every = [*read, *(f for f, _ in aside)]
        newest = max([self.newest, *(seconds(f) for f in every)])
        added = {(seconds(f), f.key) for f in read} | {(seconds(f), f.attempt) for f, _ in aside}
        recent = frozenset(e for e in self.recent | added if e[0] >= newest - remember)
        return Position(self.count + len(every), newest, recent, tuple(read), tuple(aside))

    def to_json(self) -> dict[str, Any]:
        packed = b"".join(_ENTRY.pack(*entry) for entry in sorted(self.recent))
        return {
            "files": self.count,
            "newest": self.newest,
            "recent": base64.b64encode(packed).decode(),
            "batch": json.dumps([[f.mtime_ns, f.path, f.size] for f in self.batch]),
            "aside": json.dumps([[f.mtime_ns, f.path, f.size, reason] for f, reason in self.aside]),
        }

    @staticmethod
    def from_json(given: dict[str, Any]) -> Position:
        if "recent" not in given:
            raise CheckpointError(
                f"the checkpoint's position {json.dumps(given)[:200]} is not one of this file source. It was written "
                "with another source, such as Spark's own file reader: read the files with it again (windrow run: "
                "--source NAME=spark-parquet:PATH), or start with a new checkpoint folder"
            )
        return Position(
            int(given["files"]),
            int(given["newest"]),
            frozenset(_ENTRY.iter_unpack(base64.b64decode(given["recent"]))),
            tuple(File(*f) for f in json.loads(given["batch"])),
            tuple((File(*f), reason) for *f, reason in json.loads(given["aside"])),
        )


def seconds(file: File) -> int:
    """The modification time in seconds, as far as it is remembered."""
    return max(0, file.mtime_ns // 1_000_000_000)


def spread(files: Sequence[File], parts: int) -> list[list[File]]:
    """The files in at most so many parts of about equal size, the largest first."""
    found: list[list[File]] = [[] for _ in range(max(1, min(parts, len(files))))]
    sizes = [0] * len(found)
    for file in sorted(files, key=lambda f: (-f.size, f)):
        least = sizes.index(min(sizes))
        found[least].append(file)
        sizes[least] += file.size
    return [sorted(part) for part in found if part]
