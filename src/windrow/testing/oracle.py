"""What a query means, computed the slow and obvious way from all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from windrow.aggregates import recalc
from windrow.language.builder import Stream
from windrow.logical.expressions import translate
from windrow.logical.nodes import WINDOW_END, WINDOW_START, Filter, Node, Project, Scan, Union, WindowAggregate
from windrow.operators.admit import Admit, physical
from windrow.windows import Sliding


def oracle(query: Stream, sources: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """All result rows over finite data, in no order. ``sources`` replaces the query's own data.

    >>> from windrow import count, stream
    >>> rows = [{"t": 1}, {"t": 2}]
    >>> oracle(stream(rows, progress="t").window(range=2).agg(n=count())).sort("window_end").rows()
    [(0, 2, 1), (2, 4, 1)]
    """
    frames = sources if sources is not None else {n: s.data for n, s in query.sources.items()}
    return _evaluate(query.node, frames)


def _evaluate(node: Node, sources: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    match node:
        case Scan():
            admit = Admit(node.progress, node.schema[node.progress], node.source.parse, node.source.marker)
            admitted = admit.on_batch(0, sources[node.name])[0]
            assert isinstance(admitted, pl.DataFrame)
            return admitted.select(list(node.schema))
        case Filter():
            return _evaluate(node.input, sources).filter(translate(node.predicate, node.input.schema))
        case Project():
            columns = [translate(e, node.input.schema).alias(n) for n, e in node.columns]
            return _evaluate(node.input, sources).select(columns)
        case Union():
            return pl.concat([_evaluate(each, sources) for each in node.inputs])
        case WindowAggregate():
            return _windows(node, _evaluate(node.input, sources))


def _windows(node: WindowAggregate, frame: pl.DataFrame) -> pl.DataFrame:
    assert isinstance(node.window, Sliding)
    given = node.input.schema
    arguments = {f"@{c.name}": c.argument for c in node.calls if c.argument is not None}
    columns = [physical(pl.col(node.attribute), given[node.attribute]).alias("@t")]
    columns += [translate(e, given).alias(n) for n, e in node.keys]
    columns += [translate(e, given).alias(n) for n, e in arguments.items()]
    rows = frame.select(columns).rows(named=True)
    calls = [(c.name, c.function, f"@{c.name}" if c.argument is not None else None) for c in node.calls]
    keys = [n for n, _ in node.keys]
    found = recalc(rows, node.window, "@t", keys, calls)
    data: dict[str, list[Any]] = {name: [] for name in node.schema}
    for (wid, key), values in found.items():
        for name, value in zip(keys, key, strict=True):
            data[name].append(value)
        data[WINDOW_START].append(node.window.start(wid))
        data[WINDOW_END].append(node.window.end(wid))
        for name, value in values.items():
            data[name].append(value)
    return pl.DataFrame([_series(n, data[n], t) for n, t in node.schema.items()])


def _series(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    if name in (WINDOW_START, WINDOW_END):
        whole = pl.Series(name, values, pl.Int64)
        return whole.cast(pl.Int32).cast(dtype) if dtype == pl.Date else whole.cast(dtype)
    return pl.Series(name, values, dtype=dtype, strict=False)
