"""WindowJoin: pairs of rows with equal keys and near times, whatever the order of arrival (OA-Join, Li 7.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from windrow.operators.operator import Item, Wait
from windrow.operators.state.keyed import banded, matched
from windrow.operators.state.late import on_time
from windrow.operators.state.runs import Runs
from windrow.progress import END, START, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS

OTHER = "@other"  # the progress value of the right row of a pair
On = Literal["left", "right", "later", "earlier"]  # which time of a pair is its progress value
SIDES = ("left", "right")


@dataclass
class Kept:
    """The rows of one side that can still find a partner, and what the side has promised."""

    runs: Runs = field(default_factory=Runs)
    promised: int = START
    reached: int | None = None  # of a side that has ended: how far it came


class WindowJoin:
    """A left and a right row are a pair if their keys are equal and ``low <= right time - left time <= high``.

    A pair comes out as soon as both rows are there. A row is kept until the promise of the other side says that no
    partner can come; one that cannot find any is not kept at all. NULL keys must not come here: they equal nothing.

    >>> join = WindowJoin(["k"], 0, 5)
    >>> join.on_batch(0, pl.DataFrame({"k": [1], "@t": [10], "a": ["x"]}))
    []
    >>> join.on_batch(1, pl.DataFrame({"k": [1, 1], "@t": [15, 16], "b": ["y", "z"]}))[0].rows()
    [(1, 'x', 'y', 15)]
    """

    def __init__(
        self, keys: Sequence[str], low: int, high: int, on: On = "later", where: pl.Expr | None = None
    ) -> None:
        self.keys = list(keys)
        self.low = low
        self.high = high
        self.on = on
        self.where = where
        self.sides = (Kept(), Kept())
        self.given = START
        self._saved = self._progress()

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        rows, late = on_time(batch, self.sides[port].promised, "drop")
        if not rows.height:
            return late
        other = self.sides[1 - port]
        nearest, farthest = self._reach(port)
        first, last = _span(rows)
        partners = other.runs.between(first + nearest, last + farthest)
        pairs = [found for part in partners if (found := self._pairs(port, rows, part)).height]
        self.sides[port].runs.push(rows.filter(pl.col(PROGRESS) + farthest >= other.promised))
        return [*([pl.concat(pairs)] if pairs else []), *late]

    def _reach(self, port: int) -> tuple[int, int]:
        """How far the partners of a row can be from it: the nearest and the farthest time less its own."""
        return (self.low, self.high) if port == 0 else (-self.high, -self.low)

    def _pairs(self, port: int, rows: Batch, partners: Batch) -> Batch:
        left, right = (rows, partners) if port == 0 else (partners, rows)
        right = right.rename({PROGRESS: OTHER})
        if self.keys:
            both = matched(left, right, self.keys, "inner").filter(
                (pl.col(OTHER) - pl.col(PROGRESS)).is_between(self.low, self.high)
            )
        else:
            both = banded(left, right, PROGRESS, OTHER, self.low, self.high)
        both = both.filter(self.where) if self.where is not None else both
        time = {
            "left": pl.col(PROGRESS),
            "right": pl.col(OTHER),
            "later": pl.max_horizontal(PROGRESS, OTHER),
            "earlier": pl.min_horizontal(PROGRESS, OTHER),
        }[self.on]
        return both.select(pl.exclude("^@.*$"), time.alias(PROGRESS))

    # -- promises ----------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        side = self.sides[port]
        if promise.group is not None or promise.value <= side.promised:
            return []
        side.promised, side.reached = promise.value, promise.reached
        self._free(1 - port)
        return list(self._news())

    def _free(self, port: int) -> None:
        """Rows of a side whose last partner would have come by now."""
        promised = self.sides[1 - port].promised
        self.sides[port].runs.free(promised if promised in (START, END) else promised - self._reach(port)[1])

    def _news(self) -> list[Punctuation]:
        """What the promises of both sides mean for a pair that is still to come, if that is new."""
        left, right = (side.promised for side in self.sides)
        value = self._promised(left, right)
        if value <= self.given:
            return []
        before, self.given = self.given, value
        return [Punctuation(value)] if value != END else ended(before, self._last())

    def _promised(self, left: int, right: int) -> int:
        """A pair to come has a left row or a right row to come; the other one can be as far off as the band is wide."""
        if START in (left, right):
            return START
        match self.on:
            case "later":
                return min(_moved(left, max(0, self.low)), _moved(right, max(0, -self.high)))
            case "left":
                return min(left, _moved(right, -self.high))
            case "right":
                return min(right, _moved(left, self.low))
            case "earlier":
                return min(_moved(left, min(0, self.low)), _moved(right, -max(0, self.high)))

    def _last(self) -> int | None:
        reached = {name: side.reached for name, side in zip(SIDES, self.sides, strict=True)}
        if self.on in SIDES:
            return reached[self.on]
        known = [value for value in reached.values() if value is not None]
        return (max if self.on == "later" else min)(known, default=None)

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        """The promise of the other side that lets the first row of a side go."""
        found = []
        for port, side in enumerate(self.sides):
            if (first := side.runs.first()) is not None:
                needed = first + self._reach(port)[1] + 1
                since, size = self.sides[1 - port].promised, side.runs.state_bytes()
                found.append(Wait(1 - port, needed, since, "rows", side.runs.height, size))
        return found

    # -- state -------------------------------------------------------------------------------------------------
    def _progress(self) -> list[tuple[str, int, int | None]]:
        held = [(name, side.promised, side.reached) for name, side in zip(SIDES, self.sides, strict=True)]
        return [*held, ("pairs", self.given, None)]

    def _frame(self) -> Batch:
        schema = {"of": pl.String, "promised": pl.Int64, "reached": pl.Int64}
        return pl.DataFrame(self._progress(), schema=schema, orient="row")

    def snapshot(self) -> State:
        runs = {name: side.runs.snapshot() for name, side in zip(SIDES, self.sides, strict=True)}
        return {"promises": self._frame(), **{f"{name}/{k}": v for name, each in runs.items() for k, v in each.items()}}

    def changes(self) -> Changes:
        found: Changes = {}
        for name, side in zip(SIDES, self.sides, strict=True):
            found |= {f"{name}/{k}": v for k, v in side.runs.changes().items()}
        if (now := self._progress()) != self._saved:
            found["promises"], self._saved = self._frame(), now
        return found

    def restore(self, state: State) -> None:
        for name, side in zip(SIDES, self.sides, strict=True):
            prefix = f"{name}/"
            side.runs.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
            side.promised, side.reached = START, None
        self.given = START
        if "promises" in state:
            rows = {of: (promised, reached) for of, promised, reached in state["promises"].rows()}
            for name, side in zip(SIDES, self.sides, strict=True):
                side.promised, side.reached = rows[name]
            self.given = rows["pairs"][0]
        for port in (0, 1):  # a stored run can still have rows that had left by then
            self._free(port)
        self._saved = self._progress()

    def state_bytes(self) -> int:
        return sum(side.runs.state_bytes() for side in self.sides)


def _span(rows: Batch) -> tuple[int, int]:
    first, last = rows.select(pl.col(PROGRESS).min(), pl.col(PROGRESS).max().alias("last")).row(0)
    return int(first), int(last)


def _moved(promised: int, by: int) -> int:
    return promised if promised == END else promised + by
