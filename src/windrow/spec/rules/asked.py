"""Asked: promises of a source that is asked how far it has come, when it has nothing more to give (Bai et al., 4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from windrow.progress import START, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.rules.by_source import PART, BySource
from windrow.spec.rules.rule import Rule
from windrow.spec.time import DAY

ASKED, ALL, HEARD = "@asked", "@all", "@heard"
ANSWERS = {PART: pl.String, ASKED: pl.Int64, ALL: pl.Boolean, HEARD: pl.Boolean}
MEMORY = {PART: pl.String, "floor": pl.Int64, "quiet": pl.Int64}
INNER = "inner/"  # begins the names of what the other rule remembers


class Answer(NamedTuple):
    """What a source, or a partition of it, said when it was asked. ``part``: as JSON; None: all of the source.

    ``asked``: when, in microseconds since 1970; None: it was not asked, and only ``heard`` is known. ``all``: whether
    all rows that were there at that time have been read; None: they have if there were none. ``heard``: whether there
    were rows since it was last asked.
    """

    part: str | None
    asked: int | None
    all: bool | None
    heard: bool


def answers(given: Iterable[Answer]) -> Batch:
    """Answers as evidence for a judge."""
    return pl.DataFrame([tuple(each) for each in given], schema=ANSWERS, orient="row")


def part_text(part: Any) -> str:
    """A source partition as answers name it."""
    return json.dumps(part, default=str)


@dataclass(frozen=True)
class Asked(Rule):
    """``rule``, and what follows from answers: a source that has given all it had at some time promises for then.

    ``delay``: in microseconds, how much older than the time of its arrival a row can be. All rows that arrive later
    have at least that time less the delay. ``idle_after``: a source without rows for so long is taken to have none
    that are older than that (Li 8.1, Gigascope's rule for lulls). That is a guess: a row that proves it wrong is late
    once its windows are released. Without ``rule`` the source makes its other promises elsewhere.

    >>> rule = Asked(None, delay=5)
    >>> rule.asked({}, answers([Answer(None, 100, True, False)]))[1]
    95
    >>> rule.asked({}, answers([Answer(None, 100, False, True)]))[1] is None   # some of its rows are not read yet
    True
    """

    rule: Rule | None
    delay: int | None = None
    idle_after: int | None = None
    days: bool = False  # the progressing attribute is a date

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.rule is None else self.rule.columns

    @property
    def by(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.rule is None else self.rule.by

    @property
    def claims(self) -> bool:  # type: ignore[override]
        return self.rule is not None and self.rule.claims

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return "" if self.rule is None else self.rule.says(attribute, span)

    def check(self, in_order: bool) -> str | None:
        return None if self.rule is None else self.rule.check(in_order)

    def evidence(self, batch: Batch) -> Batch:
        assert self.rule is not None
        return self.rule.evidence(batch)

    # -- judging -----------------------------------------------------------------------------------------------
    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        assert self.rule is not None
        mine = {k: v for k, v in memory.items() if not k.startswith(INNER)}
        inner, value = self.rule.promise(_inner(memory), evidence)
        memory = {**mine, **{INNER + k: v for k, v in inner.items()}}
        return memory, self._together(memory, value)

    def asked(self, memory: State, given: Batch) -> tuple[State, int | None]:
        """What is remembered after some answers, and what can be promised. They name all partitions that there are."""
        before = {part: (floor, quiet) for part, floor, quiet in memory["asked"].rows()} if "asked" in memory else {}
        found = dict(self._after(before, (Answer(*row) for row in given.rows())))
        rows = [(part, *floor_and_quiet) for part, floor_and_quiet in found.items()]
        memory = {**memory, "asked": pl.DataFrame(rows, schema=MEMORY, orient="row")}
        return memory, self._together(memory, None)

    def _after(
        self, before: dict[str | None, tuple[int, int | None]], given: Iterable[Answer]
    ) -> Iterator[tuple[str | None, tuple[int, int | None]]]:
        for part, at, everything, heard in given:
            floor, quiet = before.get(part, (START, None))
            complete = not heard if everything is None else everything
            if heard or not complete or quiet is None:
                quiet = at  # it was not idle until then
            if at is not None and complete:
                floor = max(floor, self._promised(at, quiet))
            yield part, (floor, quiet)

    def _promised(self, at: int, quiet: int | None) -> int:
        found = START
        if self.delay is not None:
            found = self._instant(at - self.delay)
        if self.idle_after is not None and quiet is not None and at - quiet >= self.idle_after:
            found = max(found, self._instant(at - self.idle_after))
        return found

    def _instant(self, micros: int) -> int:
        return micros // DAY if self.days else micros

    def _together(self, memory: State, value: int | None) -> int | None:
        """The strongest promise for everyone that follows from the rule and from the answers."""
        floors = self._floors(memory)
        everyone = floors.get(None, START)
        if isinstance(self.rule, BySource):
            value = self.rule.slowest(
                _inner(memory), {part: f for part, f in floors.items() if part is not None}, everyone
            )
        best = max(everyone, START if value is None else value)
        return best if best > START else None

    def _floors(self, memory: State) -> dict[str | None, int]:
        return {part: floor for part, floor, _ in memory["asked"].rows()} if "asked" in memory else {}

    def groups(self, memory: State) -> list[Punctuation]:
        if self.rule is None:
            return []
        inner = _inner(memory)
        found = {promise.group: promise for promise in self.rule.groups(inner)} if inner else {}
        if isinstance(self.rule, BySource):
            for part, floor in self._floors(memory).items():
                group = None if part is None else (json.loads(part),)
                if group is not None and floor > START and (group not in found or found[group].value < floor):
                    found[group] = Punctuation(floor, group)
        return list(found.values())

    def is_quiet(self, memory: State) -> bool:
        """Whether all of the source has been without rows since some time at which it was asked."""
        return "asked" in memory and memory["asked"].filter(pl.col(PART).is_null())["quiet"].count() > 0

    # -- when to ask -------------------------------------------------------------------------------------------
    def helps_at(self, memory: State | None, needed: int) -> int:
        """The least time of asking, in microseconds, at which an answer can promise what is needed, if no rows come.

        It is 0 if that is not known: an answer has to say first when the source became idle. ``memory``: None where
        the judge is elsewhere.
        """
        micros = needed * DAY if self.days else needed
        if self.delay is not None:
            return max(micros + self.delay, 0)
        assert self.idle_after is not None
        floors = memory["asked"].rows() if memory is not None and "asked" in memory else []
        behind = [quiet for _, floor, quiet in floors if floor < needed]
        if not behind or any(quiet is None for quiet in behind):
            return 0
        return max(micros, *(int(quiet) for quiet in behind), 0) + self.idle_after


def _inner(memory: State) -> State:
    return {k.removeprefix(INNER): v for k, v in memory.items() if k.startswith(INNER)}
