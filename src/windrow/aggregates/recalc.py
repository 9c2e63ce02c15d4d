"""The oracle: every window computed from its extent, one tuple at a time, in plain Python. Slow on purpose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from windrow.windows import Tuple, Window

Row = dict[str, Any]


def recalc(
    rows: Sequence[Row],
    window: Window,
    progress: str,
    keys: Sequence[str],
    aggregates: Sequence[tuple[str, str, str | None]],
) -> dict[Any, Row]:
    """{(window id, key values): {name: result}} for aggregates given as (name, function, argument or None).

    >>> from windrow.windows import Sliding
    >>> recalc([{"t": 1, "x": 5}, {"t": 3, "x": 7}], Sliding(2, 2), "t", [], [("s", "sum", "x")])
    {(0, ()): {'s': 5}, (1, ()): {'s': 7}}
    """
    tuples = [Tuple(row[progress], i) for i, row in enumerate(rows)]
    found: dict[Any, Row] = {}
    for w in sorted(window.windows(tuples), key=repr):
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for t in window.extent(w, tuples):
            row = rows[t.row_num]
            groups.setdefault(tuple(row[k] for k in keys), []).append(row)
        for key, members in groups.items():
            found[w, key] = {name: _value(function, arg, members) for name, function, arg in aggregates}
    return found


def _value(function: str, arg: str | None, rows: Iterable[Row]) -> Any:
    if arg is None:
        return len(list(rows))
    return FOLDS[function]([row[arg] for row in rows if row[arg] is not None])


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    return sum(values) if all(isinstance(v, int) for v in values) else _float_sum(values)


def _float_sum(values: list[float]) -> float:
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)


def _nan_last(value: Any) -> Any:
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _variance(values: list[Any], freedom: int) -> float | None:
    if len(values) + freedom <= 0:
        return None
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / (len(exact) + freedom))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": _sum,
    "avg": lambda v: None if not v else (_sum(v) / len(v)),
    "min": lambda v: min(v, key=_nan_last, default=None),
    "max": lambda v: max(v, key=_nan_last, default=None),
    "var_samp": lambda v: _variance(v, -1),
    "var_pop": lambda v: _variance(v, 0),
    "stddev_samp": lambda v: _root(_variance(v, -1)),
    "stddev_pop": lambda v: _root(_variance(v, 0)),
}
FOLDS["var"] = FOLDS["variance"] = FOLDS["var_samp"]
FOLDS["stddev"] = FOLDS["stddev_samp"]
FOLDS["mean"] = FOLDS["avg"]
