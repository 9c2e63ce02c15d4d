"""Warned: one line about a query that is probably not meant so, with the remedy. And what rules look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from windrow.hosts.outline import StageOutline
from windrow.hosts.report import Report, Source
from windrow.hosts.why.case import Cause

ENOUGH = 1000  # rows before anything is said about all of them
SECOND = 1_000_000


@dataclass(frozen=True)
class Warned:
    """``about``: what it is about, a source or a part of the plan. ``hint``: it may well be meant so."""

    rule: str
    about: str
    says: str
    hint: bool = False

    @property
    def key(self) -> str:
        """Each is said once."""
        return f"{self.rule} {self.about}"

    @property
    def line(self) -> str:
        """As users see it."""
        return f"{'hint' if self.hint else 'warning'}: {self.says}"


@dataclass(frozen=True)
class Looked:
    """What a rule looks at. ``before``: earlier reports of the same query, the oldest first. ``endless``: the names of
    the sources that have no end. ``final``: nothing will follow.
    """

    report: Report
    before: tuple[Report, ...] = ()
    endless: frozenset[str] = frozenset()
    final: bool = False

    def windows(self) -> Iterator[tuple[StageOutline, int, Source]]:
        """The windows of fixed length over the progress values of sources: the stage, its length, and each source."""
        for stage in self.report.outline.stages:
            for key in stage.sources:
                source = self.report.source(key)
                if stage.length is not None and source is not None and source.declared.kind == stage.kind:
                    yield stage, stage.length, source


Rule = Callable[[Looked], Iterator[Warned]]


def from_cause(rule: str, cause: Cause) -> Warned:
    """The warning where ``why`` would find the same."""
    return Warned(rule, cause.source or "", f"{cause.sentence} {cause.remedy}")
