"""The exchange rows of a micro-batch, sorted out for the stages of a level."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import polars as pl

from windrow.hosts.spark.exchange import Kind, Row, decode
from windrow.hosts.spark.wiring import Hosted, Wiring
from windrow.operators.progress.meld import group_of
from windrow.progress import START, Box, Punctuation, grown
from windrow.progress import ended as ends_at
from windrow.spec.rules import ASKED, Answer, answers
from windrow.spec.rules.asked import HEARD
from windrow.spec.rules.by_source import PART

At = tuple[int, int]  # a stage and a port of it


@dataclass
class Sorted:
    """The exchange rows of a micro-batch for the stages of one level, sorted out."""

    rows: list[Row] = field(default_factory=list)
    noted: list[Row] = field(default_factory=list)  # for the report
    evidence: dict[At, list[Row]] = field(default_factory=dict)
    marks: dict[At, list[Row]] = field(default_factory=dict)
    answers: dict[At, list[Row]] = field(default_factory=dict)
    promised: dict[tuple[At, bytes | None], int] = field(default_factory=dict)
    reached: dict[At, int] = field(default_factory=dict)
    boxes: dict[At, tuple[Box, ...]] = field(default_factory=dict)
    _mine: frozenset[int] | None = None

    def mine(self, stages: Iterable[Hosted]) -> frozenset[int]:
        if self._mine is None:
            self._mine = frozenset(stage.number for stage in stages)
        return self._mine

    def take(self, row: Row) -> None:
        at = row.stage, row.port
        match row.kind:
            case Kind.DATA:
                self.rows.append(row)
            case Kind.EVIDENCE:
                self.evidence.setdefault(at, []).append(row)
            case Kind.MARKS:
                self.marks.setdefault(at, []).append(row)
            case Kind.ASKED if row.value or row.blob is not None:  # not of a task without rows and answers
                self.answers.setdefault(at, []).append(row)
            case Kind.PROMISE:
                about = at, row.blob
                self.promised[about] = max(self.promised.get(about, START), row.value)
            case Kind.BOXES:
                assert row.blob is not None
                given = tuple((a, b) for a, b in json.loads(row.blob))
                self.boxes[at] = grown(self.boxes.get(at, ()), given)
            case Kind.REACHED:
                self.reached[at] = max(self.reached.get(at, START), row.value)

    def data(self) -> Iterator[tuple[At, Row]]:
        """Rows arrive over the network in any order; a fixed order makes a repeated micro-batch equal to the first."""
        for row in sorted(self.rows, key=lambda row: (row.stage, row.port, row.tag)):
            yield (row.stage, row.port), row

    def asked_at(self, wired: Wiring, key: str) -> int | None:
        """When a source was asked, if its answers are in this micro-batch."""
        found = [_answers(rows)[ASKED].max() for at, rows in self.answers.items() if wired.keys.get(at) == key]
        return max((int(at) for at in found if at is not None), default=None)  # type: ignore[arg-type]

    def shown(self, wired: Wiring) -> Iterator[tuple[dict[At, int], At, pl.DataFrame]]:
        """What judges and audits take, and where. Answers come first: they say which partitions there are."""
        for at, rows in sorted(self.answers.items()):
            yield wired.shown, at, _answers(rows)
        for inputs, found in ((wired.shown, self.evidence), (wired.marked, self.marks)):
            for at, rows in sorted((at, rows) for at, rows in found.items() if at in inputs):  # finite: no judge
                yield inputs, at, pl.concat([decode(row.blob, "evidence") for row in in_order(rows)])

    def promises(self) -> Iterator[tuple[At, Punctuation]]:
        for (at, group), value in sorted(self.promised.items(), key=lambda p: (p[0][0], p[0][1] or b"")):
            if value > START:
                about = None if group is None else group_of(group.decode())
                boxes = self.boxes.get(at, ()) if about is None else ()
                yield at, Punctuation(value, about, boxes=boxes)

    def ends(self, wired: Wiring) -> Iterator[tuple[At, Punctuation]]:
        """The end of a finite input."""
        for at in wired.inputs:
            yield from ((at, promise) for promise in ends_at(START, self.reached.get(at)))


def in_order(rows: list[Row]) -> list[Row]:
    """As their senders made them, whatever order they came in."""
    return sorted(rows, key=lambda row: row.tag)


def _answers(rows: list[Row]) -> pl.DataFrame:
    """The answers of a source in a micro-batch; what all of it has heard, any of its parts may know."""
    heard = any(row.value for row in rows)
    found = [decode(row.blob, "an answer") for row in in_order(rows) if row.blob is not None]
    if not found:
        return answers([Answer(None, None, False, True)])
    everywhere = pl.col(PART).is_null() & heard
    return pl.concat(found).with_columns(pl.col(HEARD) | everywhere)
