"""The results of windows: every window from its extent, every group from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

import polars as pl

from windrow.errors import ResultError
from windrow.logical.nodes import AggregateCall, PairAggregate, WindowAggregate
from windrow.spec.names import WINDOW_END, WINDOW_START
from windrow.testing.oracle.clock import first_shown, shown
from windrow.testing.oracle.expressions.arithmetic import fitting
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.folds import fold
from windrow.testing.oracle.values import Row, column, in_python, key, values_of
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding, Tuple

AT, NUMBER = "@t", "@row_num"
Bounds = tuple[int | None, int]
Group = tuple[Bounds, tuple[Any, ...], list[Row]]


def needed(node: WindowAggregate) -> tuple[str, ...]:
    """The columns of a source without which a row is in no window."""
    return node.input.arrival if _by_number(node) else ()


def _by_number(node: WindowAggregate) -> bool:
    """Whether row numbers say at which rows windows end: at every n-th, but not where it is every single one."""
    window = node.window
    return isinstance(window, SlideByTuple) and window.by == "row_num" and window.slide > 1


def window_rows(node: WindowAggregate, rows: list[Row], end: int | None, bad: Counter[str]) -> Iterator[Row]:
    """A row for each window and group. ``end``: where the stream ends."""
    zone = node.options.zone
    if zone is not None and end is not None:
        end = shown(end, zone)
    prepared = list(_prepared(node, rows, bad))
    for (start, last), group, members in _groups(node, prepared, end):
        if not node.options.partial and start is not None and start < getattr(node.window, "origin", 0):
            continue
        found = dict(zip((n for n, _ in node.keys), group, strict=True))
        found[WINDOW_START] = start if start is None or zone is None else first_shown(start, zone)
        found[WINDOW_END] = last if zone is None else first_shown(last, zone)
        yield found | {call.name: _aggregate(node, call, members) for call in node.calls}


def pair_rows(node: PairAggregate, rows: list[Row], bad: Counter[str]) -> Iterator[Row]:
    """A row for each group: there are no windows, as both times are keys."""
    names = [n for n, _ in node.keys]
    for members in grouped(list(_prepared(node, rows, bad)), names):
        found = {n: members[0][n] for n in names}
        yield found | {call.name: _aggregate(node, call, members) for call in node.calls}


def _aggregate(node: WindowAggregate | PairAggregate, call: AggregateCall, members: list[Row]) -> Any:
    value = fold(call.function, None if call.argument is None else f"@{call.name}", members, call)
    return fitted(call, value, node.schema[call.name])


def fitted(call: AggregateCall, value: Any, dtype: pl.DataType) -> Any:
    """The value of an aggregate in its type; an error if it does not fit."""
    if call.user is not None:
        return values_of(pl.Series([value], dtype=dtype))[0]
    if isinstance(value, int) and dtype == pl.Int64:
        return fitting(value)
    try:
        column("", [value], dtype)
    except (pl.exceptions.PolarsError, OverflowError) as error:
        raise ResultError(f"{call.function}: {value} is no value of type {dtype}") from error
    return value


def _prepared(node: WindowAggregate | PairAggregate, rows: list[Row], bad: Counter[str]) -> Iterator[Row]:
    """What of each row the windows see: where it is, its keys, and the arguments of the aggregates."""
    schema = node.input.schema
    keys = {name: evaluate(tree, schema) for name, tree in node.keys}
    arguments = {c: evaluate(c.argument, schema) for c in node.calls if c.argument is not None}
    numbered = node.input.arrival
    for row in rows:
        found = {AT: _at(node, row), NUMBER: row[numbered[-1]] if numbered else 0}
        found |= {name: cell.of(row) for name, cell in keys.items()}
        try:
            found |= {f"@{c.name}": _lifted(c, cell.of(row), cell.dtype) for c, cell in arguments.items()}
        except _LiftError as failure:
            bad[str(failure)] += 1
            continue
        yield found


def _at(node: WindowAggregate | PairAggregate, row: Row) -> int:
    """Where a row is. Pairs that have no time in common are where the later of their rows is."""
    if isinstance(node, PairAggregate):
        times = [node.input.progress] if node.input.progress else [node.column(k) for k in (node.left, node.right)]
        return max(int(row[t]) for t in times if row[t] is not None)
    at: int = row[node.attribute] - (0 if node.by_rows else node.input.lead)
    return at if node.options.zone is None else shown(at, node.options.zone)


class _LiftError(Exception):
    """A user's lift() raised: the row is bad."""


def _lifted(call: AggregateCall, value: Any, dtype: pl.DataType) -> Any:
    """An argument; of a user's aggregate its state. NULL has none."""
    if call.user is None or value is None:
        return value
    try:
        return call.user.lift(in_python([value], dtype)[0])
    except Exception as error:  # whatever the user's function raises
        reason = f"{type(error).__name__}: {error}"
        raise _LiftError(f"aggregate {call.user.name!r} failed in lift: {reason}") from error


def _groups(node: WindowAggregate, rows: list[Row], end: int | None) -> list[Group]:
    """(bounds, key, rows) of every result."""
    keys = [n for n, _ in node.keys]
    parts = keys if isinstance(node.window, Session) else list(node.parts)
    found: list[Group] = []
    for members in grouped(rows, parts):  # with windows of its own every part is a stream
        tuples = {Tuple(0 if node.by_rows else r[AT], _number(node, r, i)): r for i, r in enumerate(members)}
        for w in _ids(node, list(tuples), end):
            extent = node.window.extent(w, list(tuples))
            for held in grouped([tuples[t] for t in extent], keys):
                found.append((_bounds(node, w, extent), tuple(held[0][k] for k in keys), held))
    return found + _empty(node, rows, keys, found, end) if node.options.empty else found


def grouped(rows: list[Row], names: list[str]) -> list[list[Row]]:
    """Rows that are equal in some columns, together."""
    found: dict[Hashable, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(key(row[n]) for n in names), []).append(row)
    return list(found.values())


def _number(node: WindowAggregate, row: Row, position: int) -> int:
    return int(row[NUMBER]) if (node.by_rows or _by_number(node)) and node.input.arrival else position


def _ids(node: WindowAggregate, tuples: list[Tuple], end: int | None) -> list[Hashable]:
    if isinstance(node.window, Landmark) and end is not None and tuples:  # they go on to the end of the stream
        return sorted(node.window.windows([*tuples, Tuple(max(end, *(t.a for t in tuples)))]), key=repr)
    return sorted(node.window.windows(tuples), key=repr)


def _bounds(node: WindowAggregate, w: Any, extent: list[Tuple]) -> Bounds:
    window = node.window
    match window:
        case Sliding():
            return window.start(w), window.end(w)
        case RowSliding():
            return window.over_rows.start(w), window.over_rows.end(w)
        case Partitioned():
            return window.over_rank.start(w[0]), window.over_rank.end(w[0])
        case Landmark():
            return None, window.end(w)
        case SlideByTuple():
            return w - window.range, w
        case Session():
            return w[1], max(t.a for t in extent) + window.gap


def _empty(node: WindowAggregate, rows: list[Row], keys: list[str], found: list[Group], end: int | None) -> list[Group]:
    """Windows without rows, of every group from its first window to the last that the end of the stream has passed."""
    window = node.window.over_rows if isinstance(node.window, RowSliding) else node.window
    assert isinstance(window, Sliding)
    at = NUMBER if node.by_rows else AT
    last = 0 if end is None else window.closed_below(end)
    there = {(bounds, tuple(key(v) for v in group)) for bounds, group, _ in found}
    added: list[Group] = []
    inside = [r for r in rows if window.wids(Tuple(r[at]))]  # rows in gaps are in no window
    for own in grouped(inside, keys):
        group = tuple(own[0][k] for k in keys)
        for w in range(min((r[at] - window.origin) // window.slide for r in own), last):
            bounds = (window.start(w), window.end(w))
            if (bounds, tuple(key(v) for v in group)) not in there:
                added.append((bounds, group, []))
    return added
