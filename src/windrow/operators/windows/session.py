"""Session windows: a key's rows with less than the gap between them, emitted when the gap has passed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched, numbered
from windrow.operators.state.late import Spans
from windrow.operators.state.levels import CLOSED
from windrow.operators.state.limits import LIMIT
from windrow.operators.windows.window_operator import WindowOperator
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PROGRESS
from windrow.windows import Session

FIRST, RUN = "@first", "@run"
PROMISED = "promised"  # the mark of what is promised about the ends of sessions
CHUNKS_PER_GAP = 4


class Sessions(WindowOperator[Session]):
    """Expects partials of Instants. ``closed`` is the promise itself.

    Below a promise no row is missing, so neighbours there are neighbours for good: they are merged to runs, and only
    the last run of a key can still grow. So there is at most one open run per key, plus what lies after the promise.
    A row that breaks a promise is late: it could reach into a session that is out.
    """

    chunk_by = PROGRESS

    def __init__(self, windowing: Windowing[Session]) -> None:
        super().__init__(windowing)
        self.width = max(1, self.window.gap // CHUNKS_PER_GAP)
        self.runs = Chunks(lambda f: f)  # one row per key: nothing to merge
        self.stores["runs/"] = self.runs
        self.remember(**{PROMISED: START})

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        numbers = self.window.numbers_array(batch[PROGRESS].to_numpy())
        kept, side = self.lateness.sift(batch, Spans(*numbers, self.closed_of(batch)))
        if kept.height:
            self.chunks.append(kept.with_columns((pl.col(PROGRESS) // self.width).alias(CHUNK)))
        return side

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        limit = self.closed
        fresh = self._settled(limit)
        finished = min(limit - self.window.gap, LIMIT) if limit != END else LIMIT  # runs that end by then are over
        items: list[Item] = []
        done: list[Batch] = []
        if fresh is not None:
            touched = self._take(fresh.select(self.keys).unique(), self.keys)
            runs = self._joined(pl.concat([touched, fresh]) if touched is not None else fresh)
            done.append(runs.filter(pl.col(PROGRESS) <= finished))
            self._put(runs.filter(pl.col(PROGRESS) > finished))
        done += self._expired(finished)
        items += [self._ended(runs) for runs in done if runs.height]
        return items

    def _ended(self, runs: Batch) -> Batch:
        return self.lowered(runs, runs[FIRST].to_numpy(), runs[PROGRESS].to_numpy() + self.window.gap)

    # -- single groups -------------------------------------------------------------------------------------------
    def release_groups(self, news: Batch) -> list[Item]:
        by = list(self.levels.by)
        held = self._take(news.select(by), by)
        fresh = self._settled_of(news)
        both = [runs for runs in (held, fresh) if runs is not None]
        if not both:
            return []
        runs = self._joined(pl.concat(both))
        promised = matched(runs.select(by), news, by, "left")[CLOSED]
        over = pl.Series(runs[PROGRESS].to_numpy() <= promised.to_numpy() - self.window.gap)
        self._put(runs.filter(~over))
        done = runs.filter(over)
        return [self._ended(done)] if done.height else []

    def _settled_of(self, news: Batch) -> Batch | None:
        """The partials of some groups below the promises about them, as runs of one instant each; they leave."""
        by, last = list(self.levels.by), int(news[CLOSED].max())  # type: ignore[arg-type]
        found = []
        for chunk in [c for c in sorted(self.chunks.stacks) if c * self.width < last]:
            entries = pl.concat(self.chunks.stacks[chunk])
            promised = matched(entries.select(by), news, by, "left")[CLOSED]
            due = pl.Series(entries[PROGRESS].to_numpy() < promised.fill_null(START).to_numpy())
            if due.any():
                found.append(entries.filter(due))
                self.chunks.replace(chunk, self.chunks.combine(entries.filter(~due)))
        return pl.concat(found).with_columns(pl.col(PROGRESS).alias(FIRST)) if found else None

    def promises_of(self, news: Batch) -> list[Item]:
        """As for everyone: an open session can end as it is now, and a new one begins at the promise at the soonest."""
        by = list(self.levels.by)
        held = [f.select(*by, PROGRESS) for stack in self.runs.stacks.values() for f in stack]
        none = pl.DataFrame(schema={**self.levels.by, PROGRESS: pl.Int64()})
        last = pl.concat([none, *held]).group_by(by).agg(pl.col(PROGRESS).min())
        first = matched(news, last, by, "left")
        ends = first.with_columns(pl.min_horizontal(PROGRESS, CLOSED).alias(CLOSED))
        return [promise.mapped(lambda at: at + self.window.gap) for promise in self.levels.promises(ends)]

    def promises_out(self) -> list[Item]:
        """A session that is open can end as it is now; a new one begins at the promise at the soonest."""
        first = self.next_promise()
        new = self.closed + self.window.gap if self.closed != END else END
        promised = END if self.closed == END else min(new, new if first is None else first)
        if promised <= self.marks[PROMISED]:
            return []
        self.marks[PROMISED] = promised
        return [Punctuation(promised)]

    def _settled(self, limit: int) -> Batch | None:
        """The partials below a promise, as runs of one instant each; they leave the chunks."""
        last = -(-limit // self.width) if limit != END else LIMIT
        frames = self.chunks.below(last)
        if not frames:
            return None
        entries = pl.concat(frames)
        rest = entries.filter(pl.col(PROGRESS) >= limit) if limit != END else entries.clear()
        self.chunks.free_below(last)
        if rest.height:
            self.chunks.append(rest.with_columns((pl.col(PROGRESS) // self.width).alias(CHUNK)))
        settled = entries.filter(pl.col(PROGRESS) < limit) if limit != END else entries
        return settled.with_columns(pl.col(PROGRESS).alias(FIRST)) if settled.height else None

    def _joined(self, runs: Batch) -> Batch:
        """Join runs that are less than the gap apart."""
        runs = numbered(runs, self.keys).sort("@group", FIRST)
        group, first, last = (runs[c].to_numpy() for c in ("@group", FIRST, PROGRESS))
        new = np.ones(len(first), bool)
        new[1:] = (group[1:] != group[:-1]) | (first[1:] - last[:-1] >= self.window.gap)
        runs = runs.with_columns(pl.Series(RUN, np.cumsum(new)))
        bounds = runs.group_by(RUN).agg(pl.col(*self.keys, FIRST).first(), pl.col(PROGRESS).last())
        return matched(bounds, self._combined(runs, (RUN,)), [RUN], "inner").drop(RUN)

    # -- the open runs -------------------------------------------------------------------------------------------
    def _put(self, runs: Batch) -> None:
        if runs.height:
            runs = runs.select(*self.keys, FIRST, PROGRESS, *self.aggregates.columns)
            self.runs.append(runs.with_columns((pl.col(PROGRESS) // self.width).alias(CHUNK)))

    def _take(self, names: Batch, keys: Sequence[str]) -> Batch | None:
        """The open runs of those that are named by some keys, out of the store."""
        found = []
        for chunk, stack in list(self.runs.stacks.items()):
            runs = pl.concat(stack)
            hit = matched(runs, names, keys, "semi") if keys else runs
            if hit.height:
                found.append(hit)
                rest = matched(runs, names, keys, "anti") if keys else runs.clear()
                self.runs.replace(chunk, rest)
        return pl.concat(found).select(PROGRESS, *self.keys, *self.aggregates.columns, FIRST) if found else None

    def _expired(self, finished: int) -> list[Batch]:
        """The open runs that can no longer grow, out of the store."""
        found = []
        for chunk, stack in list(self.runs.stacks.items()):
            if chunk * self.width > finished:
                continue
            runs = pl.concat(stack)
            over = runs.filter(pl.col(PROGRESS) <= finished)
            if over.height:
                found.append(over)
                self.runs.replace(chunk, runs.filter(pl.col(PROGRESS) > finished))
        return found

    def next_promise(self) -> int | None:
        """The end of the first run; of rows after the promise, the first that could be one."""
        ends = []
        for store in (self.chunks, self.runs):
            first = store.first()
            if first is not None:
                ends.append(int(pl.concat(store.stacks[first])[PROGRESS].min()))  # type: ignore[arg-type]
        return min(ends) + self.window.gap if ends else None

    def held(self) -> int:
        return super().held() + self.runs.height()
