"""What a query means, computed the slow and obvious way from all rows at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates.recalc import fold
from windrow.api.stream import Stream
from windrow.errors import PlanError
from windrow.logical.expressions import translate
from windrow.logical.nodes import (
    Apply,
    Distinct,
    Filter,
    Node,
    Ordered,
    Project,
    Scan,
    Split,
    Together,
    Top,
    Union,
    WindowAggregate,
)
from windrow.operators.progress.admit import Admit
from windrow.spec.names import BRANCH, STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.spec.time import Bounds, parsed, physical, wall_clock, wall_promise
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding, Tuple

Row = dict[str, Any]


def oracle(query: Stream, sources: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """All result rows over finite data, in no order. ``sources`` replaces the query's own data.

    Of results that come in versions it gives the last ones, without version and status.

    >>> from windrow import count, stream
    >>> rows = [{"t": 1}, {"t": 2}]
    >>> oracle(stream(rows, progress="t").window(range=2).agg(n=count())).sort("window_end").rows()
    [(0, 2, 1), (2, 4, 1)]
    """
    frames = sources if sources is not None else {n: s.data for n, s in query.sources.items()}
    return _evaluate(query.node, frames, False)


def _evaluate(node: Node, sources: Mapping[str, pl.DataFrame], by_rows: bool) -> pl.DataFrame:
    match node:
        case Scan() if node.name == BRANCH:
            return sources[BRANCH]
        case Scan():
            return _admitted(node, sources[node.name], by_rows)
        case Filter():
            return _evaluate(node.input, sources, by_rows).filter(translate(node.predicate, node.input.schema))
        case Project():
            kept = [(n, e) for n, e in node.columns if e.name not in (VERSION, STATUS)]
            columns = [translate(e, node.input.schema).alias(n) for n, e in kept]
            return _evaluate(node.input, sources, by_rows).select(columns)
        case Apply():
            return _applied(node, _evaluate(node.input, sources, by_rows))
        case Split():
            rows = _evaluate(node.input, sources, by_rows)
            true = rows.select(translate(node.predicate, node.input.schema).alias("@true"))["@true"].fill_null(False)
            parts = (node.yes, rows.filter(true)), (node.no, rows.filter(~true))
            return pl.concat([_evaluate(way, {BRANCH: part}, by_rows) for way, part in parts])
        case Distinct():
            return _evaluate(node.input, sources, by_rows).unique()
        case Ordered():
            return _in_order(node, _evaluate(node.input, sources, by_rows))
        case Union():
            return pl.concat([_evaluate(each, sources, by_rows) for each in node.inputs])
        case WindowAggregate():
            return _windows(node, _evaluate(node.input, sources, node.by_rows), _end(node.input, sources, node.by_rows))
        case Top():
            return _top(node, _evaluate(node.input, sources, by_rows))
        case Together():
            return pl.concat([_member(node, name, _evaluate(q, sources, by_rows)) for name, q in node.queries])
    raise PlanError(f"{type(node).__name__} has no definition here")


def _admitted(node: Scan, frame: pl.DataFrame, by_rows: bool) -> pl.DataFrame:
    source = node.source
    admit = Admit(node.progress, node.schema[node.progress], source.parse, source.marker)
    if by_rows:
        admit = Admit(source.row_num[-1], node.schema[source.row_num[-1]], None, source.marker)
        frame = frame.with_columns(parsed(pl.col(node.progress), source.parse))
    admitted = admit.on_batch(0, frame)[0]
    assert isinstance(admitted, pl.DataFrame)
    return admitted.select(list(node.schema))


def _member(node: Together, name: str, results: pl.DataFrame) -> pl.DataFrame:
    row = results.select(pl.struct(list(dict(node.queries)[name].schema)).cast(node.schema[name]).alias(name))
    return row.with_columns(pl.lit(None, t).alias(n) for n, t in node.schema.items() if n != name).select(node.schema)


def _applied(node: Apply, frame: pl.DataFrame) -> pl.DataFrame:
    """Row by row; a row that the function fails for is not there."""
    kept, values = [], []
    for number in range(frame.height):
        try:
            values.append(node.function.of(frame[number]).to_list()[0])
        except Exception:  # whatever the user's function raises, the row is bad
            continue
        kept.append(number)
    return frame[kept].with_columns(pl.Series(node.column, values, dtype=node.function.returns))


def _in_order(node: Ordered, frame: pl.DataFrame) -> pl.DataFrame:
    names = [f"@order{i}" for i in range(len(node.order))]
    by = [translate(e, node.input.schema).alias(n) for n, (e, _) in zip(names, node.order, strict=True)]
    down = [False, *(d for _, d in node.order)]
    assert node.progress is not None
    found = frame.with_columns(by).sort(node.progress, *names, descending=down, nulls_last=down, maintain_order=True)
    return found.select(frame.columns)


def _top(node: Top, frame: pl.DataFrame) -> pl.DataFrame:
    names = [f"@order{i}" for i in range(len(node.order))]
    columns = [translate(e, node.input.schema).alias(n) for n, (e, _) in zip(names, node.order, strict=True)]
    rest = [c for c, t in frame.schema.items() if not t.is_nested()]
    down = [d for _, d in node.order] + [False] * len(rest)
    ordered = frame.with_columns(columns).sort(*names, *rest, descending=down, nulls_last=down)
    first = ordered.group_by(WINDOW_START, WINDOW_END, maintain_order=True).head(node.limit)
    return first.select(frame.columns)


def _end(node: Node, sources: Mapping[str, pl.DataFrame], by_rows: bool) -> int | None:
    """The end of a finite stream: the greatest progress value of any row that was read, whatever was kept of them.

    Results of windows end where they would if the end of their input were promised, or with the last of them.
    """
    match node:
        case Scan():
            attribute = node.source.row_num[-1] if by_rows else node.progress
            rows = _admitted(node, sources[node.name], by_rows)
            reached: int | None = rows.select(physical(pl.col(attribute), node.schema[attribute]).max()).item()
            return None if reached is None else reached + by_rows
        case Union():
            ends = [_end(each, sources, by_rows) for each in node.inputs]
            return max((e for e in ends if e is not None), default=None)
        case WindowAggregate():
            return _end_of_results(node, sources)
        case Split():
            end = _end(node.input, sources, by_rows)
            ways = [_moved(way, end, by_rows) for way in (node.yes, node.no)]
            return max((e for e in ways if e is not None), default=None)
        case Together():
            return None
    return _moved(node, _end(node.inputs[0], sources, by_rows), by_rows, once=True)


def _moved(node: Node, end: int | None, by_rows: bool, once: bool = False) -> int | None:
    """Where a stream ends behind steps on rows, which may have it progress on something else."""
    if end is None or by_rows or isinstance(node, (Scan, Union, WindowAggregate, Together)):
        return end
    end = end if once else _moved(node.inputs[0], end, by_rows)
    before = node.inputs[0].progress
    if end is None or before is None:
        return end
    if isinstance(node, Project) and node.on is not None:
        return end + node.input.times[node.on].lead
    row = Bounds(node.inputs[0].schema[before]).column(before, np.array([end + node.inputs[0].lead])).to_frame()
    if isinstance(node, Apply) and node.moves:
        return int(physical_of(node.function.of(row)))
    if isinstance(node, Project) and node.retimes is not None:
        return int(physical_of(row.select(translate(node.retimes, node.input.schema)).to_series()))
    return end


def physical_of(value: pl.Series) -> int:
    """The one value of a column as a progress value."""
    return int(value.to_frame("t").select(physical(pl.col("t"), value.dtype)).item())


def _end_of_results(node: WindowAggregate, sources: Mapping[str, pl.DataFrame]) -> int | None:
    end = _end(node.input, sources, node.by_rows)
    if end is None or node.progress is None:
        return None
    lead, window = node.lead, node.window
    results = _evaluate(node, sources, False).select(physical(pl.col(WINDOW_END), node.schema[WINDOW_END]))
    ends: list[int] = results.to_series().to_list()
    if isinstance(window, (Sliding, RowSliding)):
        shape = window.over_rows if isinstance(window, RowSliding) else window
        wall = end if node.options.zone is None else wall_promise(end, node.options.zone)
        promised = Bounds(node.bound, node.options.zone).value(shape.end(shape.closed_below(wall)))
    elif isinstance(window, Session):
        promised = min([end + window.gap, *(e for e in ends if e > end)])
    else:
        promised = end
    return max([promised, *ends]) - lead


def _at(node: WindowAggregate) -> pl.Expr:
    """The progress value of a row before a window: row numbers, or instants."""
    dtype = node.input.schema[node.attribute]
    return physical(pl.col(node.attribute), dtype) - (0 if node.by_rows else node.input.lead)


def _windows(node: WindowAggregate, frame: pl.DataFrame, end: int | None) -> pl.DataFrame:
    given = node.input.schema
    zone = node.options.zone
    at = _at(node)
    columns = [(wall_clock(at, zone) if zone is not None else at).alias("@t")]
    if zone is not None and end is not None:
        end = int(pl.select(wall_clock(pl.lit(end), zone)).item())
    numbered = node.input.arrival
    columns += [pl.col(numbered[-1]).cast(pl.Int64).alias("@row_num") if numbered else pl.lit(0).alias("@row_num")]
    columns += [translate(e, given).alias(n) for n, e in node.keys]
    arguments = {f"@{c.name}": c.argument for c in node.calls if c.argument is not None}
    columns += [translate(e, given).alias(n) for n, e in arguments.items()]
    rows = frame.select(columns).rows(named=True)
    data: dict[str, list[Any]] = {name: [] for name in node.schema if name not in (VERSION, STATUS)}
    for bounds, key, members in _groups(node, rows, end):
        if not node.options.partial and bounds[0] is not None and bounds[0] < getattr(node.window, "origin", 0):
            continue
        for name, value in zip((n for n, _ in node.keys), key, strict=True):
            data[name].append(value)
        data[WINDOW_START].append(bounds[0])
        data[WINDOW_END].append(bounds[1])
        for call in node.calls:
            data[call.name].append(
                fold(call.function, None if call.argument is None else f"@{call.name}", members, call)
            )
    clock = Bounds(node.bound, zone)
    return pl.DataFrame([_series(n, v, node.schema[n], clock) for n, v in data.items()])


def _groups(
    node: WindowAggregate, rows: list[Row], end: int | None
) -> list[tuple[tuple[int | None, int], tuple[Any, ...], list[Row]]]:
    """(bounds, key, rows) of every result."""
    keys = [n for n, _ in node.keys]
    parts = list(node.parts) if not isinstance(node.window, Session) else keys
    by_part: dict[Hashable, list[Row]] = {}
    for row in rows:
        by_part.setdefault(tuple(_key(row[p]) for p in parts), []).append(row)
    found = []
    for members in by_part.values():
        # With windows of its own every part is a stream.
        tuples = {Tuple(r["@t"] if not node.by_rows else 0, _number(node, r, i)): r for i, r in enumerate(members)}
        for w in _ids(node, list(tuples), end):
            extent = node.window.extent(w, list(tuples))
            groups: dict[Hashable, list[Row]] = {}
            for t in extent:
                groups.setdefault(tuple(_key(tuples[t][k]) for k in keys), []).append(tuples[t])
            for held in groups.values():
                found.append((_bounds(node, w, extent), tuple(held[0][k] for k in keys), held))
    if node.options.empty:
        found += _empty(node, rows, keys, found, end)
    return found


def _number(node: WindowAggregate, row: Row, position: int) -> int:
    by_number = node.by_rows or (isinstance(node.window, SlideByTuple) and node.window.by == "row_num")
    return int(row["@row_num"]) if by_number and node.input.arrival else position


def _key(value: Any) -> Hashable:
    return "nan" if value != value else tuple(value) if isinstance(value, list) else value


def _ids(node: WindowAggregate, tuples: list[Tuple], end: int | None) -> list[Hashable]:
    if isinstance(node.window, Landmark) and end is not None and tuples:  # they go on to the end of the stream
        return sorted(node.window.windows([*tuples, Tuple(max(end, *(t.a for t in tuples)))]), key=repr)
    return sorted(node.window.windows(tuples), key=repr)


def _bounds(node: WindowAggregate, w: Any, extent: list[Tuple]) -> tuple[int | None, int]:
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


def _empty(node: WindowAggregate, rows: list[Row], keys: list[str], found: list[Any], end: int | None) -> list[Any]:
    """Windows without rows, of every group from its first window to the last that the end of the stream has passed."""
    window = node.window.over_rows if isinstance(node.window, RowSliding) else node.window
    assert isinstance(window, Sliding)
    at = "@row_num" if node.by_rows else "@t"
    last = 0 if end is None else window.closed_below(end)
    there = {(bounds, tuple(_key(v) for v in key)) for bounds, key, _ in found}
    added: list[Any] = []
    inside = [r for r in rows if window.wids(Tuple(r[at]))]  # rows in gaps are in no window
    for group in {tuple(_key(r[k]) for k in keys): tuple(r[k] for k in keys) for r in inside}.values():
        own = [r[at] for r in inside if tuple(_key(r[k]) for k in keys) == tuple(_key(v) for v in group)]
        for w in range(min((a - window.origin) // window.slide for a in own), last):
            bounds = (window.start(w), window.end(w))
            if (bounds, tuple(_key(v) for v in group)) not in there:
                added.append((bounds, group, []))
    return added


def _series(name: str, values: list[Any], dtype: pl.DataType, clock: Bounds) -> pl.Series:
    if name in (WINDOW_START, WINDOW_END):
        if name == WINDOW_START and any(v is None for v in values):
            return pl.Series(name, [None] * len(values), dtype=clock.dtype)
        return clock.column(name, pl.Series(values, dtype=pl.Int64).to_numpy())
    return pl.Series(name, values, dtype=dtype, strict=False)
