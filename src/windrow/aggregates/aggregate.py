"""What an aggregate is: lift / combine / lower over shared parts. What algorithms may assume, the parts declare."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import polars as pl

from windrow.aggregates.parts import Part

Parameter = int | Fraction


@dataclass(frozen=True)
class Aggregate(ABC):
    """One aggregate of a query: ``name`` is its output column, ``arg`` an input column of type ``dtype``."""

    name: str
    arg: str | None
    dtype: pl.DataType
    parameters: tuple[Parameter, ...] = ()

    function: ClassVar[str]
    returns: ClassVar[pl.DataType] = pl.Float64()
    takes: ClassVar[str] = "a number"
    wants: ClassVar[str] = ""  # what parameters it takes after its argument, in words

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        """Whether the argument may have this type."""
        return dtype.is_numeric()

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        """Whether these parameters make sense."""
        return not parameters

    @property
    def result(self) -> pl.DataType:
        """The type of the output column; of most aggregates always the same, ``returns``."""
        return self.returns

    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The state this aggregate needs."""

    @abstractmethod
    def lower(self, state: pl.DataFrame) -> pl.Series:
        """The results from a frame that has (at least) the state columns of ``parts``."""

    def _arg(self) -> str:
        assert self.arg is not None
        return self.arg

    def _column(self, state: pl.DataFrame, expr: pl.Expr) -> pl.Series:
        return state.select(expr.cast(self.result).alias(self.name)).to_series()

    def _null_if_empty(self, expr: pl.Expr) -> pl.Expr:
        return pl.when(pl.col(f"n:{self.arg}") > 0).then(expr)


class OfAnything(Aggregate):
    """Takes whatever can be a group key."""

    takes = "any column that can be a group key"

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return not isinstance(dtype, (pl.Object, pl.Struct))


class AtShare(Aggregate):
    """Of numbers, with a share from 0 to 1 as its parameter."""

    takes = "a number"

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_numeric()

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return is_share(parameters)


def is_share(parameters: tuple[Parameter, ...]) -> bool:
    """One parameter from 0 to 1."""
    return len(parameters) == 1 and 0 <= parameters[0] <= 1


def no_nulls(lists: pl.Series) -> pl.Series:
    """Empty lists instead of NULL."""
    return lists.to_frame().select(pl.all().fill_null(pl.lit([], lists.dtype))).to_series()
