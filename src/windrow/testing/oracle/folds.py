"""Aggregates by their definitions, over all rows of a window at once, in plain Python. Slow on purpose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol

from windrow.aggregates.user import UserAggregate
from windrow.windows import Tuple, Window

Row = dict[str, Any]


class Call(Protocol):
    """What of an aggregate call the oracle looks at."""

    @property
    def parameters(self) -> tuple[Any, ...]: ...

    @property
    def user(self) -> UserAggregate | None: ...


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
            found[w, key] = {name: fold(function, arg, members) for name, function, arg in aggregates}
    return found


def fold(function: str, arg: str | None, rows: Iterable[Row], call: Call | None = None) -> Any:
    """One aggregate over some rows; those by progress look at their ``@t``. A user's has lifted states as arguments."""
    rows = list(rows)
    if arg is None:
        return len(rows)
    given = [row for row in rows if row[arg] is not None]
    values = [row[arg] for row in given]
    if call is not None and call.user is not None:
        if not values:
            return None
        if call.user.combine is None:
            times = [row["@t"] for row in given]
            return call.user.lower([v for _, v in sorted(zip(times, values, strict=True))])
        return call.user.lower(reduce(call.user.combine, values))
    if function in FOLDS:
        return FOLDS[function](values)
    if function in BY_PROGRESS:
        ordered = sorted(given, key=lambda row: (row["@t"], nan_last(row[arg])))
        return BY_PROGRESS[function]([row[arg] for row in ordered])
    assert call is not None
    return WITH_PARAMETER[function](values, call.parameters[0], len(rows if len(call.parameters) == 1 else values))


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    return _float_sum(values) if any(isinstance(v, float) for v in values) else sum(values)


def _float_sum(values: list[float]) -> float:
    return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)


def nan_last(value: Any) -> Any:
    """A key that puts NaN behind every number."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _variance(values: list[Any], freedom: int) -> float | None:
    if len(values) + freedom <= 0:
        return None
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    return float(sum((v - mean) ** 2 for v in exact) / (len(exact) + freedom))


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _distinct(values: list[Any]) -> list[Any]:
    keyed = {nan_last(v): v for v in values}
    return [keyed[k] for k in sorted(keyed)]


def _counts(values: list[Any]) -> list[tuple[Any, int]]:
    """Values with their counts, the most frequent first, then the least."""
    counts = Counter(nan_last(v) for v in values)
    by_key = {nan_last(v): v for v in values}
    return [(by_key[k], n) for k, n in sorted(counts.items(), key=lambda e: (-e[1], e[0]))]


def _pairs(counts: list[tuple[Any, int]]) -> list[Row]:
    return [{"value": v, "count": n} for v, n in counts]


def _quantile(values: list[Any], share: Any, _rows: int = 0) -> float | None:
    if not values:
        return None
    ordered = sorted(values, key=nan_last)
    place = Fraction(share) * (len(ordered) - 1)
    low = int(place)
    part = float(place - low)
    if part == 0 or ordered[low] == ordered[low + 1]:
        return float(ordered[low])
    return float(ordered[low]) * (1 - part) + float(ordered[low + 1]) * part


FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": _sum,
    "avg": lambda v: None if not v else float(_sum(v) / len(v)),
    "min": lambda v: min(v, key=nan_last, default=None),
    "max": lambda v: max(v, key=nan_last, default=None),
    "var_samp": lambda v: _variance(v, -1),
    "var_pop": lambda v: _variance(v, 0),
    "stddev_samp": lambda v: _root(_variance(v, -1)),
    "stddev_pop": lambda v: _root(_variance(v, 0)),
    "count_distinct": lambda v: len(_distinct(v)),
    "sum_distinct": lambda v: _sum(_distinct(v)),
    "avg_distinct": lambda v: FOLDS["avg"](_distinct(v)),
    "collect_set": _distinct,
    "median": lambda v: _quantile(v, Fraction(1, 2)),
    "mode": lambda v: _counts(v)[0][0] if v else None,
    # The approximate ones are exact where there are few values; elsewhere a test knows their bounds.
    "approx_count_distinct": lambda v: len(_distinct(v)),
}
FOLDS["var"] = FOLDS["variance"] = FOLDS["var_samp"]
FOLDS["stddev"] = FOLDS["stddev_samp"]
FOLDS["mean"] = FOLDS["avg"]
BY_PROGRESS: dict[str, Callable[[list[Any]], Any]] = {
    "first": lambda v: v[0] if v else None,
    "last": lambda v: v[-1] if v else None,
    "collect_list": lambda v: v,
}
BY_PROGRESS["first_value"], BY_PROGRESS["last_value"] = BY_PROGRESS["first"], BY_PROGRESS["last"]
BY_PROGRESS["array_agg"] = BY_PROGRESS["collect_list"]
WITH_PARAMETER: dict[str, Callable[[list[Any], Any, int], Any]] = {
    "quantile": _quantile,
    "percentile": _quantile,
    "top_k": lambda v, k, _rows: _pairs(_counts(v)[: int(k)]),
    "heavy_hitters": lambda v, p, rows: _pairs([c for c in _counts(v) if c[1] >= Fraction(p) * rows]),
}
WITH_PARAMETER["approx_heavy_hitters"] = WITH_PARAMETER["heavy_hitters"]
