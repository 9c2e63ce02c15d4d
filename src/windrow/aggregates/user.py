"""User-defined aggregates: lift, combine and lower in Python, with the type of the state declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.bags import Listed, in_order
from windrow.aggregates.objects import ObjectPart
from windrow.aggregates.parts import Part
from windrow.errors import ResultError


@dataclass(frozen=True)
class UserAggregate:
    """A definition. ``lift`` makes a state of one value, ``combine`` one state of two, ``lower`` a result of a state.

    ``combine`` must be associative and commutative, and change neither of its arguments. ``inverse(a, b)``, if there
    is one, takes b out of a again: windows then slide by one combine and one inverse per pane. Without ``combine``
    states cannot be merged: all are kept, and ``lower`` gets the list of them, in the order of progress.
    """

    name: str
    lift: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any] | None
    lower: Callable[[Any], Any]
    state: pl.DataType
    result: pl.DataType
    inverse: Callable[[Any, Any], Any] | None = None


class Failed(Exception):  # noqa: N818 (an operator turns it into an error that says where)
    """A user's function raised: which aggregate, which step, at which row of a frame."""

    def __init__(self, aggregate: str, step: str, cause: Exception, row: int = 0) -> None:
        self.aggregate = aggregate
        self.step = step
        self.cause = cause
        self.row = row
        self.at: dict[str, Any] = {}  # the group, and the pane or window, where it is known
        super().__init__(f"aggregate {aggregate!r} failed in {step}: {type(cause).__name__}: {cause}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Failed, (self.aggregate, self.step, self.cause, self.row)


@contextmanager
def calling(aggregate: str, step: str, row: int = 0) -> Iterator[None]:
    """Wraps a call of a user's function: whatever it raises becomes a failure that names the aggregate."""
    try:
        yield
    except Exception as error:
        raise Failed(aggregate, step, error, row) from error


@contextmanager
def locating(describe: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[None]:
    """Turns the failure of a user's function into an error that names the aggregate, the group and the window."""
    try:
        yield
    except Failed as failure:
        raise ResultError(f"{failure}, at {describe(failure.at)}") from failure.cause


@dataclass(frozen=True)
class UserPart(ObjectPart):
    """The states of a user's aggregate. Its argument column holds lifted values: operator Lift makes them."""

    arg: str
    user: UserAggregate

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"state:{self.arg}",)

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (self.user.state,)

    def lift(self) -> list[pl.Expr]:
        return [pl.col(self.arg).drop_nulls().alias(self.columns[0])]

    def combine(self) -> list[pl.Expr]:
        return [pl.col(self.columns[0]).drop_nulls()]

    def finish(self, frame: pl.DataFrame, lifted: bool) -> pl.DataFrame:  # noqa: ARG002
        lists = frame[self.columns[0]].to_list()
        states = [self._reduced(each, row) for row, each in enumerate(lists)]
        return frame.with_columns(pl.Series(self.columns[0], states, dtype=self.user.state))

    def _reduced(self, states: list[Any], row: int) -> Any:
        if not states:
            return None
        found = states[0]
        assert self.user.combine is not None
        with calling(self.user.name, "combine", row):
            for state in states[1:]:
                found = self.user.combine(found, state)
        return found

    def pair(self, a: Any, b: Any) -> Any:
        assert self.user.combine is not None
        with calling(self.user.name, "combine"):
            return self.user.combine(a, b)

    @property
    def inverse(self) -> Callable[[Any, Any], Any] | None:
        return self._without if self.user.inverse is not None else None

    def _without(self, a: Any, b: Any) -> Any:
        assert self.user.inverse is not None
        with calling(self.user.name, "inverse"):
            return self.user.inverse(a, b)


@dataclass(frozen=True)
class UserDefined(Aggregate):
    """A user's aggregate in a query."""

    user: UserAggregate | None = None

    function = "user"

    @property
    def _definition(self) -> UserAggregate:
        assert self.user is not None
        return self.user

    @property
    def result(self) -> pl.DataType:
        return self._definition.result

    def parts(self) -> tuple[Part, ...]:
        if self._definition.combine is None:
            return (Listed(self._arg(), self._definition.state),)
        return (UserPart(self._arg(), self._definition),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        if self._definition.combine is None:
            values = [v or None for v in in_order(state[f"list:{self.arg}"]).to_list()]
        else:
            values = state[f"state:{self.arg}"].to_list()
        return pl.Series(self.name, list(self._lowered(values)), dtype=self.result)

    def _lowered(self, values: Sequence[Any]) -> Iterator[Any]:
        for row, value in enumerate(values):
            with calling(self._definition.name, "lower", row):
                found = None if value is None else self._definition.lower(value)
            yield found
