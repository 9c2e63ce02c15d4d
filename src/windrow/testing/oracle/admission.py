"""Which rows of a source take part in a query: progress values and markers, read one row at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.errors import QueryError
from windrow.logical.nodes import Progress, Scan
from windrow.progress import FARTHEST
from windrow.testing.oracle.expressions.texts import DAY, SECOND, days_of
from windrow.testing.oracle.values import Row, rows_of_frame, values_of

ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[Tt ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?(Z|z|[+-]\d\d:?\d\d)?)?)?"
)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DIRECTIVES = {
    "Y": r"(?P<year>[+-]?\d+)",
    "y": r"(?P<short>\d\d)",
    "m": r"(?P<month>\d{1,2})",
    "b": r"(?P<name>[A-Za-z]{3})",
    "d": r"(?P<day>\d{1,2})",
    "H": r"(?P<hour>\d{1,2})",
    "I": r"(?P<twelve>\d{1,2})",
    "p": r"(?P<half>[AaPp][Mm])",
    "M": r"(?P<minute>\d{1,2})",
    "S": r"(?P<second>\d{1,2})",
    ".f": r"(?:\.(?P<part>\d+))?",
    ".3f": r"\.(?P<part>\d{3})",
    ".6f": r"\.(?P<part>\d{6})",
    "z": r"(?P<zone>[+-]\d\d:?\d\d)",
    "%": "%",
}
WHOLE = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}


@dataclass
class Admitted:
    """The rows that take part, with text progress values read; and why the others do not."""

    rows: list[Row] = field(default_factory=list)
    bad: Counter[str] = field(default_factory=Counter)
    markers: int = 0  # good ones: a bad marker is a bad row


def admitted(scan: Scan, frame: pl.DataFrame, by_rows: bool = False, needs: Sequence[str] = ()) -> Admitted:
    """``by_rows``: row numbers are the progress values. ``needs``: further columns that must not be NULL.

    >>> progress = Progress("t", marker="m")
    >>> scan = Scan("s", (("t", pl.Int64()),), progress)
    >>> found = admitted(scan, pl.DataFrame({"t": [3, None, 2**62, None], "m": [None, None, None, 5]}))
    >>> found.rows, sorted(found.bad.values()), found.markers
    ([{'t': 3}], [1, 1], 1)
    """
    source, found = scan.source, Admitted()
    attribute = source.row_num[-1] if by_rows else scan.progress
    needed = source.row_num[:-1] if by_rows else needs
    for row in rows_of_frame(frame):
        if source.marker is not None and row[source.marker] is not None:
            why = None if by_rows else bad_marker(scan, frame.schema, row)
            found.bad.update([why] if why is not None else [])
            found.markers += why is None
            continue
        text = row[scan.progress]
        if source.parse is not None:
            row[scan.progress] = read(text, source.parse)
        why = _bad(scan, row, text, attribute, by_rows)
        why = why or next((f"the row number {c} is NULL" for c in needed if row[c] is None), None)
        if why is None:
            found.rows.append({name: row[name] for name in scan.schema})
        else:
            found.bad[why] += 1
    return found


def _bad(scan: Scan, row: Row, text: Any, attribute: str, by_rows: bool) -> str | None:
    called = f"row number {attribute}" if by_rows else "progress value"
    value = row[attribute]
    if value is None and not by_rows and text is not None:
        return "the progress value cannot be parsed"
    if value is None:
        return f"the {called} is NULL"
    return too_far(called, value, scan.schema[attribute]) or (None if by_rows else _ahead(scan.source, row, value))


def too_far(called: str, value: int, dtype: pl.DataType) -> str | None:
    """Why a progress value is bad, if it is so far from zero that bounds of windows would have no room."""
    most, power, unit = (1 << 30, 30, " days from 1970") if dtype == pl.Date else (FARTHEST, 62, "")
    unit = " microseconds from 1970" if isinstance(dtype, pl.Datetime) else unit
    if abs(value) < most:
        return None
    return f"the {called} is out of range: it must be between -2^{power} and 2^{power}{unit}"


def _ahead(source: Progress, row: Row, value: int) -> str | None:
    """A row that is too far ahead of when it arrived, or whose arrival is not known."""
    if (limit := source.ahead) is None:
        return None
    arrived = row[limit.arrival]
    if arrived is None:
        return f"the arrival {limit.arrival} is NULL, so the progress value cannot be trusted"
    if value - limit.most > arrived:
        return f"the progress value is more than {limit.says} ahead of {limit.arrival}"
    return None


def bad_marker(scan: Scan, schema: pl.Schema, row: Row) -> str | None:
    """Why a marker promises nothing: it has no readable value, or it is not clear whom it is about."""
    source, dtype = scan.source, scan.schema[scan.progress]
    assert source.marker is not None
    value = row[source.marker]
    if isinstance(value, str):
        value = _marker_text(value, dtype)
    if not isinstance(value, int) or isinstance(value, bool):
        return f"the marker cannot be read as a value of type {dtype}"
    if (why := too_far("marker", value, dtype)) is not None:
        return why
    for column in source.marker_by:
        kind, known = schema[column], scan.schema[column]
        if row[column] is not None and kind != known and not (kind.is_integer() and known.is_integer()):
            return f"the marker is about {column} of type {kind}, and it is of type {known}"
    if len({row[c] is None for c in source.marker_by}) > 1:
        return "the marker names only a part of a group"
    return None


def _marker_text(text: str, dtype: pl.DataType) -> int | None:
    if isinstance(dtype, pl.Datetime):
        return read(text, "iso8601")
    if dtype == pl.Date:
        found = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", text)
        return None if found is None else days_of(*map(int, found.groups()))
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else None


# -- texts as instants -----------------------------------------------------------------------------------------------
def read(text: str | None, parse: str) -> int | None:
    """A text in a format as an instant; without a zone it is UTC. None where it is in another format.

    >>> [read(text, "iso8601") for text in ("1970-01-01T01:00:00+01:00", "1970-01-02", " 1970-01-01 00:00:01.5", "x")]
    [0, 86400000000, 1500000, None]
    >>> read("02/01/1970 00:01", "%d/%m/%Y %H:%M") == DAY + 60 * SECOND
    True
    """
    if text is None:
        return None
    if parse != "iso8601":
        found = pattern(parse).fullmatch(text)
        return None if found is None else _formatted(found.groupdict())
    found = ISO.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second, part, zone = found.groups()
    return _instant(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), part, zone)


def pattern(parse: str) -> re.Pattern[str]:
    """A strptime format as a regular expression."""
    for short, long in WHOLE.items():
        parse = parse.replace(f"%{short}", long)
    found = []
    for directive, space, other in re.findall(r"%(\.\d?f|.)|(\s+)|(.)", parse, re.DOTALL):
        if directive and directive not in DIRECTIVES:
            raise QueryError(f"the oracle does not know %{directive} in formats")
        found.append(DIRECTIVES[directive] if directive else r"\s*" if space else re.escape(other))
    return re.compile("".join(found))


def _formatted(given: dict[str, str | None]) -> int | None:
    year = int(given.get("year") or _century(int(given.get("short") or 70)))
    name = (given.get("name") or "").lower()
    if name and name not in MONTHS:
        return None
    month = MONTHS.index(name) + 1 if name else int(given.get("month") or 1)
    hour = int(given.get("hour") or 0)
    if given.get("twelve"):
        if not 1 <= int(given["twelve"] or 0) <= 12:
            return None
        hour = int(given["twelve"] or 0) % 12 + 12 * ((given.get("half") or "").lower() == "pm")
    minute, second = int(given.get("minute") or 0), int(given.get("second") or 0)
    return _instant(year, month, int(given.get("day") or 1), hour, minute, second, given.get("part"), given.get("zone"))


def _century(short: int) -> int:
    return short + (1900 if short >= 70 else 2000)


def _instant(
    year: int, month: int, day: int, hour: int, minute: int, second: int, part: str | None, zone: str | None
) -> int | None:
    days = days_of(year, month, day)
    if days is None or hour > 23 or minute > 59 or second > 60:
        return None
    local = days * DAY + (hour * 3600 + minute * 60 + second) * SECOND + int((part or "").ljust(6, "0")[:6])
    if zone is None or zone in "Zz":
        return local
    sign = -1 if zone[0] == "-" else 1
    minutes = int(zone[-2:])
    return local - sign * (int(zone[1:3]) * 3600 + minutes * 60) * SECOND if minutes < 60 else None


def progress_values(scan: Scan, frame: pl.DataFrame) -> dict[int, int]:
    """The progress value of each row that has one, by its place in the frame."""
    values = values_of(frame[scan.progress])
    if scan.source.parse is not None:
        values = [read(text, scan.source.parse) for text in values]
    return {place: value for place, value in enumerate(values) if value is not None}
