"""The fluent API: a stream, what is done to its rows, and the windows over it. It builds the same plans as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl
from sqlglot import exp

from windrow.api import given
from windrow.api.as_of import Nearest
from windrow.api.functions import Udf
from windrow.api.joins import Asked
from windrow.api.limits import limits
from windrow.api.paired import Paired
from windrow.api.query import Query, merged
from windrow.api.resolved import items, order_term, resolved
from windrow.api.sequences import Following
from windrow.api.tables import joined_with
from windrow.api.windowed import Windowed
from windrow.errors import PlanError, QueryError, listing
from windrow.hosts.local import Value, value
from windrow.logical.arrival import arriving
from windrow.logical.arrival import named as named_in
from windrow.logical.checked import applied, attribute, distinct, filtered, on_value, ordered, ranked, split, united
from windrow.logical.expressions import dtype_of
from windrow.logical.nodes import Node, Progress, Project, Scan, both_times
from windrow.spec import lengths
from windrow.spec.lengths import Length, check_zone, length
from windrow.spec.names import BRANCH, POSITION
from windrow.spec.options import PLAIN, Options
from windrow.spec.tables import Table
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

TESTED = "tested by a function"  # the column of a Python condition, between two steps


@dataclass(frozen=True)
class Stream(Query):
    """A stream of rows: a source, or what a query makes of one. Immutable; every method returns a new one."""

    # -- rows --------------------------------------------------------------------------------------------------
    def where(self, condition: str | Udf) -> Stream:
        """Keep the rows for which a SQL condition, or a Python function (``wr.udf``) of type BOOLEAN, is true.

        >>> import windrow as wr
        >>> wr.stream([{"t": 1}, {"t": 2}], progress="t").where("t > 1").collect().rows()
        [(2,)]
        """
        if isinstance(condition, Udf):
            columns = list(self.node.schema)
            return self.apply(**{TESTED: condition}).where(f"`{TESTED}`").select(*columns)
        node = self._naming(condition)
        return replace(self, node=filtered(node, resolved(node, condition), condition))

    filter = where

    def select(self, *columns: str, **named: str) -> Stream:
        """Choose and compute columns: names, or SQL expressions by keyword.

        >>> import windrow as wr
        >>> wr.stream([{"t": 1, "x": 2}], progress="t").select("t", y="x * 10").collect().rows()
        [(1, 20)]
        """
        rows = self._naming(*columns, *named.values())
        chosen = items(rows, columns, named)
        if not chosen:
            raise QueryError("select() takes at least one column")
        for name, node in chosen.items():
            dtype_of(node, rows.schema, named.get(name, name))
        return replace(self, node=Project(rows, tuple(chosen.items())))

    def apply(self, **columns: str | Udf) -> Stream:
        """New columns, or new values for existing ones, each by a SQL expression or a Python function (``wr.udf``).

        Where the progressing column gets new values, windows need to know that its order is preserved: SQL expressions
        are checked, a Python function declares ``monotone=True``.

        >>> import windrow as wr
        >>> s = wr.stream([{"t": 1, "x": 2}], progress="t")
        >>> s.apply(y="x * 10", z=wr.udf(lambda x: "x" * x, "STRING", "x")).collect().rows()
        [(1, 2, 20, 'xx')]
        """
        found = self
        for name, by in columns.items():
            if isinstance(by, Udf):
                found = replace(found, node=applied(found.node, name, by.function))
            elif not isinstance(by, str):
                raise QueryError(f"{name}={by!r} is neither a SQL expression nor a wr.udf(..)")
            else:
                kept = {c: f"`{c.replace('`', '``')}`" for c in found.node.schema}
                found = found.select(**{**kept, name: by})
        return found

    def split(
        self,
        condition: str,
        then: Callable[[Stream], Stream] | None = None,
        otherwise: Callable[[Stream], Stream] | None = None,
    ) -> Stream:
        """Rows for which a condition is true take one branch, the others another; both are united (Li, Figure 8-3).

        A branch is a function of a stream, with ``where``, ``select`` and ``apply``; without one, rows pass unchanged.
        The source is read once, and what is expensive in one branch is not computed for the rows of the other.

        >>> import windrow as wr
        >>> s = wr.stream([{"t": 1, "x": 9}, {"t": 2, "x": 4}, {"t": 3, "x": 3}], progress="t")
        >>> s.split("x > 5", otherwise=lambda rest: rest.where("x % 2 = 0")).collect().rows()
        [(1, 9), (2, 4)]
        """
        if self.node.progress is None:
            raise PlanError("split() needs the progressing column: keep it in select()")
        for name, branch in (("then", then), ("otherwise", otherwise)):
            if branch is not None:
                given.function(branch, name)
        scan = Scan(BRANCH, tuple(self.node.schema.items()), Progress(self.node.progress, lead=self.node.lead))
        start = replace(self, node=scan)
        ends = [start if branch is None else branch(start) for branch in (then, otherwise)]
        if odd := [end for end in ends if not isinstance(end, Stream)]:
            raise QueryError(f"a branch of split() must return a stream, not {odd[0]!r}")
        yes, no = (end.node for end in ends)
        return replace(self, node=split(self.node, resolved(self.node, condition), yes, no, condition))

    def distinct(self) -> Stream:
        """Each row once, as soon as it arrives. The progressing column must be selected: it bounds what is remembered.

        >>> import windrow as wr
        >>> wr.stream([{"t": 1}, {"t": 1}, {"t": 2}], progress="t").distinct().collect().rows()
        [(1,), (2,)]
        """
        return replace(self, node=distinct(self.node))

    def order_by(self, *columns: str) -> Stream:
        """All rows in the order of the progressing column, named first; each row as soon as no smaller can come.

        Further columns or SQL expressions order rows with equal values, with DESC after them if descending. On Spark
        all rows go through one shard.

        >>> import windrow as wr
        >>> wr.stream([{"t": 3}, {"t": 1}], progress="t").order_by("t").collect().rows()
        [(1,), (3,)]
        """
        if not columns:
            raise QueryError("order_by() needs at least the progressing column")
        return replace(self, node=ordered(self.node, tuple(order_term(self.node, c) for c in columns)))

    def union(self, *others: Stream) -> Stream:
        """All rows of all streams, order-agnostic; the union promises what its slowest member promises."""
        if odd := [other for other in others if not isinstance(other, Stream)]:
            raise QueryError(f"union() takes streams, not {odd[0]!r}")
        return Stream(united([self.node, *(o.node for o in others)]), merged([self, *others]))

    def group_by(self, *columns: str, **named: str) -> Paired:
        """Group the pairs of a join by both of their times, or by what they are truncated to, and by more columns.

        A group is complete when no pair with its times can come, so it needs no window. Columns by name, or SQL
        expressions by keyword. For all other groups a window comes first: ``window(..).group_by(..)``.

        >>> import windrow as wr
        >>> s = wr.stream([{"t": 0, "k": 1}, {"t": 13, "k": 1}], progress="t", name="s")
        >>> pairs = s.join(s, on="k", within=(1, 20))
        >>> pairs.group_by(a="t div 10", b="t_right div 10").agg(n=wr.count()).collect().rows()
        [(0, 1, 1)]
        """
        chosen = items(self.node, columns, named)
        for name, node in chosen.items():
            dtype_of(node, self.node.schema, named.get(name, name))
        if (times := both_times(self.node, chosen)) is None:
            raise QueryError(
                "groups of a stream need a window, or they would never be complete: window(..).group_by(..). Without "
                "one, groups are by both times of a join"
            )
        return Paired(self, times, tuple(chosen.items()))

    # -- windows -----------------------------------------------------------------------------------------------
    def window(
        self,
        range: Length,
        slide: Length | None = None,
        *,
        on: str | None = None,
        origin: Value | None = None,
        time_zone: str | None = None,
        using: str | None = None,
        memory: str | int | None = None,
        flush: str | None = None,
    ) -> Windowed:
        """Windows of length ``range``, a new one every ``slide`` (default: tumbling, every ``range``).

        They are over the progressing column; over the results of other windows that is ``window_time``, their last
        instant, so that rolling up in steps equals doing it at once. ``on`` names another progressing column, such as
        ``window_end``, to use its value. Windows end at ``origin`` plus multiples of ``slide``; the default origin is
        the start of 1970, UTC. With a ``time_zone`` they follow its wall clock, so that days begin at midnight there.
        ``using`` forces a physical algorithm: "paned", "wid", "buffering", "adaptwid" or "adaptpaned"; by default the
        optimizer takes the fastest one, of those whose state it expects to fit into ``memory`` ("64 MB"), if given.
        "two-level" puts a table of that size before the panes; ``flush`` says when its old entries leave it: "at once",
        "slow" or "lazy". "iop" puts all rows in order first, from the sources up to this window: for comparison.
        """
        over = self._over(on)
        dtype = over._progressing()
        size = length(range, dtype, "range")
        step = size if slide is None else length(slide, dtype, "slide")
        shape = Sliding(size, step, 0 if origin is None else value(origin, dtype, "origin"))
        limit = None if memory is None else given.size(memory)
        policy = None if flush is None else lengths.flush(flush)
        return Windowed(over, shape, using, options=_zoned(time_zone), memory=limit, flush=policy)

    def landmark(
        self, slide: Length, *, on: str | None = None, origin: Value | None = None, time_zone: str | None = None
    ) -> Windowed:
        """Windows from the beginning of the stream, a longer one every ``slide``; ``on`` as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1, "x": 5}, {"t": 12, "x": 7}]
        >>> wr.stream(rows, progress="t").landmark(10).agg(total=wr.sum("x")).collect().rows()
        [(None, 10, 5), (None, 20, 12)]
        """
        over = self._over(on)
        dtype = over._progressing()
        shape = Landmark(length(slide, dtype, "slide"), 0 if origin is None else value(origin, dtype, "origin"))
        return Windowed(over, shape, options=_zoned(time_zone))

    def rows(
        self,
        range: int,
        slide: int | None = None,
        *,
        partition_by: str | Sequence[str] = (),
        using: str | None = None,
    ) -> Windowed:
        """The last ``range`` rows by arrival, every ``slide`` rows; with ``partition_by``, those of each partition.

        ``using`` forces a physical algorithm, as for ``window``; windows of partitions have only one.

        >>> import windrow as wr
        >>> rows = [{"t": 9}, {"t": 7}, {"t": 8}]
        >>> wr.stream(rows, progress="t").rows(2, 1).agg(latest=wr.max("t")).collect().rows()
        [(-1, 1, 9), (0, 2, 9), (1, 3, 8), (2, 4, 8)]
        """
        size = length(range, pl.Int64(), "range")
        step = size if slide is None else length(slide, pl.Int64(), "slide")
        parts = self._keys(partition_by)
        shape = Partitioned(size, step) if parts else RowSliding(size, step)
        numbered = replace(self, node=arriving(self.node, [POSITION]))
        return Windowed(numbered, shape, using, keys=parts, parts=tuple(n for n, _ in parts))

    def each_row(
        self,
        range: Length,
        every: int = 1,
        *,
        on: str | None = None,
        by: Literal["rank", "row_num"] = "rank",
        partition_by: str | Sequence[str] = (),
        using: str | None = None,
    ) -> Windowed:
        """A window of length ``range`` back from every ``every``-th row, by rank of the progress value or by arrival.

        ``using`` forces a physical algorithm: "blocks", "bins" or "buffering"; ``on`` is as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1}, {"t": 3}, {"t": 9}]
        >>> wr.stream(rows, progress="t").each_row(5).agg(n=wr.count()).collect().rows()
        [(-4, 1, 1), (-2, 3, 2), (4, 9, 1)]
        """
        given.one_of(by, "by", ("rank", "row_num"))
        numbered = replace(self, node=arriving(self.node, [POSITION])) if by == POSITION and every != 1 else self
        over = numbered._over(on)
        shape = SlideByTuple(length(range, over._progressing(), "range"), length(every, pl.Int64(), "every"), by)
        parts = self._keys(partition_by)
        return Windowed(over, shape, using, keys=parts, parts=tuple(n for n, _ in parts))

    def session(self, gap: Length, *, on: str | None = None) -> Windowed:
        """Runs of a group's rows with less than ``gap`` between them; ``on`` as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1}, {"t": 3}, {"t": 9}]
        >>> wr.stream(rows, progress="t").session(5).agg(n=wr.count()).collect().rows()
        [(1, 8, 2), (9, 14, 1)]
        """
        over = self._over(on)
        return Windowed(over, Session(length(gap, over._progressing(), "gap")))

    def join(
        self,
        right: Stream | Table,
        on: str | Sequence[str] = (),
        *,
        within: tuple[Length, Length] | None = None,
        tumbling: Length | None = None,
        origin: Value | None = None,
        left_on: str | Sequence[str] = (),
        right_on: str | Sequence[str] = (),
        how: str = "inner",
        where: str | Udf | None = None,
        suffix: str = "_right",
        late: str | Sequence[str] | None = None,
        using: str | None = None,
        alpha: float | None = None,
        cost: float | None = None,
        max_rate: float | None = None,
        max_state: int | None = None,
        share: str | None = None,
        seed: int | None = None,
    ) -> Stream:
        """Pairs of a row of this stream and one of ``right`` with equal keys and times that are near.

        ``on``: columns or SQL expressions that must be equal on both sides; or ``left_on`` and ``right_on``, as many on
        each side; or none. ``within``: the least and the greatest value of the right time less the left time, both
        included; "5 rows" is a distance of row numbers, where both sides are rows of the same stream. ``tumbling``
        instead: the length of windows, which begin at ``origin``; the rows of a pair are in the same one.

        ``how``: "inner"; "left", "right" or "full", where rows without a partner come out as soon as none can come, and
        have NULL for the other side; "semi" or "anti", the rows of this stream that have a partner, or none. ``where``:
        what else must be true of a pair, a SQL expression over the columns of both or a ``wr.udf`` that returns
        BOOLEAN; a pair for which it fails is a bad row. A column of ``right`` whose name is taken gets the ``suffix``.
        ``late``: what happens to late rows, "drop", as without it, "side" or "error", for both sides or one for each.
        ``using`` forces a physical join: "oa"; those that keep the results in order, "sync-filter", "filter-order" and
        "adaptive", which an ``order_by`` chooses; or to compare "opob" and "opib" ("iop": everything below the join,
        too). An adaptive join filters before it orders while it is busy for a share of at least ``alpha`` of its time,
        0.3 without it; ``cost``: the time to compare two rows, in the smallest unit of progress.

        A join that may not take all rows sheds some: ``max_rate``, rows per second (day, or unit) of progress of both
        sides together, ``max_state``, rows in both windows together. ``share``: how the sides share what that leaves,
        the way with most results if it is not given. The rows kept are picked by a hash of ``seed`` and row.

        ``right`` can be a static table instead (``wr.table``). No times are compared then, and ``how`` is "inner",
        "left", "semi" or "anti".

        >>> import windrow as wr
        >>> left = wr.stream([{"t": 1, "k": "a"}], progress="t", name="left")
        >>> right = wr.stream([{"t": 3, "k": "a", "v": 7}], progress="t", name="right")
        >>> list(left.join(right, on="k", within=(-5, 10)).schema)
        ['t', 'k', 't_right', 'k_right', 'v']
        """
        if isinstance(right, Table):
            others: dict[str, Any] = {
                "within": within,
                "tumbling": tumbling,
                "origin": origin,
                "late": late,
                "using": using,
            }
            others |= {"alpha": alpha, "cost": cost}
            others |= {"max_rate": max_rate, "max_state": max_state, "share": share, "seed": seed}
            keys = on, left_on, right_on
            return replace(self, node=joined_with(self.node, right, keys, how, where, suffix, others))
        if not isinstance(right, Stream):
            raise QueryError(f"join() takes a stream or a table (wr.table), not {right!r}")
        late = "drop" if late is None else late
        more = using, alpha, cost, limits(max_rate, max_state, share, seed)
        asked = Asked(on, left_on, right_on, within, tumbling, origin, how, where, suffix, late, *more)
        return Stream(asked.of(self.node, right.node), merged([self, right]))

    def join_asof(
        self,
        right: Stream,
        *,
        on: str | None = None,
        left_on: str | None = None,
        right_on: str | None = None,
        by: str | Sequence[str] = (),
        by_left: str | Sequence[str] = (),
        by_right: str | Sequence[str] = (),
        strategy: str = "backward",
        tolerance: Length | None = None,
        allow_exact_matches: bool = True,
        coalesce: bool = True,
        how: str = "left",
        where: str | None = None,
        suffix: str = "_right",
        late: str | Sequence[str] | None = None,
        max_keys: int | None = None,
    ) -> Stream:
        """Each row of this stream beside the row of ``right`` that is nearest in time, as Polars names it.

        ``on``, or ``left_on`` and ``right_on``: the progressing columns, which are also meant without them. ``by``, or
        ``by_left`` and ``by_right``: columns or SQL expressions that must be equal. ``strategy``: the latest row that
        is not after this one ("backward"), the earliest that is not before it ("forward"), or the "nearest"; without
        ``allow_exact_matches``, times must not be equal. Of rows with equal times "backward" and "nearest" take the
        last and "forward" the first in the order of all columns of ``right``, whatever order they came in.

        ``tolerance``: the greatest distance. Without it "backward" must remember the latest row of each key: say how
        many keys you accept in one shard (``max_keys``; more stop the query), or let markers of this stream say which
        keys are finished. ``how``: "left", where rows without a partner have NULL, or "inner". ``where``: what else
        must be true of a pair, a SQL expression over its columns; the nearest row for which it is true is taken.
        ``late`` and ``suffix`` are as for ``join``. A row comes out when the promises of ``right`` say that no nearer
        one can come.

        >>> import windrow as wr
        >>> trades = wr.stream([{"t": 5, "s": "x"}], progress="t", name="trades")
        >>> rows = [{"t": 4, "s": "x", "bid": 7}, {"t": 1, "s": "x", "bid": 9}]
        >>> quotes = wr.stream(rows, progress="t", name="quotes")
        >>> trades.join_asof(quotes, by="s", tolerance=10).collect().rows()
        [(5, 'x', 7)]
        """
        if not isinstance(right, Stream):
            raise QueryError(f"join_asof() takes a stream, not {right!r}")
        late = "drop" if late is None else late
        keys = by, by_left, by_right
        near = strategy, tolerance, allow_exact_matches
        asked = Nearest(on, left_on, right_on, *keys, *near, coalesce, how, where, suffix, late, max_keys)
        return Stream(asked.of(self.node, right.node), merged([self, right]))

    def following(
        self,
        earlier: Stream,
        *,
        on: str | Sequence[str] = (),
        left_on: str | Sequence[str] = (),
        right_on: str | Sequence[str] = (),
        matching: str = "recent",
        within: Length | None = None,
        how: str = "inner",
        where: str | None = None,
        suffix: str = "_right",
        late: str | Sequence[str] | None = None,
        max_keys: int | None = None,
    ) -> Stream:
        """Each row of this stream beside the row of ``earlier`` that it follows (Bai et al., section 5).

        ``matching``: the latest row that is not after it ("recent", a row can be followed by many), or the earliest
        that none has followed yet ("chronicle", one to one). ``within``: the greatest distance between their times.
        ``how``: "left" for rows that follow none, too. Keys are as for ``join``; what bounds the memory is as for
        ``join_asof``, and "chronicle" needs a distance or finished keys.

        >>> import windrow as wr
        >>> cases = wr.stream([{"t": 1, "case": "A"}, {"t": 2, "case": "B"}], progress="t", name="cases")
        >>> products = wr.stream([{"t": 4, "item": 1}, {"t": 5, "item": 2}], progress="t", name="products")
        >>> products.following(cases).select("item", "case").collect().rows()
        [(1, 'B'), (2, 'B')]
        >>> products.following(cases, matching="chronicle", within=9).select("item", "case").collect().rows()
        [(1, 'A'), (2, 'B')]
        """
        if not isinstance(earlier, Stream):
            raise QueryError(f"following() takes a stream, not {earlier!r}")
        late = "drop" if late is None else late
        asked = Following(on, left_on, right_on, matching, within, how, where, suffix, late, max_keys)
        return Stream(asked.of(self.node, earlier.node), merged([self, earlier]))

    def top(self, limit: int, by: str, *, descending: bool = True) -> Stream:
        """The first ``limit`` rows of each window in the order of a SQL expression, the greatest first."""
        given.flag(descending, "descending")
        term = resolved(self.node, by)
        dtype_of(term, self.node.schema, by)
        return replace(self, node=ranked(self.node, ((term, descending),), given.whole(limit, "limit")))

    def _over(self, on: str | None) -> Stream:
        """The stream, progressing on the value of the named column."""
        if on is None:
            return self
        node = self._naming(on)
        name = attribute(node, on)
        if name is None:
            raise QueryError(
                f"on={on!r} is not a progressing column of the stream, so windows over it would never close; "
                f"available: {listing(node.times)}"
            )
        return replace(self, node=on_value(node, name)) if name in node.times else self

    def _naming(self, *texts: str | Udf) -> Node:
        """The rows, with the attributes of arrival that some texts name."""
        return arriving(self.node, named_in([text for text in texts if isinstance(text, str)]))

    def _progressing(self) -> pl.DataType:
        if self.node.progress is None:
            raise PlanError(
                "windows need the progressing column, which was not selected: keep it. If a Python function replaces "
                "it, and its results grow with its arguments, declare that: wr.udf(.., monotone=True)"
            )
        return self.node.schema[self.node.progress]

    def _keys(self, columns: str | Sequence[str]) -> tuple[tuple[str, exp.Expr], ...]:
        return tuple(items(self.node, given.texts(columns, "partition_by"), {}).items())


def _zoned(zone: str | None) -> Options:
    return PLAIN if zone is None else Options(zone=check_zone(zone))
