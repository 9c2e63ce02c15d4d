"""Parts of Apache DataSketches: small, mergeable, approximate, with known bounds on the error.

A state column holds serialized sketches, so a checkpoint can be read by every implementation of DataSketches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from windrow.aggregates.objects import ObjectPart, objects
from windrow.aggregates.parts import Array

HLL_LG_K = 12  # 4096 registers: relative standard error 1.04 / sqrt(4096) = 1.6 %
KLL_K = 200  # rank error 1.33 % for a single quantile, at 99 % confidence
FREQUENT_LG = 12  # a map of 4096 entries: counts are at most 3.5 / 4096 = 0.085 % of all rows too small


class SketchPart(ObjectPart):
    """One column of sketches of the values of ``arg``."""

    arg: str
    prefix: ClassVar[str]
    sketch: ClassVar[str]  # what DataSketches calls them

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.prefix}:{self.arg}",)

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (pl.Binary(),)

    @abstractmethod
    def new(self, values: list[Any]) -> Any:
        """A sketch of some values."""

    def type(self) -> Any:
        """The class of the sketches; DataSketches is loaded when it is needed."""
        import datasketches

        return getattr(datasketches, self.sketch)

    def read(self, blob: bytes) -> Any:
        """A sketch from its bytes."""
        return self.type().deserialize(blob)

    def write(self, sketch: Any) -> bytes:
        """The bytes of a sketch."""
        return bytes(sketch.serialize())

    def lift(self) -> list[pl.Expr]:
        return [pl.col(self.arg).drop_nulls().alias(self.columns[0])]

    def combine(self) -> list[pl.Expr]:
        return [pl.col(self.columns[0]).drop_nulls()]

    def finish(self, frame: pl.DataFrame, lifted: bool) -> pl.DataFrame:
        lists = frame[self.columns[0]].to_list()
        found = [self._of(each, lifted) for each in lists]
        return frame.with_columns(pl.Series(self.columns[0], found, dtype=pl.Binary()))

    def _of(self, items: list[Any], lifted: bool) -> bytes | None:
        if not items:
            return None
        if lifted:
            return self.write(self.new(items))
        if len(items) == 1:
            return bytes(items[0])
        sketch = self.read(items[0])
        for item in items[1:]:
            sketch = self.pair(sketch, self.read(item))
        return self.write(sketch)

    def arrays(self, frame: pl.DataFrame) -> list[Array]:
        return [objects([None if b is None else self.read(b) for b in frame[self.columns[0]].to_list()])]

    def series(self, arrays: Sequence[Array]) -> list[pl.Series]:
        blobs = [None if s is None else self.write(s) for s in arrays[0]]
        return [pl.Series(self.columns[0], blobs, dtype=pl.Binary())]


@dataclass(frozen=True)
class Hll(SketchPart):
    """HyperLogLog: how many distinct values."""

    arg: str
    prefix = "hll"
    sketch = "hll_sketch"

    def lift(self) -> list[pl.Expr]:
        return [pl.col(self.arg).drop_nulls().unique().alias(self.columns[0])]

    def new(self, values: list[Any]) -> Any:
        sketch = self.type()(HLL_LG_K)
        for value in values:
            # Text with a prefix: the sketch ignores empty text.
            sketch.update(value if isinstance(value, (int, float)) else f"_{value}")
        return sketch

    def write(self, sketch: Any) -> bytes:
        return bytes(sketch.serialize_compact())

    def pair(self, a: Any, b: Any) -> Any:
        from datasketches import hll_union

        union = hll_union(HLL_LG_K)
        union.update(a)
        union.update(b)
        return union.get_result()


@dataclass(frozen=True)
class Kll(SketchPart):
    """KLL: quantiles. NaN is left out: it has no rank."""

    arg: str
    prefix = "kll"
    sketch = "kll_doubles_sketch"

    def lift(self) -> list[pl.Expr]:
        x = pl.col(self.arg).cast(pl.Float64)
        return [x.fill_nan(None).drop_nulls().alias(self.columns[0])]

    def new(self, values: list[Any]) -> Any:
        sketch = self.type()(KLL_K)
        sketch.update(np.asarray(values, np.float64))
        return sketch

    def pair(self, a: Any, b: Any) -> Any:
        merged = self.type()(KLL_K)
        merged.merge(a)
        merged.merge(b)
        return merged


@dataclass(frozen=True)
class Frequent(SketchPart):
    """Misra-Gries as in DataSketches: the frequent values, as text, and about how often each occurs."""

    arg: str
    prefix = "frequent"
    sketch = "frequent_strings_sketch"

    def lift(self) -> list[pl.Expr]:
        return [pl.col(self.arg).drop_nulls().cast(pl.String).alias(self.columns[0])]

    def new(self, values: list[Any]) -> Any:
        sketch = self.type()(FREQUENT_LG)
        for value, count in sorted(Counter(values).items()):
            sketch.update(value, count)
        return sketch

    def pair(self, a: Any, b: Any) -> Any:
        merged = self.read(self.write(a))
        merged.merge(b)
        return merged
