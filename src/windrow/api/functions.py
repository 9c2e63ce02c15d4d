"""Aggregates for the Python API: ``wr.count()``, ``wr.max("len")``, with any SQL expression as argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from windrow.aggregates import FUNCTIONS, UserAggregate
from windrow.aggregates.aggregate import Parameter
from windrow.api import given
from windrow.errors import QueryError, listing
from windrow.logical.expressions import sql_type
from windrow.spec.functions import Function


@dataclass(frozen=True)
class AggregateExpr:
    """An aggregate that has no name yet; ``agg(name=...)`` gives it one."""

    function: str
    argument: str | None = None
    parameters: tuple[Parameter, ...] = ()
    user: UserAggregate | None = None
    condition: str | None = None

    def filter(self, condition: str) -> AggregateExpr:
        """Over the rows for which a SQL condition is true: ``FILTER (WHERE ..)``.

        >>> count().filter("len > 1000")
        AggregateExpr(function='count', argument=None, parameters=(), user=None, condition='len > 1000')
        """
        both = condition if self.condition is None else f"({self.condition}) AND ({condition})"
        return replace(self, condition=both)


def number(value: float | str | Fraction) -> Parameter:
    """A parameter, exactly as the decimal that was written.

    >>> number(0.05), number(10)
    (Fraction(1, 20), 10)
    """
    try:
        exact = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise QueryError(f"{value!r} is not a number") from None
    if abs(exact) >= 2**63:
        raise QueryError(f"{value} is beyond 64 bits")
    return int(exact) if exact.denominator == 1 else exact


def count(argument: str | None = None) -> AggregateExpr:
    """``count(*)``, or the number of non-NULL values of an expression."""
    return AggregateExpr("count", argument)


def count_distinct(argument: str) -> AggregateExpr:
    """The number of distinct values."""
    return AggregateExpr("count_distinct", argument)


def sum(argument: str) -> AggregateExpr:
    """The sum: exact for integers and decimals."""
    return AggregateExpr("sum", argument)


def avg(argument: str) -> AggregateExpr:
    """The mean, as a double."""
    return AggregateExpr("avg", argument)


def min(argument: str) -> AggregateExpr:
    """The smallest value."""
    return AggregateExpr("min", argument)


def max(argument: str) -> AggregateExpr:
    """The largest value."""
    return AggregateExpr("max", argument)


def var(argument: str) -> AggregateExpr:
    """The sample variance."""
    return AggregateExpr("var_samp", argument)


def var_pop(argument: str) -> AggregateExpr:
    """The population variance."""
    return AggregateExpr("var_pop", argument)


def stddev(argument: str) -> AggregateExpr:
    """The sample standard deviation."""
    return AggregateExpr("stddev_samp", argument)


def stddev_pop(argument: str) -> AggregateExpr:
    """The population standard deviation."""
    return AggregateExpr("stddev_pop", argument)


def first(argument: str) -> AggregateExpr:
    """The value of the row with the smallest progress value."""
    return AggregateExpr("first", argument)


def last(argument: str) -> AggregateExpr:
    """The value of the row with the largest progress value."""
    return AggregateExpr("last", argument)


def collect_list(argument: str) -> AggregateExpr:
    """All values, in the order of progress."""
    return AggregateExpr("collect_list", argument)


def collect_set(argument: str) -> AggregateExpr:
    """The distinct values, sorted."""
    return AggregateExpr("collect_set", argument)


def median(argument: str) -> AggregateExpr:
    """The exact median."""
    return AggregateExpr("median", argument)


def quantile(argument: str, share: float) -> AggregateExpr:
    """An exact quantile: ``quantile("len", 0.9)``."""
    return AggregateExpr("quantile", argument, (number(share),))


def mode(argument: str) -> AggregateExpr:
    """The most frequent value."""
    return AggregateExpr("mode", argument)


def top_k(argument: str, k: int) -> AggregateExpr:
    """The k most frequent values with their counts."""
    return AggregateExpr("top_k", argument, (number(k),))


def heavy_hitters(argument: str, share: float) -> AggregateExpr:
    """The values that at least this share of all rows have, with exact counts."""
    return AggregateExpr("heavy_hitters", argument, (number(share),))


def approx_count_distinct(argument: str) -> AggregateExpr:
    """The approximate number of distinct values (HyperLogLog)."""
    return AggregateExpr("approx_count_distinct", argument)


def approx_quantile(argument: str, share: float) -> AggregateExpr:
    """An approximate quantile (KLL)."""
    return AggregateExpr("approx_quantile", argument, (number(share),))


def approx_heavy_hitters(argument: str, share: float) -> AggregateExpr:
    """The values that about this share of all rows have (frequent items sketch)."""
    return AggregateExpr("approx_heavy_hitters", argument, (number(share),))


@dataclass(frozen=True)
class UserFunction:
    """A user-defined aggregate, to be called with an argument or passed to ``wr.sql``."""

    definition: UserAggregate

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, argument: str) -> AggregateExpr:
        return AggregateExpr(self.name, argument, user=self.definition)


def aggregate(
    name: str,
    lift: Callable[[Any], Any],
    combine: Callable[[Any, Any], Any] | None,
    lower: Callable[[Any], Any],
    *,
    state: str,
    result: str,
    inverse: Callable[[Any, Any], Any] | None = None,
) -> UserFunction:
    """A user-defined aggregate: ``lift`` a value to a state, ``combine`` two states, ``lower`` a state to a result.

    ``state`` and ``result`` are SQL types; checkpoints keep states as values of that type (structs are dicts, arrays
    are lists). ``combine`` must be associative and commutative and must not change its arguments. NULLs are
    skipped. ``inverse(a, b)``, if given, takes b out of a. ``combine=None``: states cannot be merged; then rows are
    kept until their windows close, and ``lower`` gets the list of states, in the order of progress.

    >>> product = aggregate("product", float, lambda a, b: a * b, float, state="DOUBLE", result="DOUBLE")
    >>> product("x").function
    'product'
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise QueryError(f"the name of an aggregate must be a word, not {name!r}")
    if name.lower() in FUNCTIONS:
        raise QueryError(f"the aggregate {name!r} is built in; taken: {listing(FUNCTIONS)}")
    parts: dict[str, Any] = {"lift": lift, "lower": lower, "combine": combine, "inverse": inverse}
    for what, part in parts.items():
        if part is not None or what in ("lift", "lower"):
            given.function(part, what)
    if combine is None and inverse is not None:
        raise QueryError(f"the aggregate {name!r} has an inverse but no combine: give both or neither")
    definition = UserAggregate(name.lower(), lift, combine, lower, sql_type(state), sql_type(result), inverse)
    return UserFunction(definition)


@dataclass(frozen=True)
class Udf:
    """A Python function of columns, for ``Stream.apply`` and ``Stream.where``."""

    function: Function


def udf(call: Callable[..., Any], returns: str, *columns: str, vectorized: bool = False, monotone: bool = False) -> Udf:
    """A Python function of some columns that returns a value of a SQL type.

    It is called with the values of each row, or, ``vectorized``, with Polars series of many rows at once, and returns a
    series (or array) of the same length. A row for which it raises is a bad row, with the reason. ``monotone``: it
    never decreases as its argument grows; then it can replace the progressing column.

    >>> udf(len, "BIGINT", "name").function.name
    'len'
    """
    given.function(call, "call")
    columns = tuple(given.text(c, "column") for c in columns)
    if not columns:
        raise QueryError("wr.udf needs the columns that the function takes: wr.udf(f, 'DOUBLE', 'x', 'y')")
    if monotone and len(columns) != 1:
        raise QueryError(f"a monotone function takes one column, not {len(columns)}")
    name = getattr(call, "__qualname__", type(call).__name__)
    return Udf(Function(name, call, columns, sql_type(returns), vectorized, monotone))
