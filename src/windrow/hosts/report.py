"""Report: what a running or stopped query knows about itself, in one typed form for all hosts.

Every shard makes a report of its own after each micro-batch: what its operators wait for, what they hold, what left by
the side. One of them also adds up what the map tasks send about the sources. ``merged`` puts them together. A report is
bounded: it has a line for each source, operator and wait, and a few examples, however much data there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from windrow.graph import Graph
from windrow.hosts.outline import DATE, NOTHING, TIME, ZONED, Outline, SourceOutline, StageOutline
from windrow.hosts.tally import OF, SLOWEST, Aside, Seen, Tally
from windrow.operators import Judge
from windrow.operators.operator import Wait
from windrow.operators.windows.window_operator import WindowOperator
from windrow.progress import END, START
from windrow.spec.names import PROGRESS
from windrow.spec.rules import Asked, BySource
from windrow.spec.rules.asked import INNER
from windrow.spec.rules.by_source import PART

FORMAT = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RUNS = 16  # of windows, whose ends are named
Groups = tuple[tuple[str, int], ...]


def shown(value: int | None, kind: str) -> str:
    """A progress value as a user knows it.

    >>> shown(60_000_000, "timestamp"), shown(1, "date"), shown(7, "integer"), shown(-(1 << 63), "date")
    ('1970-01-01 00:01:00', '1970-01-02', '7', 'nothing')
    """
    if value is None or value == START:
        return "nothing"
    if value == END:
        return "the end"
    try:
        if kind == DATE:
            return (EPOCH + timedelta(days=value)).date().isoformat()
        if kind in (TIME, ZONED):
            found = (EPOCH + timedelta(microseconds=value)).isoformat(sep=" ")
            return found.removesuffix("+00:00") + ("Z" if kind == ZONED else "")
    except OverflowError:
        pass
    return str(value)


@dataclass(frozen=True)
class Source:
    """A source as it is read: what was declared, and what has been seen. Progress values are integers here; ``shown``
    makes text of them. ``read``: rows of the source, good and bad ones.
    """

    declared: SourceOutline
    seen: Seen
    read: int

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def promised(self) -> int:
        return self.seen.promised

    def text(self, value: int | None) -> str:
        """A progress value of this source."""
        return shown(value, self.declared.kind)


@dataclass(frozen=True)
class Held:
    """A wait of an operator, over all shards. ``promise``: the least that makes it emit or free something; ``asks``: by
    the key of each source behind it the promise that this takes. ``batch``: since which micro-batch it has been so.
    ``groups``: of windows that promises close group by group, the slowest groups, and how far they are closed.
    ``ends``: of windows with ids, the ends of those that hold rows, as runs from a first to a last one.
    """

    stage: int
    operator: str
    port: int
    holds: str
    count: int
    bytes: int
    promise: int
    since: int
    asks: Mapping[str, int]
    batch: int
    groups: Groups = ()
    ends: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Part:
    """An operator: rows in and out, of all and of the last micro-batch, and its state. ``source``: where it takes the
    rows of one source only, before anything holds them.
    """

    name: str
    source: str = ""
    rows_in: int = 0
    rows_out: int = 0
    recent_in: int = 0
    recent_out: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Report:
    """``batch``: the last micro-batch in it, -1 if there was none. ``times``: when micro-batches began, in microseconds
    of the wall clock, as far as that is known from what Spark has logged.
    """

    outline: Outline
    batch: int
    sources: tuple[Source, ...]
    held: tuple[Held, ...]
    parts: tuple[Part, ...]
    late: Mapping[str, Aside]
    bad: Mapping[str, Aside]
    results: int
    recent_results: int
    shards: int = 1
    times: Mapping[int, int] = field(default_factory=dict)

    @property
    def state_bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def source(self, key: str) -> Source | None:
        """A source by the way it is read."""
        return next((source for source in self.sources if source.declared.key == key), None)

    def stage(self, number: int) -> StageOutline | None:
        return next((stage for stage in self.outline.stages if stage.number == number), None)

    def as_json(self) -> dict[str, Any]:
        """For programs: every progress value also as text."""
        return {
            "batch": self.batch,
            "began": clock(self.times.get(self.batch)),
            "results": self.results,
            "recent_results": self.recent_results,
            "state_bytes": self.state_bytes,
            "sources": [_source_json(source) for source in self.sources],
            "waits": [self._held_json(held) for held in self.held],
            "operators": [asdict(part) for part in self.parts],
            "late": [{"at": where, **asdict(aside)} for where, aside in self.late.items()],
            "bad": [_bad_json(where, aside) for where, aside in self.bad.items()],
        }

    def _held_json(self, held: Held) -> dict[str, Any]:
        stage = self.stage(held.stage)
        kind = stage.kind if stage is not None else ""
        kinds = self.outline.kinds
        return {
            "stage": held.stage,
            "operator": held.operator,
            "port": held.port,
            "does": stage.says if stage is not None else "",
            "holds": held.count,
            "of": held.holds,
            "bytes": held.bytes,
            "waits_for": shown(held.promise, kind),
            "since": shown(held.since, kind),
            "since_batch": held.batch,
            "since_time": clock(self.times.get(held.batch)),
            "asks": {key: shown(value, kinds.get(key, "")) for key, value in held.asks.items()},
            "groups": [{"group": group, "closed_up_to": shown(value, kind)} for group, value in held.groups],
        }


def clock(micros: int | None) -> str | None:
    """A time of the wall clock."""
    return None if micros is None else shown(micros // 1_000_000 * 1_000_000, ZONED)


def _source_json(source: Source) -> dict[str, Any]:
    declared, seen = source.declared, source.seen
    return {
        "source": declared.name,
        "on": declared.attribute,
        "promises": declared.promises,
        "read": source.read,
        "good": seen.rows,
        "promised": source.text(seen.promised),
        "least": source.text(seen.least),
        "greatest": source.text(seen.greatest),
        "recent_rows": seen.recent[0],
        "rows_came_in_batch": seen.came,
        "promised_in_batch": seen.moved,
        "partitions": [{"partition": part, "reached": source.text(value)} for part, value in seen.parts],
        "partitions_there": seen.parts_there,
        "asked": clock(seen.asked),
    }


def _bad_json(where: str, aside: Aside) -> dict[str, Any]:
    at, _, reason = where.partition("\t")
    return {"at": at, "reason": reason, **asdict(aside)}


# -- in a shard, or in one process -------------------------------------------------------------------------------------
def part_report(graph: Graph, outline: Outline, tally: Tally, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What one graph knows after a micro-batch, as JSON. ``before``: its last report."""
    known = {} if before is None else {_place(w): w for w in before["waits"]}
    waits = [_wait_json(wait, outline, tally.batch, known) for wait in graph.waits_for() if wait.holds != "promises"]
    windows = {node.name: op for node in graph.nodes if isinstance(op := node.operator, WindowOperator)}
    for wait in waits:
        if (window := windows.get(wait["at"])) is not None:
            wait["groups"], wait["ends"] = window.slowest(SLOWEST), window.open_ends(RUNS)
    state = {node.name: size for node in graph.nodes if (size := node.operator.state_bytes())}
    return {"format": FORMAT, "tally": tally.to_json(), "waits": waits, "state": state}


def note_judge(tally: Tally, source: str, judge: Judge, asked: int | None = None) -> None:
    """What a source has promised by its rule, and how far its partitions have come, if it promises for each. ``asked``:
    when it was, if that is new.
    """
    tally.note_promise(source, judge.promises.low)
    seen = tally.sources.setdefault(source, Seen())
    seen.asked = asked
    reached = _reached(judge)
    seen.parts = tuple(sorted(reached.items(), key=lambda each: (each[1], each[0]))[:SLOWEST])
    seen.parts_there = sum(at > START for at in reached.values())


def _reached(judge: Judge) -> dict[str, int]:
    """How far each partition has come: by its rows, or by an answer that says as much."""
    rule, memory = judge.rule, judge.memory
    inner = INNER if isinstance(rule, Asked) else ""
    by = rule.rule if isinstance(rule, Asked) else rule
    if not isinstance(by, BySource):
        return {}
    tops = memory.get(f"{inner}tops")
    known = [] if tops is None else tops.select(PART, pl.col(PROGRESS).fill_null(START)).rows()
    found = {str(part): int(top) for part, top in known}  # from some nothing has come
    asked = memory.get("asked")
    for part, floor in () if asked is None else asked.select(PART, "floor").drop_nulls().rows():
        name = str(json.loads(part))
        found[name] = max(found.get(name, START), floor + by.slack if floor > START else START)
    return found


def _place(wait: Mapping[str, Any]) -> tuple[Any, ...]:
    return wait["at"], wait["port"], wait["promise"]


def _wait_json(wait: Wait, outline: Outline, batch: int, known: Mapping[tuple[Any, ...], Any]) -> dict[str, Any]:
    stage, operator = stage_of(wait.at), operator_of(wait.at)
    before = known.get((wait.at, wait.port, wait.promise))
    found = {**asdict(wait), "stage": stage, "operator": operator, "groups": [], "ends": []}
    if before is not None:
        return {**found, "asks": before["asks"], "batch": before["batch"]}
    ways = outline.ways.get(stage)
    asks = {} if ways is None else ways.asks(operator, wait.port, wait.promise)
    return {**found, "asks": asks, "batch": batch}


def stage_of(name: str) -> int:
    """The stage of a node by its name; -1 outside of stages."""
    scope = name.split("/", 1)[0]
    return int(scope.removeprefix("stage")) if scope.startswith("stage") else -1


def operator_of(name: str) -> str:
    """The operator of a node, or of a part of it, by its name.

    >>> operator_of("stage0/1-paned"), operator_of("stage0/query1/2-merge")
    ('paned', 'merge')
    """
    return name.rsplit("/", 1)[-1].partition("-")[2]


# -- of all shards -----------------------------------------------------------------------------------------------------
def merged(parts: Iterable[Mapping[str, Any]], times: Mapping[int, int] | None = None) -> Report:
    """The report of a query from those of its shards."""
    found = [part for part in parts if part.get("format") == FORMAT]
    outlines = [Outline.from_json(part["outline"]) for part in found if part.get("outline")]
    outline = outlines[0] if outlines else NOTHING
    total, last = Tally(), max((part["tally"]["batch"] for part in found), default=-1)
    recent: dict[str, list[int]] = {}
    for part in found:
        tally = Tally.from_json(part["tally"])
        total.join(tally)
        for key, seen in tally.sources.items():
            total.sources[key] = seen  # only one shard knows about sources
        for name, (taken, given) in tally.recent.items() if tally.batch == last else ():
            counts = recent.setdefault(name, [0, 0])
            counts[0], counts[1] = counts[0] + taken, counts[1] + given
        total.recent_results += tally.recent_results if tally.batch == last else 0
    for name in ("late", "bad"):
        for key, aside in getattr(total, name).items():
            own = [getattr(Tally.from_json(part["tally"]), name).get(key) for part in found]
            aside.batch = max(a.batch for a in own if a is not None)
            aside.recent = sum(a.recent for a in own if a is not None and a.batch == aside.batch)
    sources = tuple(
        Source(each, total.sources.get(each.key, Seen()), total.rows.get(each.name, 0)) for each in outline.sources
    )
    state: dict[str, int] = {}
    for part in found:
        for name, size in part["state"].items():
            state[name] = state.get(name, 0) + size
    lines = _parts(total.flows, recent, state)
    held = _held([wait for part in found for wait in part["waits"]])
    return Report(
        outline,
        last,
        sources,
        held,
        lines,
        total.late,
        total.bad,
        total.results,
        total.recent_results,
        len(found),
        dict(times or {}),
    )


def _parts(
    flows: Mapping[str, Sequence[int]], recent: Mapping[str, Sequence[int]], state: Mapping[str, int]
) -> tuple[Part, ...]:
    """A line for each operator: rows are counted under its name, or under its source and its name."""
    found, left = [], dict(state)
    for key in flows:
        source, _, name = key.rpartition(OF)
        (taken, given), (taken_now, given_now) = flows[key], recent.get(key, (0, 0))
        found.append(Part(name, source, taken, given, taken_now, given_now, left.pop(name, 0)))
    return *found, *(Part(name, bytes=size) for name, size in left.items())


def _held(waits: Sequence[Mapping[str, Any]]) -> tuple[Held, ...]:
    """The waits of all shards, together where they are of the same operator."""
    by: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for wait in waits:
        by.setdefault((wait["stage"], wait["at"], wait["port"]), []).append(wait)
    found = []
    for (stage, at, port), same in by.items():
        first = min(same, key=lambda wait: int(wait["promise"]))
        groups = sorted(((g, v) for wait in same for g, v in wait["groups"]), key=lambda pair: int(pair[1]))
        found.append(
            Held(
                stage,
                operator_of(at),
                port,
                first["holds"],
                sum(wait["count"] for wait in same),
                sum(wait["bytes"] for wait in same),
                first["promise"],
                min(wait["since"] for wait in same),
                first["asks"],
                first["batch"],
                tuple((str(group), int(value)) for group, value in groups[:SLOWEST]),
                tuple(sorted({(int(low), int(high)) for wait in same for low, high in wait["ends"]})),
            )
        )
    return tuple(sorted(found, key=lambda each: (each.stage, each.port)))
