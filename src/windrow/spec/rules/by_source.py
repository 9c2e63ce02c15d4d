"""BySource: promises by the slowest source partition, and for each partition by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from windrow.progress import START, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.spec.rules.rule import Rule

PART = "@part"


@dataclass(frozen=True)
class BySource(Rule):
    """Each source partition is at most ``slack`` behind itself; the slowest of at least ``count`` says how far all are.

    Each also promises for itself: a group that is in one partition is as far as that, whatever the others do.

    >>> rule = BySource("p", 0, 2)
    >>> memory, promised = rule.promise({}, rule.evidence(pl.DataFrame({"@t": [5], "p": ["a"]})))
    >>> promised, rule.promise(memory, rule.evidence(pl.DataFrame({"@t": [3], "p": ["b"]})))[1]
    (None, 3)
    """

    column: str
    slack: int
    count: int

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    @property
    def by(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return (
            f"promises {span(self.slack)} behind the greatest {attribute} of the slowest {self.column}, "
            f"as soon as {self.count} are there"
        )

    def evidence(self, batch: Batch) -> Batch:
        return batch.group_by(pl.col(self.column).alias(PART), maintain_order=True).agg(pl.col(PROGRESS).max())

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        both = pl.concat([memory["tops"], evidence]) if "tops" in memory else evidence
        tops = both.group_by(PART, maintain_order=True).agg(pl.col(PROGRESS).max())
        slowest = int(tops[PROGRESS].min()) - self.slack if tops.height >= self.count else None  # type: ignore[arg-type]
        return {"tops": tops}, slowest

    def slowest(self, memory: State, floors: Mapping[str, int], everyone: int) -> int | None:
        """The same where some partitions are known to have come further: ``floors``, by the partition as JSON.

        Those that are there without a row are among them; ``everyone``: what holds for partitions not seen at all.
        """
        tops = dict(memory["tops"].rows()) if "tops" in memory else {}
        lows = {json.dumps(part, default=str): top - self.slack for part, top in tops.items()}
        known = {part: max(lows.get(part, START), floors.get(part, START), everyone) for part in {*lows, *floors}}
        found = min(known.values(), default=START)
        if len(known) < (self.count or 1):
            found = min(found, everyone)
        return found if found > START else None

    def groups(self, memory: State) -> list[Punctuation]:
        tops = memory["tops"].drop_nulls(PART)
        return [Punctuation(top - self.slack, (part,)) for part, top in tops.rows()]
