"""Admit: what enters a query. Markers become promises, rows without a readable progress value leave by the side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.operators.operator import PROGRESS, Batch, Item, Side, Stateless
from windrow.progress import Punctuation

REASON = "reason"
NULL_PROGRESS = "the progress value is NULL"
ISO_ZONED = ("%+", "%Y-%m-%dT%H:%M:%S%.f%z")
ISO_BARE = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
UNPARSABLE = "the progress value cannot be parsed"
FUTURE = "@future"
VAGUE = "the marker names only a part of a group"


def physical(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """A progress value as an integer: microseconds since 1970, days since 1970, or itself.

    Finer timestamps are floored to microseconds, which no window edge can tell apart.
    """
    if isinstance(dtype, pl.Datetime):
        return column.dt.cast_time_unit("us").to_physical().cast(pl.Int64)
    return column.to_physical().cast(pl.Int64, strict=False)


def iso_timestamp(text: pl.Expr) -> pl.Expr:
    """Each text by itself as an instant in UTC, or NULL. A zone is optional; without one the text is UTC.

    Polars would guess one format from the first value, and call every other format unreadable.

    >>> texts = pl.DataFrame({"s": ["2024-01-01T10:00:00+02:00", "2024-01-01 08:00:00.5", "2024-01-01", "soon"]})
    >>> texts.select(iso_timestamp(pl.col("s")).dt.strftime("%d %H:%M:%S%.3f"))["s"].to_list()
    ['01 08:00:00.000', '01 08:00:00.500', '01 00:00:00.000', None]
    """
    joined = text.str.strip_chars().str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    zoned = [joined.str.to_datetime(f, time_unit="us", time_zone="UTC", strict=False) for f in ISO_ZONED]
    bare = [joined.str.to_datetime(f, time_unit="us", strict=False).dt.replace_time_zone("UTC") for f in ISO_BARE]
    day = joined.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.coalesce(*zoned, *bare, day)


@dataclass(frozen=True)
class Ahead:
    """How far a progress value can be ahead of when its row arrived: what is further ahead is a clock gone wrong.

    One such row would promise that nothing before it follows, and make all others late.
    """

    arrival: str
    most: int
    dtype: pl.DataType
    says: str  # the bound in words

    def exceeded(self) -> pl.Expr:
        """Whether a row is too far ahead. One without an arrival could be: to let it in would close everything."""
        ahead = pl.col(PROGRESS) - physical(pl.col(self.arrival), self.dtype) > self.most
        return (ahead | pl.col(self.arrival).is_null()).fill_null(False)

    def reason(self) -> pl.Expr:
        """Why such a row is bad."""
        unknown = pl.lit(f"the arrival {self.arrival} is NULL, so the progress value cannot be trusted")
        known = pl.lit(f"the progress value is more than {self.says} ahead of {self.arrival}")
        return pl.when(pl.col(self.arrival).is_null()).then(unknown).otherwise(known)


class Admit(Stateless):
    """Adds the column ``@t``. ``parse`` is how a text progress value is read: "iso8601" or a strptime format.

    >>> items = Admit("t", pl.Int64()).on_batch(0, pl.DataFrame({"t": [3, None]}))
    >>> items[0].rows(), items[1].count, items[1].rows["reason"].to_list()
    ([(3, 3)], 1, ['the progress value is NULL'])
    """

    def __init__(
        self,
        progress: str,
        dtype: pl.DataType,
        parse: str | None = None,
        marker: str | None = None,
        needs: Sequence[str] = (),
        marker_by: Sequence[str] = (),
        skew: int = 0,
        ahead: Ahead | None = None,
    ) -> None:
        self.progress = progress
        self.dtype = dtype
        self.parse = parse
        self.marker = marker
        self.needs = tuple(needs)  # further columns without which a row cannot take part
        self.marker_by = tuple(marker_by)  # the columns whose values say which group a marker is about
        self.skew = skew  # how much older than a marker rows after it can be
        self.ahead = ahead

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        promises: list[Item] = []
        if self.marker is not None:
            # Markers speak of what comes after them; after the whole batch is later still, so it is true as well.
            markers = batch.filter(pl.col(self.marker).is_not_null())
            vague = markers.filter(self._vague())
            promises = self._promises(markers.filter(~self._vague()))
            if vague.height:
                promises.insert(0, Side("bad", vague.height, vague.with_columns(pl.lit(VAGUE).alias(REASON))))
            batch = batch.filter(pl.col(self.marker).is_null()).drop(self.marker)
        read = batch.with_columns(self._parsed().alias(self.progress))
        read = read.with_columns(physical(pl.col(self.progress), self.dtype).alias(PROGRESS))
        missing = read[PROGRESS].is_null()
        if self.ahead is not None:
            future = read.select(self.ahead.exceeded().alias(FUTURE)).to_series()
            missing, batch = missing | future, batch.with_columns(future)
        for column in self.needs:
            missing = missing | read[column].is_null()
        if not missing.any():
            return [read, *promises]
        why: Any = pl.when(pl.col(self.progress).is_null()).then(pl.lit(NULL_PROGRESS))
        if self.ahead is not None:
            why = why.when(FUTURE).then(self.ahead.reason())
        if self.parse is not None:
            why = why.when(self._parsed().is_null()).then(pl.lit(UNPARSABLE))
        for column in self.needs:
            why = why.when(pl.col(column).is_null()).then(pl.lit(f"the row number {column} is NULL"))
        why = why.otherwise(pl.lit(UNPARSABLE))
        bad = batch.filter(missing).with_columns(why.alias(REASON)).drop(FUTURE, strict=False)
        return [read.filter(~missing), Side("bad", bad.height, bad), *promises]

    def _vague(self) -> pl.Expr:
        """Markers that name a part of a group: what they promise about whom is not clear."""
        if len(self.marker_by) < 2:
            return pl.lit(False)
        named = [pl.col(c).is_not_null() for c in self.marker_by]
        return pl.any_horizontal(named) & ~pl.all_horizontal(named)

    def _promises(self, markers: Batch) -> list[Item]:
        """One promise for everyone, and one for each group that markers name. NULL names everyone."""
        assert self.marker is not None
        at = (
            physical(pl.col(self.marker).cast(self.dtype), self.dtype) - self.skew
        )  # without any marker it may have no type
        named = pl.all_horizontal(pl.col(c).is_not_null() for c in self.marker_by) if self.marker_by else pl.lit(False)
        marks = markers.filter(~named).select(at.max()).item()
        found: list[Item] = [Punctuation(marks)] if marks is not None else []
        if self.marker_by:
            groups = markers.filter(named).group_by(*self.marker_by, maintain_order=True).agg(at.max())
            found += [Punctuation(mark, tuple(group)) for *group, mark in groups.rows()]
        return found

    def _parsed(self) -> pl.Expr:
        column = pl.col(self.progress)
        if self.parse is None:
            return column
        if self.parse == "iso8601":
            return iso_timestamp(column)
        parsed = column.str.to_datetime(self.parse, time_unit="us", strict=False)
        return parsed.dt.convert_time_zone("UTC") if "%z" in self.parse else parsed.dt.replace_time_zone("UTC")


class Unmarked(Stateless):
    """Leaves out the markers of a stream, where nobody needs what they promise.

    >>> Unmarked("m").on_batch(0, pl.DataFrame({"t": [1, None], "m": [None, 5]}))[0].rows()
    [(1,)]
    """

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch.filter(pl.col(self.marker).is_null()).drop(self.marker)]
