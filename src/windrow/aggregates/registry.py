"""All aggregates by name."""

from __future__ import annotations

import polars as pl

from windrow.aggregates.aggregate import Aggregate, Parameter
from windrow.aggregates.approximate import APPROXIMATE
from windrow.aggregates.bagged import DISTINCT
from windrow.aggregates.frequent import FREQUENT
from windrow.aggregates.functions import NUMERIC, Count
from windrow.aggregates.ordered import ORDERED
from windrow.aggregates.user import UserAggregate, UserDefined
from windrow.errors import QueryError, listing

FUNCTIONS: dict[str, type[Aggregate]] = {**NUMERIC, **DISTINCT, **ORDERED, **FREQUENT, **APPROXIMATE}


def make(
    function: str,
    name: str,
    arg: str | None,
    dtype: pl.DataType,
    parameters: tuple[Parameter, ...] = (),
    user: UserAggregate | None = None,
) -> Aggregate:
    """The aggregate by its SQL name; raises QueryError for an unknown function or an argument it cannot take."""
    if user is not None:
        if arg is None:
            raise QueryError(f"{function} needs an argument: {function}(column)")
        return UserDefined(name, arg, dtype, (), user)
    if function not in FUNCTIONS:
        raise QueryError(f"unknown aggregate {function!r}; available: {listing(FUNCTIONS)}")
    cls = FUNCTIONS[function]
    if arg is None and cls is not Count:
        raise QueryError(f"{function} needs an argument: {function}(column)")
    if arg is not None and not cls.accepts(dtype):
        raise QueryError(f"{function}() needs {cls.takes}, but its argument is of type {dtype}")
    if not cls.check(parameters):
        wants = f"needs {cls.wants}" if cls.wants else "takes one argument only"
        raise QueryError(f"{function}() {wants}")
    return cls(name, arg, dtype, parameters)
