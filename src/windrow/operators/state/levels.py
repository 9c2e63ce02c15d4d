"""Levels: how far single groups are promised beyond everyone else (group-wise punctuation, Li 2.3 and 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from windrow.operators.operator import Side
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched
from windrow.progress import START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK

CLOSED, FROM = "@closed", "@from"


@dataclass(frozen=True)
class Named:
    """The keys that promises about single groups name. ``counted``: whether those about unknown groups are counted."""

    columns: tuple[tuple[str, pl.DataType], ...] = ()
    counted: bool = False

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.columns)

    def __bool__(self) -> bool:
        return bool(self.columns)


NOBODY = Named()


class Levels:
    """A promise about a group is a tuple of values of the columns ``by``; without them there are no such promises.

    They come by the thousand, so they are noted and handled together when the host flushes. What a
    promise about everyone catches up with is forgotten; until then a group that is finished takes one row.

    >>> levels = Levels(Named((("k", pl.String()),)))
    >>> levels.note(Punctuation(7, ("a",)))
    >>> levels.news(3).rows(), levels.of(pl.DataFrame({"k": ["a", "b"]}), 3).to_list()
    ([('a', 3, 7)], [7, 3])
    """

    def __init__(self, named: Named) -> None:
        self.by = dict(named.columns)
        self.counted = named.counted
        self.ahead = Chunks(self._furthest)
        self.pending = Chunks(self._furthest)

    def _furthest(self, frame: Batch) -> Batch:
        return frame.group_by(*self.by).agg(pl.col(CLOSED).max())

    def stores(self) -> dict[str, Chunks]:
        """What must survive a restart."""
        return {"ahead/": self.ahead, "pending/": self.pending} if self.by else {}

    def __bool__(self) -> bool:
        """Whether any group is ahead of the others."""
        return bool(self.ahead.stacks)

    def note(self, promise: Punctuation) -> None:
        """A promise about a group, for the next ``news``."""
        if not self.by:
            return
        assert isinstance(promise.group, tuple)
        row = {**dict(zip(self.by, promise.group, strict=True)), CLOSED: promise.value}
        frame = pl.DataFrame([row], schema={**self.by, CLOSED: pl.Int64()})
        self.pending.append(frame.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))

    def news(self, low: int) -> Batch | None:
        """The groups that have advanced since the last call: from where (everyone is at ``low``) to where."""
        frames = self.pending.below(1)
        if not frames:
            return None
        news = self._furthest(pl.concat(frames))
        self.pending.free_below(1)
        news = news.with_columns(self.of(news.select(*self.by), low).alias(FROM)).filter(pl.col(CLOSED) > pl.col(FROM))
        if not news.height:
            return None
        self.ahead.append(news.select(*self.by, CLOSED).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        return news.select(*self.by, FROM, CLOSED).sort(*self.by)

    def of(self, frame: Batch, low: int) -> pl.Series:
        """The level of the group of each row, at least ``low``."""
        known = self.ahead.below(1)
        if not known:
            return pl.repeat(low, frame.height, dtype=pl.Int64, eager=True)
        ahead = self._furthest(pl.concat(known))
        named, by = frame.select(*self.by), list(self.by)
        levels = matched(named, ahead, by, "left")[CLOSED]
        return levels.fill_null(START).clip(lower_bound=low)

    def unmatched(self, news: Batch, held: Iterable[Batch]) -> list[Side]:
        """A count of the promises about groups of which nothing is held."""
        if not self.counted:
            return []
        known = [frame.select(*self.by) for frame in held]
        unmatched = matched(news, pl.concat(known), list(self.by), "anti") if known else news
        return [Side("unmatched", unmatched.height)] if unmatched.height else []

    def forget(self, low: int) -> None:
        """Forget the groups that a promise of ``low`` about everyone has caught up with."""
        if self.ahead.stacks:
            ahead = self._furthest(pl.concat(self.ahead.below(1)))
            self.ahead.replace(0, ahead.filter(pl.col(CLOSED) > low))

    def promises(self, news: Batch) -> list[Punctuation]:
        """What was promised about each group of ``news``."""
        return [Punctuation(closed, tuple(group)) for *group, closed in news.select(*self.by, CLOSED).rows()]
