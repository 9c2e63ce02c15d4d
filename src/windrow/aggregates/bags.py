"""Parts that keep the values themselves: the distinct values with their counts, or all of them in order."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from windrow.aggregates.parts import AT, INT64, Part


@dataclass(frozen=True)
class Bag(Part):
    """The distinct values of a column, each with the number of its rows: what every holistic aggregate can use.

    This is the pane hash table of Li 6.2.4: counts add up over panes, but there are as many as distinct values.
    """

    arg: str
    dtype: pl.DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"values:{self.arg}", f"counts:{self.arg}")

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (pl.List(self.dtype), pl.List(INT64))

    def lift(self) -> list[pl.Expr]:
        values = pl.col(self.arg).drop_nulls()
        if self.dtype.is_float():
            values = pl.when(values == 0).then(pl.lit(0.0, self.dtype)).otherwise(values)  # of the two zeros this one
        ones = values.is_null().cast(INT64) + 1
        return [values.alias(self.columns[0]), ones.alias(self.columns[1])]

    def combine(self) -> list[pl.Expr]:
        return [pl.col(c).explode().drop_nulls() for c in self.columns]

    def finish(self, frame: pl.DataFrame, lifted: bool) -> pl.DataFrame:  # noqa: ARG002
        """Merge entries with equal values."""
        values, counts = self.columns
        numbered = frame.with_row_index("@i")
        entries = numbered.select("@i", values, counts).explode(values, counts).filter(pl.col(counts).is_not_null())
        merged = entries.group_by("@i", values).agg(pl.col(counts).sum())
        listed = merged.group_by("@i").agg(values, counts)
        empty = [pl.col(c).fill_null(pl.lit([], t)) for c, t in zip(self.columns, self.dtypes, strict=True)]
        joined = numbered.drop(values, counts).join(listed, on="@i", how="left", maintain_order="left")
        return joined.with_columns(empty).select(frame.columns)


@dataclass(frozen=True)
class Listed(Part):
    """All values that are not NULL, each with its progress value, so that they can be sorted."""

    arg: str
    dtype: pl.DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"list:{self.arg}",)

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (pl.List(pl.Struct({"t": INT64, "v": self.dtype})),)

    def lift(self) -> list[pl.Expr]:
        entry = pl.struct(pl.col(AT).alias("t"), pl.col(self.arg).alias("v"))
        return [entry.filter(pl.col(self.arg).is_not_null()).alias(self.columns[0])]

    def combine(self) -> list[pl.Expr]:
        return [pl.col(self.columns[0]).explode().drop_nulls()]


def in_order(lists: pl.Series) -> pl.Series:
    """The values of the lists of a Listed, sorted by progress, then by value: the same in every order of arrival."""
    numbered = lists.to_frame("e").with_row_index("@i")
    entries = numbered.explode("e").filter(pl.col("e").is_not_null()).unnest("e").sort("t", "v")
    found = entries.group_by("@i", maintain_order=True).agg(pl.col("v").alias("r"))
    return numbered.select("@i").join(found, on="@i", how="left", maintain_order="left")["r"]
