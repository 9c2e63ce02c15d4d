"""``wr.Session``: named streams, and continuous queries over them that come and go while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.api.sources import UNNAMED
from windrow.api.stream import Stream
from windrow.errors import PlanError, QueryError, listing
from windrow.hosts.local_session import LocalSession
from windrow.hosts.standing import Registry, Standing
from windrow.logical.nodes import Node, Scan
from windrow.planner import Given, plan
from windrow.planner.explain import explain
from windrow.sql.select import sql

if TYPE_CHECKING:
    from windrow.hosts.arrivals import Clock
    from windrow.hosts.local import Value
    from windrow.hosts.spark.standing import Sink, StandingQueries
    from windrow.hosts.why import Why


@dataclass(frozen=True)
class QueryInfo:
    """A query of a session. ``status``: running, paused or failed, and then ``error`` says why.

    ``first_batch``: on Spark, the first micro-batch whose rows it takes. ``rows_late`` and ``rows_bad``: how many rows
    it did without, see ``Session.late_rows`` and ``Session.bad_rows``.
    """

    name: str
    text: str
    status: str
    error: str | None
    first_batch: int | None
    rows_out: int
    rows_late: int
    rows_bad: int


class Session:
    """Named streams and continuous queries over them; queries come and go while the session runs.

    A query takes the rows that arrive from its ``add`` to its ``drop``: its results are those of the query alone over
    these rows. Queries share what they have in common: each stream is read once, and a filter that several of them
    begin with runs once. Queries that begin with the same row share panes, and equal joins and windows, too.

    In process, rows are pushed:

    >>> import windrow as wr
    >>> session = wr.Session(packets=wr.stream([{"ts": 0, "len": 0}], progress="ts", slack=0))
    >>> session.add("bytes", "SELECT sum(len) AS total FROM packets [RANGE 10, SLIDE 10, WA ts]")
    >>> session.push("packets", [{"ts": 1, "len": 40}, {"ts": 12, "len": 60}]).results("bytes").rows()
    [(0, 10, 40)]
    >>> session.drop("bytes")

    Over endless Spark DataFrames or files, ``folder`` keeps the queries, the state and the results, and ``start()``
    runs them all as one Spark query; in the same folder, a session goes on after whatever ended it. A change takes
    effect between two micro-batches.

    ``shards``: the parts that state is divided into, for good; ``tasks``: how many tasks share them, by default one
    each; ``depth``: how many levels of state queries may have one after the other, by default 2, each of which takes
    time in every micro-batch. Spark fixes tasks and levels for the life of a checkpoint. A session in the same folder
    with other numbers carries its state into a new checkpoint, and so does ``add`` of a query that needs more levels.

    ``clock``: in process, a function that returns a datetime, for ``arrival_ts``; the wall clock if none is given.

    ``sink``: a function of a name, a DataFrame and the number of a micro-batch that gets all results, besides the
    Parquet files in the folder.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        shards: int | None = None,
        depth: int | None = None,
        tasks: int | None = None,
        sink: Sink | None = None,
        clock: Clock | None = None,
        **streams: Stream,
    ) -> None:
        self._all = {name: _named(stream, name) for name, stream in streams.items()}
        if not streams:
            raise QueryError("a session needs at least one stream, by keyword: wr.Session(packets=wr.stream(..))")
        endless = {name: any(s.is_endless for s in stream.sources.values()) for name, stream in self._all.items()}
        if any(endless.values()) and not all(endless.values()):
            finite = listing(name for name, is_so in endless.items() if not is_so)
            raise QueryError(f"some streams of this session are endless, and others are not: {finite}")
        self._spark: StandingQueries | None = None
        self._local: LocalSession | None = None
        self._restored = True  # whether the queries of the folder are planned: some only the caller can give again
        if any(endless.values()):
            if clock is not None:
                raise QueryError("clock= is for sessions in this process; on Spark, sources say when rows arrived")
            self._open(folder, shards, depth, tasks, sink)
            return
        given = {"folder": folder, "shards": shards, "depth": depth, "tasks": tasks, "sink": sink}
        if odd := [name for name, value in given.items() if value is not None]:
            raise QueryError(f"{odd[0]}= is for sessions over endless Spark sources; this one runs in this process")
        self._local = LocalSession({n: _scan(s) for n, s in self._all.items()}, clock)

    def _open(
        self, folder: str | Path | None, shards: int | None, depth: int | None, tasks: int | None, sink: Sink | None
    ) -> None:
        from windrow.hosts.spark.standing import StandingQueries

        if folder is None:
            raise QueryError("a session over endless sources needs a folder=.. for its queries, state and results")
        for name, value in {"shards": shards, "depth": depth, "tasks": tasks}.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise QueryError(f"{name}={value!r} must be a number, at least 1")
        data = {n: s.sources[n].data for n, s in self._all.items()}
        asked = [_scan(s) for name, s in self._all.items() if s.sources[name].spark]
        clock = any(scan.source.delay is not None or scan.source.idle_after is not None for scan in asked)
        self._spark = StandingQueries(folder, data, shards, depth, tasks, sink, clock)
        self._restored = False
        if not self._pending():
            self._restore({})

    def _pending(self) -> list[str]:
        """The queries of the folder that must be given again before anything else."""
        if self._restored or self._spark is None:
            return []
        return [query.name for group in self._spark.registry.groups for query in group.queries if query.sql is None]

    def _restore(self, given: Mapping[str, Stream]) -> None:
        self._on_spark("start").restore(lambda query: self._again(query, given))
        self._restored = True

    def _node_of(self, query: Standing) -> Node:
        assert query.sql is not None
        return sql(query.sql, **self._all).node

    # -- queries -----------------------------------------------------------------------------------------------
    def add(self, name: str | None = None, query: str | Stream | None = None, /, **queries: str | Stream) -> None:
        """A query, or several by keyword, from now on: SQL over the session's streams, or made from them in Python.

        Queries that are added in one call begin together, and so do those that are added before the next row comes.
        They share state where they can: panes of windows over the same rows and groups, and joins. Returns when the
        change has taken effect.
        """
        given = dict(queries)
        if name is not None:
            if query is None or name in given:
                raise QueryError("add() takes a name and a query, or queries by keyword")
            given = {name: query, **given}
        if not given:
            raise QueryError("add() takes a name and a query, or queries by keyword")
        found = {n: (self._resolved(n, q), q if isinstance(q, str) else None) for n, q in given.items()}
        self._planned.add({n: (q.node, text_of) for n, (q, text_of) in found.items()})

    def _resolved(self, name: str, query: str | Stream) -> Stream:
        """A query over streams of this session, and no others."""
        if isinstance(query, str):
            found = sql(query, **self._all)
        elif isinstance(query, Stream):
            found = query
        else:
            raise QueryError(f"query {name!r} must be SQL or a query made from streams, not {type(query).__name__}")
        for stream, source in found.sources.items():
            if stream in self._registry.dropped_streams:
                raise QueryError(f"query {name!r} is over the stream {stream!r}, which was dropped from this session")
            own = self._all.get(stream)
            if own is None or own.sources[stream].data is not source.data:
                raise QueryError(
                    f"query {name!r} is over {stream!r}, which is not a stream of this session; available: "
                    f"{listing(self.streams)}"
                )
        return found

    def drop(self, *names: str) -> None:
        """End queries: their open windows are given up, and their state is freed. Results on Spark stay in the folder.

        Several in one call take effect together, as one change.
        """
        self._host.drop(_some(names, "drop"))
        if not self._restored and not self._pending():
            self._restore({})

    def pause(self, *names: str) -> None:
        """Queries take no rows until they are resumed; their state stays. They never see what arrives meanwhile."""
        self._planned.pause(_some(names, "pause"))

    def resume(self, *names: str) -> None:
        """Paused queries take rows again."""
        self._planned.resume(_some(names, "resume"))

    def set_strategy(self, strategy: str, name: str | None = None) -> None:
        """By which rules the next operator is picked: "DFS" (the default: results leave as early as they can), "BFS",
        "RR" (round-robin over paths) or "DFS-k" (batches of k rows). For all queries, or for one and those that share
        its state.
        """
        self._planned.set_strategy(strategy, name)

    def queries(self) -> dict[str, QueryInfo]:
        """The queries that there are, by name."""
        batches = self._spark is not None
        return {
            q.name: QueryInfo(
                q.name,
                q.sql or q.text,
                q.status,
                q.error,
                q.first if batches else None,
                q.rows_out,
                q.rows_late,
                q.rows_bad,
            )
            for q in self._registry
        }

    def explain(self, name: str) -> str:
        """What a query means and how it runs."""
        query = self._registry.find(name)
        node = self._planned.node_of(query)
        [group] = [group for group in self._registry.groups if query in group.queries]
        shared = [other for other in group.alive() if other != name]
        header = f"shares state with {listing(shared)}\n" if shared else ""
        on_spark = self._spark is not None
        kept = Given({}, on_spark, group.choices, spread=not on_spark)
        return header + explain(plan(node, kept), on_spark, None, set(), False)

    def drop_stream(self, name: str) -> None:
        """No query can be added over this stream any more. Refused as long as there are any."""
        if name not in self.streams:
            raise QueryError(f"there is no stream {name!r} in this session; available: {listing(self.streams)}")
        users = [q.name for q in self._registry if name in _scans(self._planned.node_of(q))]
        if users:
            raise QueryError(f"stream {name!r} has queries: drop them first: {listing(users)}")
        self._host.drop_stream(name)

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams that queries can be added over."""
        gone = self._registry.dropped_streams
        return {name: stream for name, stream in self._all.items() if name not in gone}

    @property
    def batches(self) -> int:
        """On Spark: how many micro-batches are committed."""
        return self._on_spark("batches").batches

    @property
    def _registry(self) -> Registry:
        registry: Registry = self._host.registry
        return registry

    @property
    def _host(self) -> Any:
        return self._local if self._local is not None else self._spark

    @property
    def _planned(self) -> Any:
        """The host, if it knows what all its queries mean."""
        if pending := self._pending():
            raise QueryError(
                f"queries of this session were not given as SQL: {listing(pending)}. Give them again, as they were: "
                "start(queries={..}); or drop them"
            )
        return self._host

    # -- rows and results --------------------------------------------------------------------------------------
    def push(self, stream: str, rows: Any) -> Session:
        """In process: rows of a stream, for all queries over it."""
        self._in_process("push").push(stream, rows)
        return self

    def promise(self, stream: str, at: Value, group: Mapping[str, Any] | None = None) -> Session:
        """In process: every later row of a stream, or of one group of it, has at least this progress value."""
        self._in_process("promise").promise(stream, at, group)
        return self

    def ask(self) -> Session:
        """In process: all that is there now has been pushed. Streams with a ``delay`` or ``idle_after`` promise what
        follows from the time it is. On Spark sources are asked by themselves.
        """
        self._in_process("ask").ask()
        return self

    def end(self) -> Session:
        """In process: all streams have ended, and whatever is open is released."""
        self._in_process("end").end()
        return self

    def results(self, name: str, after: int | None = None) -> Any:
        """In process: what a query has released since the last call. On Spark: a list of pairs, the number of a
        micro-batch and its results, of micro-batches after a number.
        """
        return self._told("results", name, after)

    def late_rows(self, name: str, after: int | None = None) -> Any:
        """Records of the late rows of a query, by its late policy; since when, as for ``results``."""
        return self._told("late_rows", name, after)

    def bad_rows(self, name: str, after: int | None = None) -> Any:
        """The rows that a query did without because they are bad, with the reason; since when, as for ``results``.

        On Spark: where each was found, the reason, and the row as JSON; files that cannot be read are among them.
        """
        return self._told("bad_rows", name, after)

    def _told(self, what: str, name: str, after: int | None) -> Any:
        if self._local is None:
            return getattr(self._on_spark(what), what)(name, -1 if after is None else after)
        if after is not None:
            raise QueryError(f"{what}(.., after={after}) is for sessions on Spark; here there are no micro-batches")
        return getattr(self._local, what)(name)

    def snapshot(self) -> dict[str, pl.DataFrame]:
        """In process: the queries and their state."""
        return self._in_process("snapshot").snapshot()

    def restore(self, state: Mapping[str, pl.DataFrame], **queries: Stream) -> Session:
        """In process: continue from a snapshot. Queries that were not given as SQL must be given again, by name."""
        self._in_process("restore").restore(dict(state), lambda query: self._again(query, queries))
        return self

    def _again(self, query: Standing, given: Mapping[str, Stream]) -> Node:
        if query.sql is not None:
            return self._node_of(query)
        if query.name not in given:
            dropped = query.status == "dropped"
            why = ". It was dropped, and others still share its state" if dropped else ""
            raise QueryError(f"query {query.name!r} was not given as SQL: give it again, {query.name}=..{why}")
        return self._resolved(query.name, given[query.name]).node

    # -- on Spark ----------------------------------------------------------------------------------------------
    def start(self, queries: Mapping[str, Stream] | None = None, **trigger: Any) -> Session:
        """On Spark: run. ``trigger`` as Spark's, such as ``processingTime="5 seconds"`` or ``availableNow=True``.

        ``queries``: those in the folder that were not given as SQL, as they were.
        """
        host = self._on_spark("start")
        if not self._restored:
            self._restore(queries or {})
        host.start(**trigger)
        return self

    def stop(self) -> None:
        """On Spark: stop after the micro-batch that is being written."""
        self._on_spark("stop").stop()

    def wait(self, timeout: float | None = None) -> bool:
        """On Spark: wait for the end of the running query; false if it has not ended in so many seconds."""
        return self._on_spark("wait").wait(timeout)

    def process_available(self) -> Session:
        """On Spark: wait until all rows that are there now have been processed."""
        self._on_spark("process_available").process_available()
        return self

    def latest(self) -> Mapping[str, Any] | None:
        """On Spark: what the last micro-batch has left of the figures of the session; None before the first."""
        return self._on_spark("latest").latest()

    def why(self) -> Why:
        """On Spark: why results of its queries do not come, or not all of them. See ``Query.why``."""
        from windrow.hosts.spark.reports import explained

        return explained(self._on_spark("why").folder)

    def error(self) -> str | None:
        """On Spark: why the session has stopped, if by an error of more than one query."""
        return self._on_spark("error").error()

    def _in_process(self, what: str) -> LocalSession:
        if self._local is None:
            raise PlanError(
                f"{what}() is for sessions in this process; this one runs on Spark, which reads its sources"
            )
        return self._local

    def _on_spark(self, what: str) -> StandingQueries:
        if self._spark is None:
            raise PlanError(
                f"{what}() is for sessions over endless Spark sources; this one runs in this process: push()"
            )
        return self._spark


def _named(stream: Stream, name: str) -> Stream:
    """A stream under its name in the session."""
    if not isinstance(stream, Stream) or not isinstance(stream.node, Scan):
        raise QueryError(f"{name}= must be a stream as wr.stream(..) makes it: add what is computed from it as a query")
    if stream.node.name == name:
        return stream
    if stream.node.name != UNNAMED:
        raise QueryError(f"{name}= is a stream with the name {stream.node.name!r}: use that name")
    return Stream(replace(stream.node, name=name), {name: stream.sources[UNNAMED]})


def _some(names: tuple[str, ...], what: str) -> tuple[str, ...]:
    if not names:
        raise QueryError(f"{what}() takes the name of a query, or several")
    return tuple(dict.fromkeys(names))


def _scan(stream: Stream) -> Scan:
    assert isinstance(stream.node, Scan)
    return stream.node


def _scans(node: Node) -> set[str]:
    return {each.name for each in node.walk() if isinstance(each, Scan)}
