"""What is declared about a source, checked against its columns: the same for Python, SQL and the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from windrow.api import promise
from windrow.api.given import text, texts, whole
from windrow.api.promise import Promise
from windrow.errors import DataError, QueryError, listing
from windrow.logical import arrival
from windrow.logical.checked import UNNUMBERED
from windrow.logical.explain import span
from windrow.logical.nodes import PROGRESSING, Progress, Scan, Statistics, progressing
from windrow.sources.frames import normal_type
from windrow.spec.ahead import Ahead
from windrow.spec.lengths import Length, length
from windrow.spec.names import POSITION

MICROS = pl.Datetime("us")  # what delays are measured in, whatever a stream progresses on


def numbering(schema: dict[str, pl.DataType], given: str | Sequence[str] | None, slack: int) -> tuple[str, ...]:
    """The columns that number rows by arrival, checked."""
    columns = () if given is None else texts(given, "row_num")
    if len(columns) > 2:
        raise QueryError(f"row_num takes one column, or source partition and position, not {len(columns)} columns")
    for column in columns:
        if column not in schema:
            raise QueryError(f"row_num={column!r} is not a column; available: {listing(schema)}")
    if columns and not schema[columns[-1]].is_integer():
        raise QueryError(f"row_num={columns[-1]!r} must be an integer, not {schema[columns[-1]]}")
    if whole(slack, "row_slack") < 0 or (slack and not columns):
        raise QueryError("row_slack, the disorder of row_num in rows, must be zero or more, and needs row_num")
    return columns


def arrival_columns(
    schema: dict[str, pl.DataType], offers: Collection[str], named: Iterable[Any]
) -> dict[str, pl.DataType]:
    """The attributes of arrival that a declaration names and the data does not have, with their types."""
    given = dict.fromkeys(name for name in named if isinstance(name, str))
    wanted = [name for name in given if name in arrival.TYPES and name not in schema]
    if POSITION in wanted and POSITION not in offers:
        raise QueryError(f"row_num is not a column, and Spark cannot number the rows itself: {UNNUMBERED}")
    return {name: arrival.TYPES[name] for name in wanted}


def in_order(progress: str, slack: Length | None, promises: str | Promise | None, parse: str | None) -> Length:
    """The slack of a stream that progresses on an attribute of arrival."""
    for given, what in ((slack, "slack"), (promises, "punctuation"), (parse, "parse")):
        if given is not None:
            raise QueryError(
                f"{what}={given!r}: {progress} is not a column of the data. Rows get it as they arrive, in order, and "
                f"the stream makes its promises by itself: leave {what}= out"
            )
    return 0


def scanned(
    schema: dict[str, pl.DataType],
    given: Progress,
    slack: Length | None,
    promises: str | Promise | None,
    name: str,
    statistics: Statistics | None = None,
) -> Scan:
    """A source as declared, if its columns allow it."""
    progress, parse = given.attribute, given.parse
    if odd := [c for c in schema if c.startswith("@")]:
        raise DataError(f"column names that begin with '@' are reserved: rename {listing(odd)}")
    if progress not in schema:
        raise QueryError(f"progress={progress!r} is not a column; available: {listing(schema)}")
    if parse is not None:
        if schema[progress] != pl.String:
            raise QueryError(f"parse={parse!r} needs strings, and {progress!r} is of type {schema[progress]}")
        schema = {**schema, progress: pl.Datetime("us", "UTC")}
    dtype = schema[progress]
    if not progressing(dtype):
        hint = " (for timestamps as text, use parse='iso8601' or a strptime format)" if dtype == pl.String else ""
        raise QueryError(f"progress={progress!r} must be {PROGRESSING}, not {dtype}{hint}")
    given = _promising(given, schema, slack, promises)
    return promising(Scan(name, tuple(schema.items()), given, statistics))


def promising(scan: Scan) -> Scan:
    """A source whose promise rule fits its columns. The column of markers is not a column of the stream."""
    schema, given = scan.schema, scan.source
    punctuation, dtype = given.marker, scan.schema[scan.progress]
    if punctuation is not None and punctuation not in schema:
        raise QueryError(f"punctuation={punctuation!r} is not a column; available: {listing(schema)}")
    if punctuation in (*given.columns, *given.row_num):
        raise QueryError(f"punctuation={punctuation!r} is a column of markers, and cannot be used for anything else")
    if given.marker_by and given.rule is not None:
        raise QueryError(
            "punctuation_by= names the group of a marker, and the promise rule of punctuation= has no markers"
        )
    for column in given.marker_by:
        if column not in schema:
            raise QueryError(f"punctuation_by={column!r} is not a column; available: {listing(schema)}")
        kind = schema[column]
        if not (kind.is_integer() or kind.is_temporal() or kind in (pl.String, pl.Boolean)):
            raise QueryError(f"punctuation_by={column!r} must be a string, integer, boolean or date, not {kind}")
    if punctuation is not None and normal_type(schema[punctuation]) not in (pl.Null, normal_type(dtype)):
        raise QueryError(
            f"punctuation={punctuation!r} is of type {schema[punctuation]}, {scan.progress!r} of type {dtype}"
        )
    return replace(scan, columns=tuple((c, t) for c, t in schema.items() if c != punctuation))


def _promising(
    given: Progress, schema: dict[str, pl.DataType], slack: Length | None, promises: str | Promise | None
) -> Progress:
    """The promise rule that is given, by slack or by punctuation."""
    if slack is not None and promises is not None:
        raise QueryError("give either slack or punctuation: two sources of promises would contradict each other")
    if slack is not None:
        return promise.slack(slack).declare(given, schema)
    if isinstance(promises, str):
        return promise.markers(promises, given.marker_by).declare(given, schema)
    if promises is not None and not isinstance(promises, Promise):
        raise QueryError(f"punctuation={promises!r} must be a column of markers, or a rule of wr.promise")
    return given if promises is None else promises.declare(given, schema)


def bounded(scan: Scan, came: str | None, ahead: Length | None) -> Scan:
    """The source; rows that are too far ahead of their arrival are bad rows."""
    if came is None or ahead is None:
        raise QueryError("arrival= and ahead= must be given together: the column of the arrival time, and the bound")
    if text(came, "arrival") not in scan.schema:
        raise QueryError(f"arrival={came!r} is not a column; available: {listing(scan.schema)}")
    kind, dtype = scan.schema[came], scan.schema[scan.progress]
    if type(kind) is not type(dtype) and not (kind.is_integer() and dtype.is_integer()):
        raise QueryError(f"arrival={came!r} is of type {kind}, {scan.progress!r} of type {dtype}")
    most = length(ahead, dtype, "ahead", zero=True)
    bound = Ahead(came, most, kind, span(most, dtype))
    return replace(scan, source=replace(scan.source, ahead=bound))


def asked(scan: Scan, delay: Length | None, idle_after: Length | None) -> Scan:
    """The source, if it can be asked how far it has come while it has no rows."""
    dtype = scan.schema[scan.progress]
    for given, what in ((delay, "delay"), (idle_after, "idle_after")):
        if given is not None and not dtype.is_temporal():
            raise QueryError(
                f"{what}={given!r} compares {scan.progress!r} with the time of day, and it is of type {dtype}: convert "
                "it to a timestamp"
            )
    if scan.progress in scan.stamps and (delay, idle_after) not in ((None, None), (0, None)):
        zero = idle_after is None and delay is not None and not length(delay, MICROS, "delay", zero=True)
        if not zero:
            raise QueryError(
                f"rows get {scan.progress} as they arrive, so none is delayed, and an empty source is never behind: "
                "leave delay= and idle_after= out (over a Spark DataFrame, delay=0 lets it be asked for the time)"
            )
    found = replace(
        scan.source,
        delay=scan.source.delay if delay is None else length(delay, MICROS, "delay", zero=True),
        idle_after=scan.source.idle_after if idle_after is None else length(idle_after, MICROS, "idle_after"),
    )
    if found.idle_after is not None and not found.promises:
        raise QueryError(
            f"idle_after={idle_after!r} says when a silent source counts as idle, and nothing says how far it is while "
            "it has rows: give slack=, punctuation= or delay=, too"
        )
    return replace(scan, source=found)


def also_progressing(scan: Scan, also: Mapping[str, Length]) -> Scan:
    """The source with further columns that progress, each within its own slack."""
    if not isinstance(also, Mapping):
        raise QueryError(f"also={also!r} must be a dict of columns and their slack, as in also={{'start': '1 minute'}}")
    found = []
    for column, slack in also.items():
        if text(column, "also") not in scan.schema:
            raise QueryError(f"also={column!r} is not a column; available: {listing(scan.schema)}")
        if column == scan.progress:
            raise QueryError(f"also={column!r} is the progress column already")
        if not progressing(dtype := scan.schema[column]):
            raise QueryError(f"also={column!r} must be {PROGRESSING}, not {dtype}")
        within = length(slack, dtype, f"the slack of {column}", zero=True)
        if within and column in scan.stamps:
            raise QueryError(f"also={also!r}: rows get {column} as they arrive, in order, so its slack is 0")
        found.append((column, within))
    return replace(scan, source=replace(scan.source, also=tuple(found)))
