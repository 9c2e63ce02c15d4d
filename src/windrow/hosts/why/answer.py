"""The answer: the first cause that a report shows, one sentence, and a small table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from windrow.hosts.report import Report, Source, shown
from windrow.hosts.why.case import Case, Cause, amount
from windrow.hosts.why.causes import CAUSES

if TYPE_CHECKING:
    from windrow.hosts.warnings import Warned

MOST = 8  # operators in the table


@dataclass(frozen=True)
class Why:
    """Why a query has no output, or not all of it. ``cause`` is what was found, ``report`` all that is known."""

    cause: Cause
    report: Report

    @cached_property
    def warnings(self) -> list[Warned]:
        """What else the report shows that is probably not meant so. Hints are for ``explain`` and ``windrow run``."""
        from windrow.hosts.warnings import Looked, warned

        found = [each for each in warned(Looked(self.report)) if not each.hint]
        return [each for each in found if not each.says.startswith(self.cause.sentence)]

    @property
    def text(self) -> str:
        """In plain words: one sentence, what to do, and a small table."""
        warnings = ["", *(each.line for each in self.warnings)] if self.warnings else []
        parts = [self.cause.sentence, self.cause.remedy, *warnings, "", *_table(_sources(self))]
        parts += ["", *_table(_waits(self.report))] if self.report.held else []
        parts += _asides(self.report)
        state = _table(_state(self.report))
        return "\n".join([*parts, *(["", *state] if len(state) > 1 else [])]).replace("\n\n\n", "\n\n")

    def __str__(self) -> str:
        return self.text

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        warnings = [asdict(each) for each in self.warnings]
        return {"cause": asdict(self.cause), "warnings": warnings, "report": self.report.as_json()}

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.cause.sentence)}</b></p><pre>{escape(self.text.partition(chr(10))[2])}</pre>"


def why(report: Report) -> Why:
    """The first cause that fits."""
    case = Case(report)
    found = next(cause for rule in CAUSES if (cause := rule(case)) is not None)
    return Why(found, report)


def _sources(answer: Why) -> list[list[str]]:
    case = Case(answer.report)
    rows = [["source", "rows", "last promise", "needed", "from", "to", "last rows in"]]
    for source in answer.report.sources:
        needs, behind = case.needs(source), source in case.behind
        came = f"micro-batch {source.seen.came}" if source.seen.came >= 0 else "none"
        values = [source.promised, needs if behind else None, source.seen.least, source.seen.greatest]
        texts = [source.text(value) if value is not None else "" for value in values]
        rows.append([_name(source, answer.report), f"{source.read:,}", *texts, came])
        rows += [[f"  {part}", "", "", "", "", source.text(reached), ""] for part, reached in source.seen.parts]
    return rows


def _name(source: Source, report: Report) -> str:
    alone = sum(other.name == source.name for other in report.sources) == 1
    return source.name if alone else f"{source.name} on {source.declared.attribute}"


def _waits(report: Report) -> list[list[str]]:
    rows = [["waits", "holds", "bytes", "for", "since micro-batch"]]
    for held in report.held:
        stage = report.stage(held.stage)
        wanted = shown(held.promise, "" if stage is None else stage.kind)
        name = f"stage {held.stage} {held.operator}" + (f", input {held.port}" if held.port else "")
        rows.append([name, amount(held), f"{held.bytes:,}", wanted, str(held.batch)])
    return rows


def _asides(report: Report) -> list[str]:
    lines = [""]
    for where, aside in report.late.items():
        lines.append(f"late: {aside.count:,} rows at {where}")
        lines += [f"  {example}" for example in aside.examples]
    for where, aside in report.bad.items():
        at, _, reason = where.partition("\t")
        lines.append(f"bad: {aside.count:,} rows of {at}: {reason}")
        lines += [f"  {example}" for example in aside.examples]
    return lines if len(lines) > 1 else []


def _state(report: Report) -> list[list[str]]:
    largest = sorted((part for part in report.parts if part.bytes), key=lambda part: -part.bytes)
    return [["state", "bytes"], *([part.name, f"{part.bytes:,}"] for part in largest[:MOST])]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, without those that are empty."""
    used = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in used}
    return ["  ".join(row[i].ljust(widths[i]) for i in used).rstrip() for row in rows]
