"""Admit: what enters a query. Markers become promises, rows without a readable progress value leave by the side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from windrow.operators.operator import Item, Side, Stateless
from windrow.progress import Punctuation
from windrow.spec.ahead import Ahead
from windrow.spec.batches import Batch, with_series
from windrow.spec.names import FUTURE, MARK, PROGRESS, REASON
from windrow.spec.time import iso_timestamp, out_of_range, parsed, physical, reach, within

NULL = "the {} is NULL"
NULL_PROGRESS = NULL.format("progress value")
UNPARSABLE = "the progress value cannot be parsed"
VAGUE = "the marker names only a part of a group"
UNREADABLE = "the marker cannot be read as a value of type {}"
ABOUT = "the marker is about {} of type {}, and it is of type {}"


def marker_value(marker: str, kind: pl.DataType, dtype: pl.DataType) -> pl.Expr:
    """A column of markers as integers of a progressing attribute; NULL where one does not fit it.

    A source declares markers of the attribute's type, but pushed rows can have another type.
    """
    column = pl.col(marker)
    if kind == pl.String:
        if isinstance(dtype, pl.Datetime):
            return physical(iso_timestamp(column), pl.Datetime("us", "UTC"))
        if dtype == pl.Date:
            return physical(column.str.to_date("%Y-%m-%d", strict=False), dtype)
        return column.cast(pl.Int64, strict=False)
    if not _alike(kind, dtype):
        return pl.when(column.is_null()).then(pl.lit(0, pl.Int64))  # no marker is NULL: this is a column of NULLs
    return physical(column.cast(dtype, strict=False), dtype)


def _all_good(values: pl.Series, most: int) -> bool:
    """Whether all progress values can be worked with; most batches are like that, and it is seen at once."""
    if values.null_count() or not len(values):
        return False
    return bool(-most < int(values.min()) and int(values.max()) < most)  # type: ignore[arg-type]


def _alike(kind: pl.DataType, dtype: pl.DataType) -> bool:
    """Whether values of one type can be read as values of the other."""
    integers = kind.is_integer() and dtype.is_integer()
    return kind in (dtype, pl.Null()) or integers or (isinstance(kind, pl.Datetime) and isinstance(dtype, pl.Datetime))


def foreign(column: str, value: Any, dtype: pl.DataType) -> str:
    """Why a marker with a value of another type is bad."""
    return ABOUT.format(column, pl.Series([value], strict=False).dtype, dtype)


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
        marker_types: Sequence[pl.DataType] = (),
        called: str = "progress value",
    ) -> None:
        self.progress = progress
        self.dtype = dtype
        self.most = reach(dtype)[0]
        self.parse = parse
        self.marker = marker
        self.needs = tuple(needs)  # further columns that must not be NULL
        self.marker_by = tuple(marker_by)  # the columns whose values say which group a marker is about
        self.marker_types = tuple(marker_types)  # of these columns
        self.skew = skew  # how much older than a marker rows after it can be
        self.ahead = ahead
        self.called = called  # what the reasons of bad rows call it: windows over rows progress on row numbers

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        promises: list[Item] = []
        if self.marker is not None:
            # Markers are about what follows them, and what follows the whole batch comes later still.
            markers = batch.filter(pl.col(self.marker).is_not_null())
            promises = self._marked(markers) if markers.height else []
            batch = batch.filter(pl.col(self.marker).is_null()).drop(self.marker)
        read = batch if self.parse is None else batch.with_columns(self._parsed().alias(self.progress))
        read = with_series(read, physical(read[self.progress], self.dtype).alias(PROGRESS))
        if self.ahead is None and not self.needs and _all_good(read[PROGRESS], self.most):
            return [read, *promises]
        good = read.select(within(pl.col(PROGRESS), self.dtype)).to_series()
        missing = ~good.fill_null(False)
        if self.ahead is not None:
            future = read.select(self.ahead.exceeded().alias(FUTURE)).to_series()
            missing, batch = missing | future, batch.with_columns(future)
        for column in self.needs:
            missing = missing | read[column].is_null()
        if not missing.any():
            return [read, *promises]
        why: Any = pl.when(pl.col(self.progress).is_null()).then(pl.lit(NULL.format(self.called)))
        if self.parse is not None:
            why = why.when(self._parsed().is_null()).then(pl.lit(UNPARSABLE))
        why = why.when(~good.fill_null(False)).then(pl.lit(out_of_range(self.called, self.dtype)))
        if self.ahead is not None:
            why = why.when(FUTURE).then(self.ahead.reason())
        for column in self.needs:
            why = why.when(pl.col(column).is_null()).then(pl.lit(NULL.format(f"row number {column}")))
        why = why.otherwise(pl.lit(None, pl.String))
        bad = batch.with_columns(why.alias(REASON)).filter(missing).drop(FUTURE, strict=False)
        return [read.filter(~missing), Side("bad", bad.height, bad), *promises]

    def _marked(self, markers: Batch) -> list[Item]:
        """The promises of markers, and a count of those that are bad or weaker than an earlier one."""
        assert self.marker is not None
        at = markers.select(marker_value(self.marker, markers.schema[self.marker], self.dtype)).to_series()
        fits = markers.select(within(pl.lit(at), self.dtype)).to_series()
        why = markers.select(self._unfit(markers.schema, at.is_null(), ~fits.fill_null(True))).to_series()
        items: list[Item] = []
        if why.is_not_null().any():
            bad = markers.with_columns(why.alias(REASON)).filter(why.is_not_null())
            items.append(Side("bad", bad.height, bad))
        read = markers.select(*self.marker_by, at.alias(MARK) - self.skew).filter(why.is_null())
        back = read.select(self._backwards()).to_series()
        if back.any():
            items.append(Side("ignored", int(back.sum())))
        return [*items, *self._promises(read.filter(~back))]

    def _unfit(self, schema: pl.Schema, unreadable: pl.Series, far: pl.Series) -> pl.Expr:
        """Why a marker is bad, or NULL."""
        why: Any = pl.when(unreadable).then(pl.lit(UNREADABLE.format(self.dtype)))
        why = why.when(far).then(pl.lit(out_of_range("marker", self.dtype)))
        named = [pl.col(c).is_not_null() for c in self.marker_by]
        for column, dtype in zip(self.marker_by, self.marker_types, strict=False):
            if not _alike(schema[column], dtype):
                foreign_type = pl.lit(ABOUT.format(column, schema[column], dtype))
                why = why.when(pl.col(column).is_not_null()).then(foreign_type)
        if len(named) > 1:  # it is not clear which group it is about
            why = why.when(pl.any_horizontal(named) & ~pl.all_horizontal(named)).then(pl.lit(VAGUE))
        return why.otherwise(pl.lit(None, pl.String)).alias(REASON)  # type: ignore[no-any-return]

    def _named(self) -> pl.Expr:
        """Whether a marker is about one group. NULL names everyone."""
        return pl.all_horizontal(pl.col(c).is_not_null() for c in self.marker_by) if self.marker_by else pl.lit(False)

    def _backwards(self) -> pl.Expr:
        """Whether a marker is weaker than an earlier one in the batch, about its group or about everyone."""
        before = pl.col(MARK).cum_max().shift(1)
        if not self.marker_by:
            return (pl.col(MARK) < before).fill_null(False)
        everyone = pl.when(~self._named()).then(pl.col(MARK)).cum_max().forward_fill().shift(1)
        return (pl.col(MARK) < pl.max_horizontal(before.over(self.marker_by), everyone)).fill_null(False)

    def _promises(self, marks: Batch) -> list[Item]:
        """One promise for each group that markers name, and one for everyone, each with all that it sums up.

        Groups come first: a promise about everyone may be later than the ones about them.
        """
        found: list[Item] = []
        if self.marker_by:
            groups = marks.filter(self._named()).group_by(*self.marker_by, maintain_order=True).agg(MARK)
            found += [Punctuation(values[-1], tuple(group), tuple(values)) for *group, values in groups.rows()]
        if values := marks.filter(~self._named())[MARK].to_list():
            found.append(Punctuation(values[-1], None, tuple(values)))
        return found

    def _parsed(self) -> pl.Expr:
        return parsed(pl.col(self.progress), self.parse)


class Unmarked(Stateless):
    """Drops the markers of a stream whose windows are over row numbers: their promises mean nothing there.

    >>> rows, side = Unmarked("m").on_batch(0, pl.DataFrame({"t": [1, None], "m": [None, 5]}))
    >>> rows.rows(), side.kind, side.count
    ([(1,)], 'ignored', 1)
    """

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        rows = batch.filter(pl.col(self.marker).is_null()).drop(self.marker)
        markers = batch.height - rows.height
        return [rows, Side("ignored", markers)] if markers else [rows]
