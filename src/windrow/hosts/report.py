"""Report: what a running or stopped query knows about itself, in one typed form for all hosts.

Every shard makes a report of its own after each micro-batch: what its operators wait for, what they hold, what left by
the side. One of them also adds up what the map tasks send about the sources. ``merged`` puts them together. A report is
bounded: it has a line for each source, operator and wait, and a few examples, however much data there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from windrow.hosts.outline import DATE, TIME, ZONED, Outline, SourceOutline, StageOutline
from windrow.hosts.tally import Aside, Seen
from windrow.progress import END, START

FORMAT = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
