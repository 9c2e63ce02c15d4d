"""Folders of Parquet or Arrow files: what is there, what is new, and their rows. No Spark here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import IO, Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from windrow.errors import DataError, WindrowError, listing
from windrow.sources import partitions
from windrow.sources.frames import normal, normal_type
from windrow.sources.widening import widens

Format = Literal["parquet", "arrow"]
SUFFIXES: dict[Format, tuple[str, ...]] = {"parquet": (".parquet",), "arrow": (".arrow", ".feather", ".ipc")}
ROWS_AT_ONCE = 1_000_000
DAY = 86_400
LOOKED_AT = 100  # files, for a sample
# Damaged pages can make Polars panic.
Unreadable = (
    pa.ArrowException,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    WindrowError,
    ValueError,
)


class ForeignError(DataError):
    """A file without the columns of the stream."""


@dataclass(frozen=True, order=True)
class File:
    """A file in the order in which it is read: by modification time, then by name."""

    mtime_ns: int
    path: str
    size: int

    @cached_property
    def key(self) -> int:
        """What identifies it once it has been read."""
        return _hash(self.path)

    @cached_property
    def attempt(self) -> int:
        """What identifies it if it cannot be read: a rewritten file is a new attempt."""
        return _hash(f"{self.path}\n{self.mtime_ns}\n{self.size}")


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


@dataclass(frozen=True)
class Files:
    """All files of a format at or below a path: local, or any URI that Arrow's file systems know (s3://, hdfs://).

    As for Spark, names that begin with "_" or "." do not count, a file should appear under its name when it is
    complete, and folders called ``column=value`` add a column. ``columns`` is what the rows look like; a file is
    foreign if a query needs a column that it does not have in a type that fits. ``streaming``: files that appear later
    are read, too, at most ``max_files`` at a time; for ``remember`` see Position.
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
        return path.endswith(SUFFIXES[self.format]) and not any(_hidden(part) for part in inside)

    def with_columns_of_first(self) -> Files:
        """The same with the columns of the first file that can be read, and those that the folders name."""
        reasons = []
        there = self.listed()
        for file in there:
            try:
                found = self.schema_of(file)
            except Unreadable as error:
                reasons.append(f"{file.path}: {short(error)}")
                continue
            named = partitions.types(self._folders(f) for f in there)
            return replace(self, columns=tuple({**found, **named}.items()))
        detail = f" ({listing(reasons[:3])})" if reasons else ""
        raise DataError(
            f"{self.path} has no readable {self.format} file to take the columns from{detail}. Declare the "
            f"columns: schema='ts TIMESTAMP, k STRING'"
        )

    def schema_of(self, file: File) -> dict[str, pl.DataType]:
        """The columns inside a file; raises one of ``Unreadable`` if it is damaged."""
        with self.open(file) as data:
            return _types(self._schema(data))

    def problem(self, file: File, needed: Sequence[str], pages: bool = False) -> str | None:
        """Why a file cannot be read by a query that needs these columns; None if it can, as far as its head tells.

        ``pages``: all of it is looked at, so that the answer is final.
        """
        try:
            if pages:
                for _frame in self.frames(file, needed):
                    pass
            else:
                with self.open(file) as data:
                    self._origins(file, self._schema(data), needed, ())
        except ForeignError as error:
            return f"{file.path} does not fit the stream: {error}"
        except Unreadable as error:
            return f"{file.path} is damaged or not a {self.format} file: {short(error)}"
        return None

    def frames(self, file: File, needed: Sequence[str], also: Sequence[str] = ()) -> Iterator[pl.DataFrame]:
        """The rows of a file, about ROWS_AT_ONCE at a time; raises ``Unreadable`` where it is damaged or foreign.

        ``also`` are columns that nothing depends on: where a file cannot give them they are NULL.
        """
        wanted = {c: self.schema[c] for c in (*needed, *also)}
        with self.open(file) as data:
            arrow = self._schema(data)
            own, folders = self._origins(file, arrow, needed, also)
            added = [
                (pl.lit(folders[c]).first() if c in folders else pl.lit(None, t)).alias(c)
                for c, t in wanted.items()
                if c not in own
            ]
            read = _parquet_frames if self.format == "parquet" else _arrow_frames
            for frame in read(data, own or arrow.names[:1]):  # any column gives the number of rows
                yield frame.cast({c: wanted[c] for c in own}).with_columns(added).select(list(wanted))

    def count(self, file: File, needed: Sequence[str]) -> int:
        """How many rows a file has."""
        if self.format == "parquet":
            with self.open(file) as data:
                return int(pq.ParquetFile(data).metadata.num_rows)
        return sum(frame.height for frame in self.frames(file, needed))

    def rows(self, file: File, needed: Sequence[str]) -> list[pl.DataFrame]:
        """The rows of a file in all columns of the stream; one that is not needed is NULL where it cannot be read."""
        others = {c: t for c, t in self.columns if c not in needed}
        try:
            return list(self.frames(file, needed, list(others)))
        except Unreadable:
            missing = [pl.lit(None, t).alias(c) for c, t in others.items()]
            return [frame.with_columns(missing) for frame in self.frames(file, needed)]

    def _origins(
        self, file: File, arrow: pa.Schema, needed: Sequence[str], also: Sequence[str]
    ) -> tuple[list[str], dict[str, pl.Series]]:
        """The columns that come from inside a file, and those that its folders name, with their value."""
        schema, folders = self.schema, self._folders(file)
        found = _types(pa.schema([f for f in arrow if f.name in needed or f.name in also]))
        own, named = [], {}
        for column in (*needed, *also):
            try:
                if column in folders:
                    named[column] = _value(column, folders[column], schema[column])
                else:
                    _check_type(column, found.get(column), schema[column])
                    own.append(column)
            except ForeignError:
                if column in needed:
                    raise
        return own, named

    def _folders(self, file: File) -> dict[str, str]:
        return partitions.values(file.path, self._system()[1])

    def _schema(self, data: IO[bytes]) -> pa.Schema:
        found = pq.read_schema(data) if self.format == "parquet" else _arrow_reader(data).schema
        data.seek(0)
        return found

    def sample(self, rows: int) -> pl.DataFrame | None:
        """The first rows of the oldest file that has all columns; else of the oldest that can be read."""
        some, every = self.listed()[:LOOKED_AT], list(self.schema)
        for needed, also in ((every, []), ([], every)):
            for file in some:
                try:
                    return next(self.frames(file, needed, also)).head(rows)
                except Unreadable:
                    continue
        return None

    def open(self, file: File) -> IO[bytes]:
        """A file to read from."""
        opened: IO[bytes] = self._system()[0].open_input_file(file.path)
        return opened

    def _system(self) -> tuple[pafs.FileSystem, str]:
        return _system_of(self.path)


@lru_cache(16)  # connecting to a store takes time, and every file needs a connection
def _system_of(path: str) -> tuple[pafs.FileSystem, str]:
    if "://" not in path:
        return pafs.LocalFileSystem(), path.rstrip("/") or "/"
    system, root = pafs.FileSystem.from_uri(path)
    return system, root.rstrip("/")


def _types(arrow: pa.Schema) -> dict[str, pl.DataType]:
    frame = pl.from_arrow(arrow.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return {name: normal_type(dtype) for name, dtype in frame.schema.items()}


def _check_type(column: str, found: pl.DataType | None, wanted: pl.DataType) -> None:
    if found is None:
        raise ForeignError(f"it has no column {column}")
    if not widens(found, wanted):
        raise ForeignError(f"its column {column} is of type {found}, that of the stream of type {wanted}")


def _value(column: str, raw: str, dtype: pl.DataType) -> pl.Series:
    try:
        return partitions.literal(raw, dtype)
    except ValueError as error:
        raise ForeignError(f"its path has a column {column} of another type: {error}") from None


def _hidden(name: str) -> bool:
    """As in Spark: a column in the name of a folder may begin with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


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


def _arrow_frames(data: IO[bytes], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    table = _arrow_reader(data).read_all().select(list(columns))
    table.validate(full=True)  # a damaged body would otherwise be read as if it were valid
    for start in range(0, max(1, table.num_rows), ROWS_AT_ONCE):
        frame = pl.from_arrow(table.slice(start, ROWS_AT_ONCE))
        assert isinstance(frame, pl.DataFrame)
        yield normal(frame)


def short(error: BaseException) -> str:
    """The first line of a message."""
    return str(error).strip().split("\n")[0] or type(error).__name__
