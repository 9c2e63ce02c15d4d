"""SharedPanes: several window queries over one stream hold their panes once (Li 6.2: shared sub-aggregation)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.operators.operator import Item, Operator, Side, Wait
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import numbered
from windrow.operators.state.late import Spans
from windrow.operators.state.limits import clipped
from windrow.operators.windows.bucket import on_window_ids
from windrow.operators.windows.pane_merge import groups_of
from windrow.operators.windows.paned import Paned
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, PANE
from windrow.windows import Sliding
from windrow.windows.tuples import Bools, Ints


class Common:
    """The partials that all queries share, as one frame with numbered groups: made once for the promises of a call."""

    def __init__(self, chunks: Chunks, keys: Sequence[str]) -> None:
        self.chunks, self.keys = chunks, tuple(keys)
        self._made: tuple[Batch, Ints, Batch] | None = None

    def forget(self) -> None:
        """The partials have changed, or nobody asks for them any more."""
        self._made = None

    def between(self, first: int, end: int) -> tuple[Batch, Batch]:
        """Partials of some panes and their groups, with a column ``@group`` of numbers from 0 on."""
        if self._made is None:
            frames = [frame for stack in self.chunks.stacks.values() for frame in stack]
            whole = numbered(pl.concat(frames), self.keys)
            self._made = whole, whole["@group"].to_numpy(), groups_of(whole, self.keys)
        whole, group, groups = self._made
        panes = whole[PANE].to_numpy()
        there = np.flatnonzero((panes >= first) & (panes < end))
        used = np.zeros(groups.height, dtype=bool)
        used[group[there]] = True
        if used.all():
            return whole[there], groups
        number = (np.cumsum(used) - 1).astype(np.uint32)
        part = whole[there].with_columns(pl.Series("@group", number[group[there]]))
        return part, groups.filter(pl.Series(used)).with_columns(pl.Series("@group", number[used]))


class Level(Paned):
    """The window level of one of the queries. Its own panes are those that are late for another one, and not for it."""

    def __init__(self, windowing: Windowing[Sliding], panes: Sliding) -> None:
        super().__init__(windowing, panes.range)
        self.shift = (panes.origin - self.window.origin) // panes.range  # the panes of all are numbered from one origin
        self.shared: Common | None = None

    def _states(self, first: int, last: int) -> Iterator[Batch]:
        assert self.shared is not None
        if self.chunks.stacks or not self.aggregates.numbers:
            yield from super()._states(first, last)
        elif self.shared.chunks.stacks:
            low, end = (clipped(at - self.shift) for at in (self.grid.first_pane(first), self.grid.end_pane(last)))
            panes, groups = self.shared.between(low, end)
            if panes.height:
                yield from self.merge.windows(self.own_numbers(panes, "@group"), first, last, groups)

    def _panes(self, first: int, end: int) -> list[Batch]:
        assert self.shared is not None
        there = self.shared.chunks.below(clipped(-(-(end - self.shift) // self.width)))
        return super()._panes(first, end) + ([self.own_numbers(pl.concat(there))] if there else [])

    def own_numbers(self, frame: Batch, *also: str) -> Batch:
        """Panes as this window's origin numbers them, with the states of this query's aggregates and no others."""
        return frame.select(pl.col(PANE) + self.shift, *self.keys, *self.aggregates.columns, *also)

    def without_gaps(self, frame: Batch) -> Batch:
        """Without what is in no window of this query: it cannot be late for it."""
        return frame.filter(pl.col(PANE) // self.grid.step < (pl.col(PANE) + self.grid.length) // self.grid.step)

    def _held(self) -> list[Batch]:
        assert self.shared is not None
        return [*super()._held(), *(frame for stack in self.shared.chunks.stacks.values() for frame in stack)]

    def is_late(self, batch: Batch) -> Bools:
        """Which partials, by the common numbers, a released window of their group holds."""
        return Spans(*self.grid.windows(batch[PANE].to_numpy() + self.shift), self.released_of(batch)).late()

    def is_done(self, batch: Batch) -> Bools:
        """Which partials, by the common numbers, no open window of their group holds."""
        return self._dead(self.own_numbers(batch))

    def needed(self) -> int:
        """The first pane, by the common numbers, that an open window can hold."""
        return clipped(self.grid.first_pane(self.closed) - self.shift)


@dataclass(frozen=True, eq=False)
class Query:
    """A window level, what follows it, and the columns of its results, under the name of the query."""

    name: str
    level: Level
    after: Sequence[Operator] = ()
    dtype: pl.DataType = field(default_factory=pl.Null)


class SharedPanes:
    """Expects partials of Panes over ``panes``. Each result is a struct in the column of its query; the others NULL.

    What is late depends on the query, because slides differ: partials that are late for some of them are given to each
    query by itself, so that all keep their own late policy.

    ``active``: of queries that come and go, the names of those that are still there. One that raises an error is then
    given up alone, and a side output says so; the state that was its own is freed when the operator is made without it.
    """

    def __init__(
        self,
        panes: Sliding,
        keys: Sequence[str],
        aggregates: Partials,
        queries: Sequence[Query],
        active: Collection[str] | None = None,
    ) -> None:
        by = (PANE, *keys)
        self.panes = panes
        self.queries = tuple(queries)
        self.isolated = active is not None
        self.active = [q for q in queries if active is None or q.name in active]
        self._left: list[str] = []  # state chunks of queries that are no longer there
        self._nothing = {q.name: pl.Series(q.name, [None], q.dtype) for q in queries}
        self.chunks = Chunks(lambda frame: aggregates.combine(frame, by))
        self.common = Common(self.chunks, keys)
        self.width = min(q.level.width for q in queries)
        for query in queries:
            query.level.width = self.width
            query.level.shared = self.common

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        self.common.forget()
        if not self.active:
            return []
        late = pl.Series(np.logical_or.reduce([q.level.is_late(batch) for q in self.active]))
        kept, apart = batch.filter(~late), batch.filter(late)
        if kept.height:
            self.chunks.append(kept.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))
        items: list[Item] = []
        for query in list(self.active) if apart.height else ():
            items += self._tried(query, lambda q: self._late(q, port, apart))
        return items

    def _late(self, query: Query, port: int, partials: Batch) -> list[Item]:
        level = query.level
        return _sides(query, level.on_batch(port, level.without_gaps(level.own_numbers(partials))))

    def _tried(self, query: Query, call: Callable[[Query], list[Item]]) -> list[Item]:
        """What a call for one of the queries gives; the others do not depend on whether it raises an error."""
        try:
            return call(query)
        except Exception as error:
            if not self.isolated:
                raise
            self.active.remove(query)
            told = pl.DataFrame({"error": [f"{type(error).__name__}: {error}"]})
            return [Side("failed", 1, told, query.name)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """Promises are on the numbers of panes."""
        items: list[Item] = []
        at = promise.mapped(lambda pane: self.panes.origin + pane * self.panes.range)
        for query in list(self.active):
            items += self._tried(query, lambda q: self._released(q, port, at))
        self.common.forget()
        if promise.group is None:
            needed = min((q.level.needed() for q in self.active), default=END)
            self.chunks.free_below(needed // self.width)
        return items

    def _released(self, query: Query, port: int, at: Punctuation) -> list[Item]:
        return self._out(query, query.level.on_punctuation(port, on_window_ids(query.level.window, at)))

    def _out(self, query: Query, items: Sequence[Item]) -> list[Item]:
        """The output of a query without its promises: nothing behind it could use them."""
        frames = [x for i in items if isinstance(i, pl.DataFrame) for x in self._named(query, i)]
        return [*frames, *_sides(query, items)]

    def _named(self, query: Query, results: Batch) -> list[Item]:
        for operator in query.after:
            [results] = [i for i in operator.on_batch(0, results) if isinstance(i, pl.DataFrame)]
        if not results.height:
            return []
        own = results.to_struct(query.name).cast(query.dtype)
        # Columns, not expressions: with many queries there are many of them, and this is done for each query.
        rest = {name: one.new_from_index(0, len(own)) for name, one in self._nothing.items() if name != query.name}
        return [pl.DataFrame([rest.get(q.name, own) for q in self.queries])]

    def on_flush(self) -> list[Item]:
        """What promises about single groups have closed."""
        waiting = any(q.level.levels.pending.stacks for q in self.active)
        items: list[Item] = []
        for query in list(self.active):
            items += self._tried(query, lambda q: self._out(q, q.level.on_flush()))
        self.common.forget()
        if waiting:
            self._drop_done()
        return items

    def _drop_done(self) -> None:
        """Partials that no query needs, chunk by chunk where they are most of it."""
        for chunk in list(self.chunks.stacks):
            whole = pl.concat(self.chunks.stacks[chunk])
            done = np.logical_and.reduce([q.level.is_done(whole) for q in self.active])
            if 2 * int(done.sum()) > len(done):
                self.chunks.replace(chunk, self.chunks.combine(whole.filter(pl.Series(~done))))

    def waits_for(self) -> list[Wait]:
        """The end of the next window of any query that holds anything."""
        frames = [frame.select(PANE) for stack in self.chunks.stacks.values() for frame in stack]
        ends = [end for q in self.active if (end := q.level.next_promise()) is not None]
        for query in self.active if frames else ():
            level = query.level
            panes = pl.concat(frames)[PANE]
            live = panes.filter(panes >= level.needed()).min()
            if live is not None:
                ends.append(level.end_of((int(live) + level.shift) // level.grid.step))  # type: ignore[arg-type]
        if not ends:
            return []
        held = self.chunks.height() + sum(q.level.held() for q in self.active)
        since = min(q.level.promised_so_far() for q in self.active)
        return [Wait(0, min(ends), since, "partials", held, self.state_bytes())]

    # -- state ---------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        found = {f"shared/{k}": v for k, v in self.chunks.snapshot().items()}
        for i, query in self._numbered():
            found |= {f"{i}/{k}": v for k, v in query.level.snapshot().items()}
        return found

    def _numbered(self) -> list[tuple[int, Query]]:
        """The queries that are there, under the numbers that their state has."""
        return [(i, query) for i, query in enumerate(self.queries) if query in self.active]

    def changes(self) -> Changes:
        found: Changes = {f"shared/{k}": v for k, v in self.chunks.changes().items()}
        for i, query in self._numbered():
            found |= {f"{i}/{k}": v for k, v in query.level.changes().items()}
        left, self._left = self._left, []
        return found | dict.fromkeys(left)

    def restore(self, state: State) -> None:
        self.chunks.restore(_under("shared/", state))
        there = {"shared"}
        for i, query in self._numbered():
            query.level.restore(_under(f"{i}/", state))
            there.add(str(i))
        self._left = [name for name in state if name.partition("/")[0] not in there]

    def state_bytes(self) -> int:
        return self.chunks.state_bytes() + sum(q.level.state_bytes() for q in self.active)


def _sides(query: Query, items: Sequence[Item]) -> list[Item]:
    """What a query counts: late for one is not late for all."""
    return [replace(item, of=query.name) for item in items if isinstance(item, Side)]


def _under(prefix: str, state: State) -> State:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
