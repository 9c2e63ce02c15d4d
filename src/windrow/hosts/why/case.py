"""Case: what the rules ask of a report. The wait that matters, the sources that hold it back, and in what words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from windrow.hosts.outline import DATE, ROWS, TIME, ZONED
from windrow.hosts.report import Held, Report, Source, clock, shown
from windrow.logical.explain import span
from windrow.progress import END, START

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000


@dataclass(frozen=True)
class Cause:
    """Why results do not come, or that all is well. ``name`` says which rule has found it. ``source`` is the culprit,
    ``at`` its partition or group, ``last`` its last promise, ``needs`` the promise that would release something,
    ``since`` when it has been so, ``held`` how much waits, ``ready`` the windows that wait for the culprit alone, and
    ``upto`` the end of the last of them. ``remedy`` is what to do.
    """

    name: str
    sentence: str
    remedy: str = ""
    source: str | None = None
    at: str | None = None
    last: str | None = None
    needs: str | None = None
    since: str | None = None
    held: int = 0
    holds: str = ""
    ready: int = 0
    upto: str | None = None


def length(value: int, kind: str) -> str:
    """A length of a progressing attribute in words: of long ones the two largest units.

    >>> length(19_800_000_000, "timestamp"), length(90_000_000_000_000, "timestamp"), length(7, "integer")
    ('5 hours 30 minutes', '1041 days 16 hours', '7')
    """
    if kind in (TIME, ZONED):
        size = next((size for size in (DAY, HOUR, MINUTE) if value > size), None)
        if size is None:
            return span(value, pl.Datetime("us"))
        smaller = {DAY: HOUR, HOUR: MINUTE, MINUTE: SECOND}[size]
        parts = (value // size * size, value % size // smaller * smaller)
        return " ".join(span(part, pl.Datetime("us")) if part % DAY else _days(part) for part in parts if part)
    return span(value, pl.Date() if kind == DATE else pl.Int64())


def _days(value: int) -> str:
    return f"{value // DAY} day{'s' * (value != DAY)}"


def amount(held: Held) -> str:
    """How much an operator holds."""
    one = held.holds.replace("rows", "row").replace("partials", "partial")
    return f"{held.count:,} {one if held.count == 1 else held.holds}"


def merged_runs(runs: Iterable[tuple[int, int]], step: int) -> list[tuple[int, int]]:
    """Runs of several shards put together.

    >>> merged_runs([(0, 10), (5, 20), (40, 40)], 5)
    [(0, 20), (40, 40)]
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(runs):
        if found and low <= found[-1][1] + step:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


@dataclass(frozen=True)
class Case:
    """A report, as the rules look at it."""

    report: Report

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        return self.report.sources

    @cached_property
    def wait(self) -> Held | None:
        """The wait to explain: the first on the way from the sources to the result that holds anything."""
        held = [each for each in self.report.held if each.count]
        return min(held, key=lambda each: (not self._behind(each), each.stage, -each.count), default=None)

    @cached_property
    def behind(self) -> tuple[Source, ...]:
        """The sources that hold the wait back, the one that is furthest behind first."""
        return () if self.wait is None else self._behind(self.wait)

    def _behind(self, wait: Held) -> tuple[Source, ...]:
        short = {key: asked - self._promised(key) for key, asked in wait.asks.items()}
        keys = sorted((key for key, missing in short.items() if missing > 0), key=lambda key: -short[key])
        return tuple(source for key in keys if (source := self.report.source(key)) is not None)

    def _promised(self, key: str) -> int:
        source = self.report.source(key)
        return START if source is None else source.promised

    @cached_property
    def others(self) -> tuple[Source, ...]:
        """The sources behind the same wait that have promised enough."""
        if self.wait is None:
            return ()
        behind = {source.declared.key for source in self.behind}
        found = (self.report.source(key) for key in self.wait.asks if key not in behind)
        return tuple(source for source in found if source is not None)

    def needs(self, source: Source) -> int | None:
        """The promise that a source has to make for the wait to end."""
        return None if self.wait is None else self.wait.asks.get(source.declared.key)

    def is_active(self, source: Source) -> bool:
        """Whether rows of a source keep coming: it has not been left out more often than taking turns explains."""
        return source.seen.came >= 0 and source.seen.missed < max(2, len(self.sources))

    # -- in words ----------------------------------------------------------------------------------------------
    def last(self, source: Source) -> str:
        """The last promise of a source, in a sentence."""
        if source.promised == START:
            return "it has promised nothing yet"
        return f"last promise {source.text(source.promised)}"

    def since(self, source: Source) -> str:
        """Since when a source has not promised more."""
        return "the start" if source.seen.moved < 0 else self.when(source.seen.moved)

    def when(self, batch: int) -> str:
        """A micro-batch, and when it began, if that is known."""
        began = clock(self.report.times.get(batch))
        return f"micro-batch {batch}" + ("" if began is None else f" ({began} by the wall clock)")

    @cached_property
    def ready(self) -> tuple[int, int | None]:
        """Of a wait of windows: how many have ended as far as the other sources know, and the end of the last one."""
        wait = self.wait
        stage = None if wait is None else self.report.stage(wait.stage)
        if wait is None or stage is None or not stage.slide or not self.others or wait.promise == END:
            return 0, None
        reached = [s.promised + wait.promise - wait.asks[s.declared.key] for s in self.others]
        upto = min(reached)
        if upto < wait.promise:
            return 0, None
        ends = merged_runs(wait.ends, stage.slide)
        ready = [(low, min(high, low + (upto - low) // stage.slide * stage.slide)) for low, high in ends if low <= upto]
        if not ready:
            return 0, None
        return sum((high - low) // stage.slide + 1 for low, high in ready), max(high for _, high in ready)

    @cached_property
    def held_text(self) -> str:
        """What waits, in a sentence: windows that are ready but for the culprit, or rows."""
        wait = self.wait
        if wait is None:
            return "nothing waits"
        count, upto = self.ready
        if count and upto is not None:
            windows = "window up to {} is" if count == 1 else "windows up to {} are"
            return f"{count:,} {windows.format(self.waits_text(upto))} ready but for it"
        held = f"{amount(wait)} {'is' if wait.count == 1 else 'are'} held"
        return f"{held} until {self.waits_text(wait.promise)}" if wait.promise != END else f"{held} until the end"

    def waits_text(self, value: int) -> str:
        """A value in terms of the operator that waits."""
        stage = None if self.wait is None else self.report.stage(self.wait.stage)
        text = shown(value, "" if stage is None else stage.kind)
        return f"row number {text}" if stage is not None and stage.kind == ROWS else text

    def cause(self, name: str, sentence: str, source: Source | None = None, remedy: str = "", at: str = "") -> Cause:
        """A cause with what is known of its source and of the wait."""
        count, upto = self.ready
        needs = None if source is None else self.needs(source)
        return Cause(
            name,
            sentence,
            remedy,
            None if source is None else source.name,
            at or None,
            None if source is None else source.text(source.promised),
            None if source is None or needs is None else source.text(needs),
            None if source is None else self.since(source),
            0 if self.wait is None else self.wait.count,
            "" if self.wait is None else self.wait.holds,
            count,
            None if upto is None else self.waits_text(upto),
        )
