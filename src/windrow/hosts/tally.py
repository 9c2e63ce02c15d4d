"""Tally: what a host notes while rows go by, for its reports. All of it adds up, over tasks and over micro-batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from windrow.graph import Memory
from windrow.operators.operator import Item, Side
from windrow.progress import END, START
from windrow.spec.names import PROGRESS, REASON

EXAMPLES = 3  # of late rows, and of each reason why rows are bad
REASONS = 5
WIDTH = 300  # characters of an example
EPOCH = datetime(1970, 1, 1)
OF = "\t"  # between a source and a node that takes its rows only
SLOWEST = 5  # partitions of a source, and groups, that are named


class Flows(Memory):
    """Rows in and out of each node since the last ``take``, and the progress values of those nodes that are watched."""

    def __init__(self, watched: Mapping[int, str]) -> None:
        super().__init__()
        self.watched = dict(watched)  # nodes that rows pass as they enter, and the sources that they are of
        self.rows_of: dict[int, list[int]] = {}
        self.spans: dict[str, list[int]] = {}

    def anew(self) -> Memory:
        return self

    def ran(self, node: int, item: Item, produced: Iterable[Item]) -> None:
        counts = self.rows_of.setdefault(node, [0, 0])
        if isinstance(item, pl.DataFrame):
            counts[0] += item.height
        for each in produced:
            if isinstance(each, pl.DataFrame) and each.height:
                counts[1] += each.height
                if node in self.watched and PROGRESS in each.columns:
                    self._span(self.watched[node], each[PROGRESS])

    def _span(self, source: str, at: pl.Series) -> None:
        low, high = int(at.min()), int(at.max())  # type: ignore[arg-type]
        span = self.spans.setdefault(source, [low, high])
        span[0], span[1] = min(span[0], low), max(span[1], high)

    def arrived(self, item: Item) -> None:
        pass

    def left(self, item: Item) -> None:
        pass

    def take(self) -> tuple[dict[int, list[int]], dict[str, list[int]]]:
        """Rows in and out by node, and by source the least and the greatest progress value; counting begins anew."""
        found = self.rows_of, self.spans
        self.rows_of, self.spans = {}, {}
        return found


@dataclass
class Seen:
    """What is known of a source as it is read. ``recent``: of the last micro-batch in which it had rows, how many, and
    their least and greatest progress value. ``came`` and ``moved``: the last micro-batches in which rows came, and in
    which it promised more than before. ``first``: the first in which rows came.
    """

    rows: int = 0
    promised: int = START
    least: int | None = None
    greatest: int | None = None
    recent: tuple[int, int | None, int | None] = (0, None, None)
    first: int = -1
    came: int = -1
    moved: int = -1
    back: int = 0  # how far the rows of the last micro-batch with any reach back behind the greatest value before
    missed: int = 0  # how many micro-batches with rows of other sources there were since its last row
    parts: tuple[tuple[str, int], ...] = ()  # the slowest partitions, and how far each has come
    parts_there: int = 0
    same: int = -1  # since which micro-batch the slowest partition is the same, and has come as far
    asked: int | None = None  # when it was last asked for what it has, in microseconds of the wall clock

    def add(self, other: Seen, batch: int) -> None:
        """What has been seen in a micro-batch."""
        if other.rows:
            self.rows += other.rows
            self.first = batch if self.first < 0 else self.first
            self.came = batch
            self.recent = other.rows, other.least, other.greatest
            known = self.greatest is not None and other.least is not None
            self.back = max(0, self.greatest - other.least) if known else 0  # type: ignore[operator]
        if other.least is not None and other.greatest is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
            self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)
        if other.promised > self.promised:
            self.promised, self.moved = other.promised, batch
        if other.parts:
            self.same = batch if self.parts[:1] != other.parts[:1] else self.same
            self.parts, self.parts_there = other.parts, other.parts_there
        self.asked = self.asked if other.asked is None else other.asked

    def join(self, other: Seen) -> None:
        """What another task has seen in the same micro-batch."""
        self.rows += other.rows
        spans = [v for v in (self.least, self.greatest, other.least, other.greatest) if v is not None]
        self.least, self.greatest = (min(spans), max(spans)) if spans else (None, None)
        self.promised = max(self.promised, other.promised)
        if other.parts:
            self.parts, self.parts_there = other.parts, other.parts_there
        self.asked = self.asked if other.asked is None else other.asked


@dataclass
class Aside:
    """Rows that left by the side: late ones of an operator, or bad ones for a reason. ``recent``: of the last batch in
    which there were any, which is ``batch``.
    """

    count: int = 0
    recent: int = 0
    batch: int = -1
    examples: list[str] = field(default_factory=list)

    def add(self, other: Aside, batch: int) -> None:
        if other.count:
            self.count += other.count
            self.recent, self.batch = other.count, batch
            self.examples = [*other.examples, *self.examples][:EXAMPLES]

    def join(self, other: Aside) -> None:
        self.count += other.count
        self.examples = [*self.examples, *other.examples][:EXAMPLES]


@dataclass
class Tally:
    """``sources`` by key; ``flows``: rows in and out by the name of a node, and ``steps`` what was in the last batch;
    ``late`` by node; ``bad`` by where and reason.
    """

    batch: int = -1
    rows: dict[str, int] = field(default_factory=dict)  # read, by the name of a source
    results: int = 0
    recent_results: int = 0
    sources: dict[str, Seen] = field(default_factory=dict)
    flows: dict[str, list[int]] = field(default_factory=dict)
    recent: dict[str, list[int]] = field(default_factory=dict)
    late: dict[str, Aside] = field(default_factory=dict)
    bad: dict[str, Aside] = field(default_factory=dict)

    # -- one micro-batch, or part of it ------------------------------------------------------------------------
    def note_side(self, where: str, side: Side) -> None:
        """What left by the side of a node."""
        if side.kind in ("late", "revised") and side.count:
            self.late.setdefault(where, Aside()).join(Aside(side.count, examples=_examples(side.rows)))
        elif side.kind == "bad" and side.count:
            for reason, count, examples in _reasons(side):
                key = f"{where}\t{reason}"
                if key in self.bad or len(self.bad) < REASONS:
                    self.bad.setdefault(key, Aside()).join(Aside(count, examples=examples))

    def note_flows(self, names: Mapping[int, str], flows: Flows, prefix: str = "") -> None:
        """What went through the nodes of a graph since the last time."""
        rows, spans = flows.take()
        for node, (taken, given) in rows.items():
            if node in names:
                counts = self.flows.setdefault(f"{prefix}{names[node]}", [0, 0])
                counts[0], counts[1] = counts[0] + taken, counts[1] + given
        for source, (low, high) in spans.items():
            self.sources.setdefault(source, Seen()).join(Seen(least=low, greatest=high))
        good: dict[str, int] = {}
        for node, source in flows.watched.items():  # the same rows may pass several
            good[source] = max(good.get(source, 0), rows.get(node, [0, 0])[1])
        for source, count in good.items():
            self.sources.setdefault(source, Seen()).rows += count

    def note_promise(self, source: str, promised: int) -> None:
        """What a source has promised about everyone."""
        if START < promised < END:
            seen = self.sources.setdefault(source, Seen())
            seen.promised = max(seen.promised, promised)

    # -- sums --------------------------------------------------------------------------------------------------
    def join(self, other: Tally) -> None:
        """What another task of the same micro-batch has noted."""
        for key, seen in other.sources.items():
            self.sources.setdefault(key, Seen()).join(seen)
        for mine, theirs in ((self.late, other.late), (self.bad, other.bad)):
            for key, aside in theirs.items():
                mine.setdefault(key, Aside()).join(aside)
        for name, (taken, given) in other.flows.items():
            counts = self.flows.setdefault(name, [0, 0])
            counts[0], counts[1] = counts[0] + taken, counts[1] + given
        for name, rows in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows
        self.results += other.results

    def add(self, other: Tally, batch: int) -> None:
        """A whole micro-batch after those before."""
        self.batch = batch
        came = any(seen.rows for seen in other.sources.values())
        for key, seen in other.sources.items():
            self.sources.setdefault(key, Seen()).add(seen, batch)
        for seen in self.sources.values():
            seen.missed = 0 if seen.came == batch else seen.missed + came
        for mine, theirs in ((self.late, other.late), (self.bad, other.bad)):
            for key, aside in theirs.items():
                mine.setdefault(key, Aside()).add(aside, batch)
        while len(self.bad) > REASONS:
            self.bad.pop(min(self.bad, key=lambda key: self.bad[key].count))
        for name, (taken, given) in other.flows.items():
            counts = self.flows.setdefault(name, [0, 0])
            counts[0], counts[1] = counts[0] + taken, counts[1] + given
        self.recent = other.flows
        for name, rows in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows
        self.results += other.results
        self.recent_results = other.results

    # -- as text -----------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Tally:
        seen = {key: _seen(known) for key, known in given["sources"].items()}
        sides = {name: {key: Aside(**aside) for key, aside in given[name].items()} for name in ("late", "bad")}
        return cls(**{**given, "sources": seen, **sides})


def _seen(given: Mapping[str, Any]) -> Seen:
    parts = tuple((str(name), int(value)) for name, value in given["parts"])
    return Seen(**{**given, "recent": tuple(given["recent"]), "parts": parts})


def _examples(rows: pl.DataFrame) -> list[str]:
    """Some rows as JSON. Bad rows have values that nothing else can show, so this goes value by value."""
    some = rows.head(EXAMPLES)
    columns = {name: _values(some[name]) for name in some.columns if not name.startswith("@")}
    found = ({name: values[at] for name, values in columns.items()} for at in range(some.height))
    return [json.dumps(row, default=str, ensure_ascii=False)[:WIDTH] for row in found if row]


UNITS = {"ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}  # of timestamps: microseconds are times this, over that


def _at(value: int | None, day: bool = False, unit: str = "us") -> str | int | None:
    if value is None:
        return None
    times, over = UNITS[unit]
    try:
        at = EPOCH + (timedelta(days=value) if day else timedelta(microseconds=value * times // over))
    except OverflowError:
        return value
    return str(at.date() if day else at)


def _values(column: pl.Series) -> list[Any]:
    """Values as JSON has them; dates and timestamps as text, and as numbers where no calendar has them."""
    dtype = column.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return [f"a value of type {dtype.base_type()}"] * len(column)
    if not dtype.is_temporal():
        return column.to_list()
    numbers = column.to_physical().to_list()
    if isinstance(dtype, pl.Datetime):
        return [_at(number, unit=dtype.time_unit) for number in numbers]
    return [_at(number, day=True) for number in numbers] if dtype == pl.Date else numbers


def _reasons(side: Side) -> Iterator[tuple[str, int, list[str]]]:
    """The most frequent reasons of bad rows."""
    if REASON not in side.rows.columns or not side.rows.height:
        yield "unknown", side.count, []
        return
    counts = side.rows[REASON].value_counts(sort=True)
    for reason, count in counts.head(REASONS).rows():
        yield str(reason), int(count), _examples(side.rows.filter(pl.col(REASON) == reason).drop(REASON))


def encoded(content: Mapping[str, Any]) -> bytes:
    """A report, or part of one, as text."""
    return json.dumps(content, separators=(",", ":")).encode()
