"""GroupPaned: Paned that also closes the windows of single groups, as promises about them allow (Li 2.3, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from windrow.aggregates import Partials
from windrow.operators.chunks import CHUNK, Chunks
from windrow.operators.keyed import matched
from windrow.operators.operator import PANE, WID, Batch, Item
from windrow.operators.options import PLAIN, Options
from windrow.operators.paned import Paned
from windrow.operators.released import LIMIT, clipped
from windrow.progress import END, START, Punctuation
from windrow.windows import Sliding

CLOSED, FROM = "@closed", "@from"


class GroupPaned(Paned):
    """A promise about a group is a tuple of values of the columns ``by``, which are among the keys.

    Such promises come by the thousand, so they are noted and acted on together when the host has given all it has.
    ``told`` remembers how far each group is released beyond all others: what a promise about everyone catches up with
    is forgotten. Partials of released windows are dropped when they are most of the state, so that a stream on which
    groups end one by one needs no promise about everyone to stay small.
    """

    def __init__(
        self,
        window: Sliding,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
        by: Mapping[str, pl.DataType] | None = None,
    ) -> None:
        self.by = dict(by or {})
        super().__init__(window, keys, aggregates, dtype, options)

    def lay_out(self) -> None:
        super().lay_out()
        self.told = Chunks(self._furthest)
        self.pending = Chunks(self._furthest)
        self.stores |= {"told/": self.told, "pending/": self.pending}
        self.remember(dead=0)

    def _furthest(self, frame: Batch) -> Batch:
        return frame.group_by(*self.by).agg(pl.col(CLOSED).max())

    def _all_told(self) -> Batch | None:
        frames = self.told.below(1)
        return self._furthest(pl.concat(frames)) if frames else None

    # -- rows ----------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        told = self._all_told()
        if told is None:
            return super().on_batch(port, batch)
        known = matched(batch, told, list(self.by), "left")
        limit = self._closed() * self.step
        late = (pl.col(PANE) < limit) & (pl.col(PANE) >= clipped(self.closed * self.step))
        missed = known.filter(late)
        if not missed.height:
            return super().on_batch(port, batch)
        keep = ~late | (pl.col(PANE) >= limit + self.step - self.length) if self.options.generous else ~late
        rest = known.filter(keep.fill_null(True)).drop(CLOSED)
        pane, last = missed[PANE].to_numpy(), (missed[PANE].to_numpy() + self.length) // self.step
        if self.options.generous:
            last = last.clip(max=missed[CLOSED].to_numpy())
        return [*self.late_in(missed.drop(CLOSED), pane // self.step, last), *super().on_batch(port, rest)]

    # -- promises ------------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None:
            assert isinstance(promise.group, tuple)
            row = {**dict(zip(self.by, promise.group, strict=True)), CLOSED: promise.value}
            self.pending.append(self._promised([row]))
            return []
        items = super().on_punctuation(port, promise)
        told = self._all_told()
        if told is not None:
            self.told.replace(0, told.filter(pl.col(CLOSED) > self.closed))
        return items

    def _promised(self, rows: Sequence[Mapping[str, object]]) -> Batch:
        frame = pl.DataFrame(rows, schema={**self.by, CLOSED: pl.Int64()})
        return frame.with_columns(pl.lit(0, pl.Int64).alias(CHUNK))

    def _released(self, states: Batch) -> list[Item]:
        told = self._all_told()
        if told is not None:  # what a group's own promise has released is out
            known = matched(states, told, list(self.by), "left")
            states = known.filter(pl.col(WID) >= pl.col(CLOSED).fill_null(START)).drop(CLOSED)
        return super()._released(states)

    def on_flush(self) -> list[Item]:
        frames = self.pending.below(1)
        if not frames:
            return super().on_flush()
        news = self._furthest(pl.concat(frames))
        self.pending.free_below(1)
        told = self._all_told()
        before = pl.lit(None, pl.Int64).alias(FROM)
        news = news.with_columns(before) if told is None else self._with_before(news, told)
        news = news.with_columns(pl.col(FROM).fill_null(START).clip(lower_bound=self.closed))
        news = news.filter(pl.col(CLOSED) > pl.col(FROM))
        items = self._of_groups(news) if news.height else []
        if news.height:
            self.told.append(news.select(*self.by, CLOSED).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
            self._drop_dead()
        return [*items, *super().on_flush()]

    def _with_before(self, news: Batch, told: Batch) -> Batch:
        return matched(news, told.rename({CLOSED: FROM}), list(self.by), "left")

    def _of_groups(self, news: Batch) -> list[Item]:
        """The windows of some groups from where each stood to where it is now."""
        first, last = int(news[FROM].min()), int(news[CLOSED].max())  # type: ignore[arg-type]
        end = clipped(END) if last == END else clipped(last * self.step)
        frames = self._panes(first, end)
        if not frames:
            return []
        panes = matched(pl.concat(frames), news.select(*self.by), list(self.by), "semi")
        needed = panes.filter(pl.col(PANE) < end, pl.col(PANE) >= self._first_pane(first))
        items: list[Item] = []
        for states in self._windows(needed, first, last) if needed.height else ():
            own = matched(states, news, list(self.by), "left")
            own = own.filter(pl.col(WID) >= pl.col(FROM), pl.col(WID) < pl.col(CLOSED)).drop(FROM, CLOSED)
            items += super()._released(own)
        self.marks["dead"] += matched(panes, news, list(self.by), "inner").filter(self._is_dead()).height
        return items

    def _is_dead(self) -> pl.Expr:
        """Whether a partial is in released windows of its group only."""
        return pl.col(PANE) < (self._closed().fill_null(-LIMIT // self.step) + 1) * self.step - self.length

    def _closed(self) -> pl.Expr:
        """How far a group is released, within what leaves room for arithmetic in 64 bits."""
        return pl.col(CLOSED).clip(-LIMIT // self.step, LIMIT // self.step)

    def _drop_dead(self) -> None:
        if 2 * self.marks["dead"] <= self.chunks.height():
            return
        told = self._all_told()
        assert told is not None
        for chunk in list(self.chunks.stacks):
            whole = self.chunks.combine(pl.concat(self.chunks.stacks[chunk]))
            known = matched(whole, told, list(self.by), "left")
            self.chunks.replace(chunk, known.filter(~self._is_dead()).drop(CLOSED))
        self.marks["dead"] = 0
