"""Streams over data: rows, tables, Spark DataFrames, and folders of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from windrow.api import given
from windrow.api.columns import Columns, columns
from windrow.api.declared import also_progressing, arrival_columns, asked, bounded, in_order, numbering, scanned
from windrow.api.messages import messages
from windrow.api.promise import Promise
from windrow.api.query import Source
from windrow.api.stream import Stream
from windrow.errors import DataError, QueryError, listing
from windrow.logical.nodes import Progress, Statistics
from windrow.sources.files import Files, Format
from windrow.sources.frames import to_frame
from windrow.sources.own import OWN
from windrow.spec.lengths import Length, length
from windrow.spec.messages import OFFSET, PARTITION, RAW, VALUE, Messages
from windrow.spec.names import ARRIVAL_TS, POSITION

UNNAMED = "stream"


def stream(
    data: Any,
    progress: str,
    *,
    slack: Length | None = None,
    also: Mapping[str, Length] | None = None,
    punctuation: str | Promise | None = None,
    punctuation_by: str | Sequence[str] = (),
    parse: str | None = None,
    row_num: str | Sequence[str] | None = None,
    row_slack: int = 0,
    arrival: str | None = None,
    ahead: Length | None = None,
    delay: Length | None = None,
    idle_after: Length | None = None,
    statistics: Statistics | None = None,
    value: str | None = None,
    schema: Columns | Mapping[int, Any] | None = None,
    attributes: str | Sequence[str] = (),
    prefix: str = "",
    partitions: int | None = None,
    name: str = UNNAMED,
) -> Stream:
    """A stream of rows that progresses on a column, or on ``arrival_ts``: when each row arrived, which needs no column.

    ``data``: a Spark DataFrame (streaming or batch), or rows, Arrow, pandas or Polars data. ``slack``: how far a
    row can be behind the greatest progress value seen before it. ``punctuation``: instead of slack, a column of
    promises: a row with a value there is a marker, which promises that all later rows have at least that progress
    value; or another way to make promises, see ``wr.promise``. ``also``: further columns that progress, each with its
    slack: a flow has a start and an end, and a window says which one it is over, ``window(.., on="start")``.
    ``punctuation_by``: columns in which a marker names the group it is about (NULL: all groups), so that windows close
    group by group in queries that group by them.
    ``parse``: how to read a text progress value, "iso8601" or a strptime format. ``row_num``: the integer column that
    numbers the rows by arrival, for windows of rows; or two columns, source partition and position in it, as Kafka's
    ("partition", "offset"). ``row_slack``: by how many numbers rows can be out of that order. ``ahead``: how far a
    progress value can be ahead of column ``arrival``, the time at which the row arrived; a row that is further ahead,
    from a wrong clock, is a bad row and closes nothing. ``delay``: a row arrives at most so long after its progress
    value, so that a source which has nothing more to give promises the time it is, less the delay. ``idle_after``: a
    source without rows for so long is taken to have none older than that; a row that comes all the same is late once
    its windows are released. ``statistics``: what is known about the stream, for the
    optimizer; rows in memory, and files, are measured.

    ``value``: the rows are in messages, such as Spark's connector to Kafka has them, with the columns value, partition
    and offset; it is the format of the values: "json", "csv", "avro" or "avro-confluent". ``schema`` then has the
    columns in them, ``attributes`` and ``prefix`` are as for :func:`read_kafka`, and ``partitions`` is how many there
    are: ``slack`` is about each of them.

    >>> import windrow as wr
    >>> s = stream([{"t": 1, "x": 5}, {"t": 2, "x": 6}], progress="t")
    >>> s.window(range=2).agg(total=wr.sum("x")).collect().rows()
    [(0, 2, 5), (2, 4, 6)]
    """
    read = None
    if value is not None:
        named = (progress, *(also if isinstance(also, Mapping) else ()))
        read = messages(value, schema, attributes, prefix, partitions, named)
    elif schema is not None or attributes or prefix or partitions is not None:
        raise QueryError("schema=, attributes=, prefix= and partitions= are about messages: give value=, their format")
    options: dict[str, Any] = {"slack": slack, "also": also, "punctuation": punctuation, "parse": parse}
    options |= {"punctuation_by": punctuation_by, "row_num": row_num, "row_slack": row_slack}
    options |= {"arrival": arrival, "ahead": ahead, "statistics": statistics}
    options |= {"delay": delay, "idle_after": idle_after}
    return built(data, progress, read, name=name, **options)


def built(
    data: Any,
    progress: str,
    read: Messages | None = None,
    *,
    slack: Length | None = None,
    also: Mapping[str, Length] | None = None,
    punctuation: str | Promise | None = None,
    punctuation_by: str | Sequence[str] = (),
    parse: str | None = None,
    row_num: str | Sequence[str] | None = None,
    row_slack: int = 0,
    arrival: str | None = None,
    ahead: Length | None = None,
    delay: Length | None = None,
    idle_after: Length | None = None,
    statistics: Statistics | None = None,
    name: str = UNNAMED,
) -> Stream:
    """The stream; ``read``: how its rows are read, if they are in messages."""
    given.text(progress, "progress")
    given.text(name, "name")
    if parse is not None:
        given.text(parse, "parse")
    schema, source = _source(data, progress if read is None else VALUE)
    if read is not None:
        schema, source = read.schema, replace(source, data=_raw(source.data, schema, read))
        if row_num is None:
            row_num = tuple(read.named()[each] for each in (PARTITION, OFFSET))
    if not schema:
        raise DataError("the data has no columns: give wr.stream rows, or an empty table that has columns")
    offers = (ARRIVAL_TS,) if source.spark or read is not None else (ARRIVAL_TS, POSITION)
    numbers = () if row_num is None else given.texts(row_num, "row_num")
    others = also if isinstance(also, Mapping) else ()
    stamps = arrival_columns(schema, offers, (progress, arrival, *others, *numbers))
    schema = {**schema, **stamps}
    if progress in stamps:
        slack = in_order(progress, slack, punctuation, parse)
        if not source.spark and delay is None and idle_after is None:
            delay = 0  # a host that gives rows their times can be asked for the time
    numbered = numbering(schema, row_num, row_slack)
    by = given.texts(punctuation_by, "punctuation_by")
    declared = Progress(progress, None, None, parse, numbered, row_slack, by, messages=read)
    scan = scanned(schema, declared, slack, punctuation, name, _checked(statistics))
    scan = replace(scan, offers=offers, stamps=tuple(stamps))
    scan = scan if arrival is None and ahead is None else bounded(scan, arrival, ahead)
    scan = scan if also is None else also_progressing(scan, also)
    scan = asked(scan, delay, idle_after)
    return Stream(scan, {name: source})


def _source(data: Any, progress: str) -> tuple[dict[str, pl.DataType], Source]:
    """The columns of some data, and the data as hosts read it."""
    if isinstance(data, OWN):
        return data.schema, Source(data, None, pl.DataFrame())
    if given.is_spark(data):
        from windrow.hosts.spark.schema import from_spark

        if twice := {c for c in data.columns if data.columns.count(c) > 1}:
            raise DataError(f"columns need different names; given twice: {listing(twice)}")
        return from_spark(data.schema), Source(data, True, pl.DataFrame())
    frame, misfits = to_frame(data, progress)
    return dict(frame.schema), Source(frame, False, misfits)


def _raw(data: Any, schema: Mapping[str, pl.DataType], read: Messages) -> Any:
    """Messages with all columns that are read of them; those in this process with their types."""
    wanted = dict.fromkeys((VALUE, PARTITION, OFFSET, *(of for _, of in read.attributes)))
    if missing := [name for name in wanted if name not in schema]:
        raise DataError(
            f"messages have the columns that Spark's connector to Kafka gives them, and these have no "
            f"{listing(missing)}; they have: {listing(schema)}"
        )
    if schema[VALUE] not in (pl.Binary, pl.String):
        raise DataError(f"the values of messages are bytes or texts, and these are of type {schema[VALUE]}")
    return data.cast({name: RAW[name] for name in wanted}) if isinstance(data, pl.DataFrame) else data


def _checked(statistics: Statistics | None) -> Statistics | None:
    if statistics is None:
        return None
    if not isinstance(statistics, Statistics):
        raise QueryError(f"statistics={statistics!r} must be wr.Statistics(rate=.., groups=..)")
    for name, value in (("rate", statistics.rate), ("groups", statistics.groups)):
        if given.number(value, name) <= 0:
            raise QueryError(f"{name}={value} must be above 0")
    return statistics


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
    files that appear later are read, too (default: only those that exist now); ``max_files``: at most so many per
    micro-batch; ``remember``: how much older than the newest file a new file can be. ``schema``: the columns, as SQL
    text ("ts TIMESTAMP, k STRING") or as names with types; without it they are those of the first file found.
    ``options`` are those of :func:`stream`. A damaged file, one with other columns, or one that is too old is set
    aside: it is counted in ``files_bad`` and reported by ``bad_rows()``.

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
    """The same over Arrow IPC files, in the file or the stream format (.arrow, .feather, .ipc)."""
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
        raise QueryError(f"max_files must be at least 1, not {max_files}")
    seconds = length(remember, pl.Datetime("us"), "remember") // 1_000_000
    given_columns = () if schema is None else tuple(columns(schema).items())
    files = Files(str(path), kind, given_columns, streaming, max_files, seconds)
    return files if given_columns else files.with_columns_of_first()
