"""Python conditions of joins of several streams: functions of columns, or of whole rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.api.functions import Udf
from windrow.errors import QueryError, listing
from windrow.spec.functions import Function

Columns = Sequence[tuple[str, int, str]]  # a column of the result, the number of its stream, and its name there


class JoinedRow:
    """A row of one stream, as a condition over rows sees it.

    >>> row = JoinedRow({"img": 7, "two words": 8})
    >>> row.img, row["two words"]
    (7, 8)
    >>> row.other
    Traceback (most recent call last):
      ...
    AttributeError: the stream has no column 'other'; available: img, two words
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_values", values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the stream has no column {name!r}; available: {listing(self._values)}") from None

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __repr__(self) -> str:
        return f"JoinedRow({dict(self._values)!r})"


@dataclass(frozen=True)
class OfRows:
    """Calls a function of rows with the values of their columns."""

    call: Callable[..., Any]
    names: tuple[tuple[str, ...], ...]  # of the columns of each row that it takes

    def __call__(self, *values: Any) -> Any:
        given = iter(values)
        return self.call(*(JoinedRow(dict(zip(own, given, strict=False))) for own in self.names))


def condition(given: Udf | Callable[..., Any], columns: Columns, streams: Sequence[str]) -> Function:
    """A ``wr.udf`` as it is; any other function takes one row of each stream, or of those that its parameters name.

    >>> columns = [("t", 0, "t"), ("img", 0, "img"), ("t_b", 1, "t"), ("img_b", 1, "img")]
    >>> near = condition(lambda a, b: abs(a.img - b.img) < 3, columns, ["a", "b"])
    >>> near.columns, near.call(0, 5, 1, 7)
    (('t', 'img', 't_b', 'img_b'), True)
    """
    if isinstance(given, Udf):
        return given.function
    taken = _taken(given, streams)
    own = [[(name, column) for name, of, column in columns if of == number] for number in taken]
    names = tuple(tuple(column for _, column in each) for each in own)
    name = getattr(given, "__qualname__", type(given).__name__).rpartition(".")[2]
    return Function(name, OfRows(given, names), tuple(name for each in own for name, _ in each), pl.Boolean())


def _taken(given: Callable[..., Any], streams: Sequence[str]) -> list[int]:
    """The streams that a function takes a row of."""
    if inspect.iscoroutinefunction(given):
        raise QueryError(f"{given.__qualname__} is a coroutine function: a condition gives its answer at once")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = [p for p in inspect.signature(given).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        raise QueryError(
            f"where={given!r} does not say what it takes: wrap it in a function of rows, or in wr.udf"
        ) from None
    names = [p.name for p in parameters if p.kind in kinds]
    if len(names) == len(parameters) and names and set(names) <= set(streams):
        return [streams.index(name) for name in names]
    if len(names) == len(parameters) == len(streams):
        return [*range(len(streams))]
    raise QueryError(
        f"a condition over rows takes one row of each of {len(streams)} streams, or rows of streams by their names "
        f"({listing(streams)}), and this one takes {listing(p.name for p in parameters) or 'nothing'}"
    )
