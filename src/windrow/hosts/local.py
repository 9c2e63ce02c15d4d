"""The in-process host: the whole plan as one graph, fed by hand. For tests, development and millisecond latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

import polars as pl

from windrow.errors import CheckpointError, QueryError, listing
from windrow.graph import Output, Traffic
from windrow.hosts.arrivals import STATE, Arrivals, Clock
from windrow.hosts.counters import OF_SIDES, ON_SPARK, Counter
from windrow.hosts.outline import outline_of
from windrow.hosts.report import Report
from windrow.hosts.warnings import Watching
from windrow.hosts.watched import OUTSIDE, REPORT, Watched
from windrow.hosts.why import Why, why
from windrow.logical.nodes import Scan
from windrow.operators.operator import Side
from windrow.planner import Plan, asked, whole_graph
from windrow.progress import END, Punctuation
from windrow.sources.files import Unreadable, short
from windrow.sources.fitting import Fitting
from windrow.sources.kafka.reading import frame, of_now
from windrow.sources.kafka.topic import Topic
from windrow.sources.own import OWN, Own
from windrow.spec.batches import State
from windrow.spec.messages import RAW, VALUE
from windrow.spec.names import ARRIVAL_TS, REASON
from windrow.spec.rules import Answer, answers
from windrow.spec.time import (
    iso_timestamp,
    out_of_range,
    physical,
    reach,
)

IDENTITY = "@snapshot"  # the name of the frame that identifies the query of a snapshot
FORMAT = 2
Value = int | str | date | datetime  # a point on a progressing attribute


class LocalRun:
    """A running query. Push rows and promises in any order; take what has been released so far.

    It can stop anywhere: ``snapshot()`` is its whole state, and ``restore`` continues from it. A call that fails
    inside the query (a late row under LATE ERROR, a result without a value) leaves the run unusable until then.
    """

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        """``clock``: what says when a row arrives, where the query wants to know; the wall clock if none is given."""
        self.plan = plan
        self.arrivals = Arrivals(clock)
        self.graph = whole_graph(plan)
        self._watch()
        self._results: list[pl.DataFrame] = []
        self._side: dict[str, list[pl.DataFrame]] = {"bad": [], "late": [], "revised": []}
        self.counts = {counter.label: 0 for counter in Counter if counter not in ON_SPARK}
        self.promised: int | None = None
        self._fittings: dict[str, Fitting] = {}
        self._failed: str | None = None  # the error, if a call failed in the middle

    def push(self, source: str, rows: Any) -> LocalRun:
        """Rows of one source: dicts, Arrow, pandas or Polars, taken whole or not at all.

        They are brought to the columns that the source was declared with. A value that does not fit its column is a
        DataError, and nothing of the batch is taken; a row whose progress value does not fit is a bad row.

        >>> from windrow import stream, sum
        >>> run = stream([{"t": 0, "x": 0}], "t", slack=0, name="s").window(5).agg(total=sum("x")).run()
        >>> run.push("s", [{"t": 1, "x": 2.0}, {"t": "soon", "x": 4}, {"t": 7}]).results().rows()
        [(0, 5, 2)]
        >>> run.counts["rows_in"], run.counts["rows_bad"]
        (3, 1)
        """
        ports = self._ports(source)
        frame, misfits = self._fitting(source).fit(rows)
        with self._whole():
            self.counts["rows_in"] += frame.height + misfits.height
            self.known.read(source, frame.height + misfits.height)
            if misfits.height:
                self._take([(OUTSIDE, Side("bad", misfits.height, misfits))])
            frame = self.arrivals.stamped(source, frame, self.plan.stamps_of(self._scan(source)))
            for port in ports:
                self._take(self.graph.feed(port, frame))
            self._take(self.graph.flush())
            self.known.ends_batch()
        return self

    def _fitting(self, source: str) -> Fitting:
        """What rows of a source must be like."""
        if source not in self._fittings:
            self._fittings[source] = fitting_of(self._scan(source), self.plan.needed[source])
        return self._fittings[source]

    def _check(self) -> None:
        if self._failed is not None:
            raise CheckpointError(
                f"this run failed ({self._failed}), and its state is incomplete: restore it from its last "
                "snapshot, or start again"
            )

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A call that fails in the middle has changed some operators and not others: the run must not continue.

        Counts, results and side outputs are then as they were before the call.
        """
        self._check()
        counts, promised = dict(self.counts), self.promised
        lists = [self._results, *self._side.values()]
        lengths = [len(each) for each in lists]
        try:
            yield
        except BaseException as error:
            self._failed = f"{type(error).__name__}: {error}"
            self.counts.update(counts)
            self.promised = promised
            for each, length in zip(lists, lengths, strict=True):
                del each[length:]
            raise

    def read(self, source: str, files: Own) -> LocalRun:
        """The rows of all files that are there. A file that cannot be read is in ``bad_rows``, and none of its rows.
        Of a topic all messages that are there.
        """
        needed = self.plan.read_from(self._scan(source))
        if isinstance(files, Topic):
            reader, found = of_now(files, needed)
            self.push(source, pl.concat([frame((), needed), *found]))
            self.counts["rows_lost"] += reader.lost
            return self
        frames: list[pl.DataFrame] = []
        for file in files.listed():
            reason = files.problem(file, needed)
            try:
                frames += [] if reason else files.rows(file, needed)
            except Unreadable as error:
                reason = f"{file.path} is damaged: {short(error)}"
            if reason:
                self.counts["files_bad"] += 1
                self._take([(OUTSIDE, Side("bad", 0, pl.DataFrame({REASON: [reason]})))])
        # All at once: the order of files must not make rows of a finite source late.
        return self.push(source, pl.concat(frames)) if frames else self

    def promise(self, source: str, at: Value, group: Mapping[str, Any] | None = None) -> LocalRun:
        """Every later row of this source, or of one group of it, has at least this progress value."""
        reads, scan = self.plan.reads(), self._scan(source)
        ports = [p for p in self._ports(source) if reads[p].on_its_progress]
        if not ports:
            others = [r.attribute for r in reads if r.scan.name == source and not r.by_rows]
            over = ", ".join(others) or f"row numbers ({' and '.join(scan.source.row_num)})"
            raise QueryError(
                f"a promise on {scan.progress} has no effect here: the windows over {source!r} are over {over}, which "
                "close as rows arrive"
            )
        promise = promise_of(scan, at, group)
        if scan.progress == ARRIVAL_TS and ARRIVAL_TS in scan.stamps:
            self.arrivals.passed(promise.value)
        return self._promised(dict.fromkeys(ports, promise))

    def end(self) -> LocalRun:
        """All sources have ended: whatever is open is released."""
        return self._promised(dict.fromkeys(range(len(self.plan.reads())), Punctuation(END)))

    def ask(self) -> LocalRun:
        """All that is there now has been pushed: sources with a ``delay`` or ``idle_after`` promise what follows.

        What time it is, the clock of the run says.

        >>> from datetime import datetime
        >>> from windrow import count, stream
        >>> seconds = iter([5, 20, 40])
        >>> at = datetime(2024, 1, 1, 12)
        >>> s = stream([{"t": at}], "t", slack=0, idle_after="30 seconds", name="s").window("1 second").agg(n=count())
        >>> run = s.run(clock=lambda: at.replace(second=next(seconds))).push("s", [{"t": at}])
        >>> [run.ask().results()["n"].to_list() for _ in range(3)]      # idle for 0, 15 and 35 seconds
        [[], [], [1]]
        """
        first, found = len(self.plan.reads()), asked(self.plan)
        with self._whole():
            at = self.arrivals.now()
            for port, _ in enumerate(found, first):
                self._take(self.graph.feed(port, answers([Answer(None, at, True, False)])))
            self._take(self.graph.flush())
            self.known.ends_batch()
        return self

    def _promised(self, promises: Mapping[int, Punctuation]) -> LocalRun:
        with self._whole():
            for port, promise in promises.items():
                self._take(self.graph.feed(port, promise))
            self._take(self.graph.flush())
            self.known.ends_batch()
        return self

    def results(self) -> pl.DataFrame:
        """What was released since the last call."""
        found, self._results = self._results, []
        return pl.concat(found) if found else self._nothing.clone()  # the caller may change what he gets

    def bad_rows(self) -> pl.DataFrame:
        """Rows that cannot take part, with the reason; all since the start."""
        found = self._side["bad"]
        return pl.concat(found, how="diagonal_relaxed") if found else pl.DataFrame()

    def late_rows(self) -> pl.DataFrame:
        """Records of the late rows that were dropped, with their window; all since the start.

        Under the policy "side" a record is a row; under the others it stands for ``rows`` rows of a group.
        """
        empty = pl.DataFrame(schema=self.plan.late_schema())
        return pl.concat([empty, *self._side["late"]], how="diagonal_relaxed")

    def snapshot(self) -> State:
        """All that is needed to continue. A run that failed has no snapshot."""
        self._check()
        known = {IDENTITY: self._identity, REPORT: self.known.snapshot()}
        return {**known, **self.arrivals.snapshot(), **self.graph.snapshot()}

    def restore(self, state: Mapping[str, pl.DataFrame]) -> LocalRun:
        """Continue from a snapshot of the same query; one of another query or version is refused."""
        chunks = dict(state)
        before, now = chunks.pop(IDENTITY, None), self._identity
        if before is None:
            raise CheckpointError("this snapshot does not name its query: it was written by a version before 0.3")
        if not before.equals(now):
            both = zip(now.columns, before.row(0), now.row(0), strict=True)
            differ = [f"  {what}: {then} in the snapshot, {here} now" for what, then, here in both if then != here]
            raise CheckpointError("\n".join(["this snapshot is of another query. What differs:", *differ]))
        self.arrivals.restore(chunks.pop(STATE, None))
        self.graph, self._failed = whole_graph(self.plan), None  # without anything that is left of an earlier run
        self._watch()
        self.known.restore(chunks.pop(REPORT, None))
        self.graph.restore(chunks)
        return self

    def _watch(self) -> None:
        """Note what goes by, for ``why``."""
        self.known = Watched(self.graph, outline_of(self.plan))

    def warnings(self) -> list[str]:
        """What is probably not meant so, one line each, and each only once. What is compared over time is what there is
        at each call.

        >>> from windrow import count, stream
        >>> counts = stream([{"t": 0, "x": 0}], "t", slack=5, name="s").where("x > 9").window(60).agg(n=count()).run()
        >>> [line] = counts.push("s", [{"t": t, "x": 1} for t in range(1000)]).warnings()
        >>> line.partition(". ")[0]
        'warning: The condition x > 9 has removed all 1,000 rows of source `s`'
        >>> counts.warnings()
        []
        """
        return [each.line for each in self._warnings.news(self.report())]

    @cached_property
    def _warnings(self) -> Watching:
        return Watching({scan.name for scan in self.plan.scans()})

    def report(self) -> Report:
        """What is known of the sources and operators now: what ``why`` is made of."""
        return self.known.report()

    def why(self) -> Why:
        """Why results do not come, or not all of them.

        >>> from windrow import count, stream
        >>> run = stream([{"t": 0}], "t", slack=0, name="s").window(10).agg(n=count()).run()
        >>> print(run.push("s", [{"t": 4}]).why().cause.sentence)
        Waiting for source `s`: last promise 4, 10 is needed; 1 partial is held until 10.
        """
        return why(self.report())

    @cached_property
    def _nothing(self) -> pl.DataFrame:
        """Results without rows."""
        return pl.DataFrame(schema=self.plan.schema)

    @cached_property
    def _ports_of(self) -> dict[str, list[int]]:
        """The inputs of the graph that each source feeds."""
        found: dict[str, list[int]] = {}
        for port, read in enumerate(self.plan.reads()):
            found.setdefault(read.scan.name, []).append(port)
        return found

    @cached_property
    def _identity(self) -> pl.DataFrame:
        algorithms = ", ".join(stage.algorithm for stage in self.plan.stages())
        return pl.DataFrame({"format": [FORMAT], "query": [self.plan.text], "algorithms": [algorithms]})

    def state_bytes(self) -> int:
        return self.graph.state_bytes()

    def traffic(self) -> Traffic:
        """How many rows and how many promises went from operator to operator since the start or restore.

        >>> from windrow import count, stream
        >>> run = stream([{"t": 0}], "t", slack=0, name="s").window(60).agg(n=count()).run()
        >>> traffic = run.push("s", [{"t": t} for t in range(1000)]).traffic()
        >>> traffic.promises, round(traffic.share, 4)
        (5, 0.0024)
        """
        return self.graph.traffic

    def _ports(self, source: str) -> list[int]:
        if isinstance(source, str) and source in self._ports_of:
            return self._ports_of[source]
        raise QueryError(f"the query has no source {source!r}; available: {listing(self._ports_of)}")

    def _scan(self, source: str) -> Scan:
        return self.plan.reads()[self._ports(source)[0]].scan

    def _take(self, outputs: Iterable[Output]) -> None:
        for node, item in outputs:
            self.known.note(node, item)
            if isinstance(item, Punctuation):
                self.promised = item.value if item.group is None else self.promised
            elif (
                isinstance(item, Side) and item.kind != "marks"
            ):  # here a source has one part: nothing is left to audit
                self.counts[OF_SIDES[item.kind].label] += item.count
                if item.rows.width:
                    self._side[item.kind].append(item.rows)
            elif isinstance(item, pl.DataFrame) and item.height:
                self.counts["rows_out"] += item.height
                self._results.append(item)


def promise_of(scan: Scan, at: Value, group: Mapping[str, Any] | None = None) -> Punctuation:
    """The promise that every later row of a source, or of one group of it, has at least a progress value."""
    dtype = scan.schema[scan.progress]
    if isinstance(at, bool):  # it is an integer in Python
        raise QueryError(f"the promise {at!r} does not fit a column of type {dtype}")
    point = value(at, dtype, "the promise")
    if abs(point) >= reach(dtype)[0]:
        raise QueryError(f"{out_of_range('promise', dtype)}. To end the stream, call end()")
    return Punctuation(point, _group(scan, group))


def fitting_of(scan: Scan, needed: Sequence[str]) -> Fitting:
    """What rows of a source must be like."""
    if (messages := scan.source.messages) is not None:  # rows are read from what is pushed
        columns = messages.read(needed)
        return Fitting(scan.name, {column: RAW[column] for column in columns}, VALUE, columns, None, scan.stamps)
    given = {**scan.schema, scan.progress: pl.String()} if scan.source.parse is not None else scan.schema
    given = {column: dtype for column, dtype in given.items() if column not in scan.stamps}
    return Fitting(scan.name, given, scan.progress, list(needed), scan.source.marker, scan.stamps)


def _group(scan: Scan, group: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    if group is None:
        return None
    if set(group) != set(scan.source.marker_by):
        raise QueryError(
            f"source {scan.name!r} can promise by {listing(scan.source.marker_by) or 'no columns'}, not by "
            f"{listing(group)}: declare wr.stream(..., punctuation_by=...)"
        )
    return tuple(_member(c, group[c], scan.schema[c]) for c in scan.source.marker_by)


def _member(column: str, given: Any, dtype: pl.DataType) -> Any:
    """A value of a group column, as rows of the group have it; one of another type would match no group."""
    kinds: list[tuple[bool, type]] = [
        (dtype.is_integer(), int),
        (dtype == pl.String, str),
        (dtype == pl.Boolean, bool),
        (dtype == pl.Date, date),
        (isinstance(dtype, pl.Datetime), datetime),
    ]
    kind = next((k for fits, k in kinds if fits), object)
    exact = kind in (int, date) and type(given) in (bool, datetime)  # a bool is an int in Python, a datetime a date
    if given is not None and (not isinstance(given, kind) or exact):
        raise QueryError(
            f"the promise is about {column}={given!r}, of type {type(given).__name__}, and {column} is of type {dtype}"
        )
    if not isinstance(given, datetime):
        return given
    zoned = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    return zoned if getattr(dtype, "time_zone", None) else zoned.replace(tzinfo=None)


def value(at: Value, dtype: pl.DataType, what: str) -> int:
    """A point on the progressing attribute as an integer, from whatever its column holds.

    >>> from datetime import date
    >>> value(date(1970, 1, 3), pl.Date(), "origin"), value(7, pl.Int64(), "origin")
    (2, 7)
    """
    if isinstance(at, bool) or not isinstance(at, (int, str, date)):
        raise QueryError(f"{what} {at!r} does not fit a column of type {dtype}")
    if isinstance(at, int):
        if not -(2**63) <= at < 2**63:
            raise QueryError(f"{what} {at} is beyond 64 bits")
        return at
    point = pl.select(pl.lit(at)).to_series()
    if point.dtype == pl.String:
        point = pl.select(iso_timestamp(pl.lit(at))).to_series()
    temporal = isinstance(dtype, (pl.Datetime, pl.Date)) and point.dtype.is_temporal()
    if not temporal or point[0] is None:
        raise QueryError(f"{what} {at!r} does not fit a column of type {dtype}")
    if isinstance(point.dtype, pl.Datetime) and point.dtype.time_zone is not None:
        point = point.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    target = pl.Date() if dtype == pl.Date else pl.Datetime("us")
    return int(point.cast(target).to_frame("at").select(physical(pl.col("at"), target)).item())


def collect(plan: Plan, sources: Mapping[str, pl.DataFrame | Own]) -> pl.DataFrame:
    """The result over finite sources: everything, then the end."""
    return fed(plan, sources).end().results()


def bad_rows(plan: Plan, sources: Mapping[str, pl.DataFrame | Own]) -> pl.DataFrame:
    """The bad rows of finite sources and of the results over them, and the files that cannot be read."""
    return fed(plan, sources).end().bad_rows()


def fed(plan: Plan, sources: Mapping[str, pl.DataFrame | Own]) -> LocalRun:
    """A run that has read all of its finite sources, and does not know yet that they have ended."""
    run = LocalRun(plan)
    for name, source in sources.items():
        if isinstance(source, OWN):
            run.read(name, source)
        else:
            run.push(name, source)
    return run
