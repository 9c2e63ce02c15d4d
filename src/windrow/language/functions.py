"""Aggregates for the Python API: ``wr.count()``, ``wr.max("len")``, with any SQL expression as argument."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AggregateExpr:
    """An aggregate that has no name yet; ``agg(name=...)`` gives it one."""

    function: str
    argument: str | None = None


def count(argument: str | None = None) -> AggregateExpr:
    """``count(*)``, or the number of non-NULL values of an expression."""
    return AggregateExpr("count", argument)


def sum(argument: str) -> AggregateExpr:
    """The sum: exact for integers."""
    return AggregateExpr("sum", argument)


def avg(argument: str) -> AggregateExpr:
    """The mean, as a double."""
    return AggregateExpr("avg", argument)


def min(argument: str) -> AggregateExpr:
    """The least value."""
    return AggregateExpr("min", argument)


def max(argument: str) -> AggregateExpr:
    """The greatest value."""
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
