"""Two attributes of arrival that rows have without a declaration: when a row arrived, and as which.

Bai et al. call such timestamps internal: whoever takes a row stamps it, so rows are in their order, and a stream that
progresses on one promises by itself. A column of that name in the data always wins; it is an ordinary column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

import polars as pl

from windrow.errors import QueryError, listing
from windrow.logical.nodes import Filter, Node, Scan, Union
from windrow.spec.names import ARRIVAL_TS, POSITION

TYPES: dict[str, pl.DataType] = {ARRIVAL_TS: pl.Datetime("us", "UTC"), POSITION: pl.Int64()}
_NAMES = re.compile(rf"(?<![\w.@])(?:{'|'.join(TYPES)})\b", re.IGNORECASE)


def named(texts: Iterable[str]) -> list[str]:
    """The attributes of arrival that some texts name.

    >>> named(["arrival_ts > ts", "arrival_ts_old"])
    ['arrival_ts']
    """
    return list(dict.fromkeys(name.lower() for text in texts for name in _NAMES.findall(text)))


def stamped(scan: Scan, name: str, hidden: bool = False) -> Scan:
    """The source with an attribute of arrival as one more column, on which it progresses, too."""
    source = scan.source
    if name == ARRIVAL_TS and name != source.attribute:
        source = replace(source, also=(*source.also, (name, 0)))
    if name == POSITION and not source.row_num:
        source = replace(source, row_num=(name,))
    return replace(
        scan,
        columns=(*scan.columns, (name, TYPES[name])),
        source=source,
        stamps=(*scan.stamps, name),
        hidden=(*scan.hidden, name) if hidden else scan.hidden,
    )


def with_all_stamps(scans: Iterable[Scan]) -> dict[str, Scan]:
    """Sources by name. Where several queries read one, it has the attributes of arrival that any of them wants."""
    found: dict[str, Scan] = {}
    for scan in scans:
        known = found.setdefault(scan.name, scan)
        columns = {**known.schema, **{name: scan.schema[name] for name in scan.stamps}}
        stamps = tuple(dict.fromkeys((*known.stamps, *scan.stamps)))
        found[scan.name] = replace(known, columns=tuple(columns.items()), stamps=stamps)
    return found


def check_stamps(scans: Iterable[Scan]) -> None:
    """Refuse a stream that is in a query with an attribute of arrival and without it: it is read once."""
    known: dict[str, Scan] = {}
    for scan in scans:
        if differ := set(known.setdefault(scan.name, scan).stamps) ^ set(scan.stamps):
            declare = {ARRIVAL_TS: f"also={{'{ARRIVAL_TS}': '0 seconds'}}", POSITION: f"row_num='{POSITION}'"}
            raise QueryError(
                f"stream {scan.name!r} is in the query twice, once with {listing(differ)} and once without: declare "
                f"it, for both to have it: wr.stream(.., {', '.join(declare[name] for name in sorted(differ))})"
            )


def arriving(node: Node, names: Collection[str]) -> Node:
    """Rows with the attributes of arrival that a query names, where their sources have them and they are not there.

    Only where rows are still as they came: a query that selects columns has selected these, or it has not.
    """
    if isinstance(node, (Filter, Union)):
        return node.rebuild(*(arriving(each, names) for each in node.inputs)) if names else node
    if not isinstance(node, Scan):
        return node
    there = {column.lower() for column in node.schema}
    for name in (n for n in TYPES if n in names and n in node.offers and n not in there):
        if name == ARRIVAL_TS or not node.source.row_num:
            node = stamped(node, name, hidden=True)
    return node
