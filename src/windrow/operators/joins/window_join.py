"""WindowJoin: pairs of rows with equal keys and near times, whatever the order of arrival (OA-Join, Li 7.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from windrow.operators.joins.choosing import RUNS, Choosing
from windrow.operators.joins.condition import Condition
from windrow.operators.joins.costs import Keeping
from windrow.operators.joins.finished import Finished, Named
from windrow.operators.joins.promises import joint
from windrow.operators.kernels.probe import Hashes
from windrow.operators.operator import Item, Wait, joined_and_freed
from windrow.operators.state.indexed_side import IndexedSide, with_hashes
from windrow.operators.state.join_side import HASH, JoinSide, hashed
from windrow.operators.state.late import on_time_of_side
from windrow.progress import END, START, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS
from windrow.windows import pairing
from windrow.windows.pairing import Pairing
from windrow.windows.tuples import Bools, Ints

On = Literal["left", "right", "later", "earlier", "first"]  # which time of a pair is its progress value
NAMES = ("left", "right")
KEEPING = "keeping"
PIECE = 1 << 16  # rows without a partner that come out together: what follows works on pieces of bounded size
Types = Mapping[str, pl.DataType]


@dataclass
class Kept:
    """The rows of one side that can still find a partner, and what the side has promised."""

    rows: JoinSide
    types: dict[str, pl.DataType]  # the columns of results that are from this side
    promised: int = START
    reached: int | None = None  # of a side that has ended: how far it came
    finished: Finished = field(default_factory=Finished)


@dataclass(frozen=True)
class Kind:
    """Which rows come out: pairs, rows of a side without a partner, or left rows that have one."""

    pairs: bool = True
    alone: tuple[pairing.Side, ...] = ()
    once: bool = False  # a left row leaves when it finds its first partner

    @classmethod
    def of(cls, how: str) -> Kind:
        match how:
            case "semi":
                return cls(pairs=False, once=True)
            case "anti":
                return cls(pairs=False, alone=(0,), once=True)
        alone: dict[str, tuple[pairing.Side, ...]] = {"left": (0,), "right": (1,), "full": (0, 1)}
        return cls(alone=alone.get(how, ()))


@dataclass
class _Found:
    """What a batch gives: results, and counts."""

    items: list[Item] = field(default_factory=list)
    joined: int = 0
    freed: int = 0


class WindowJoin:
    """A left and a right row are a pair if their keys are equal, their times near, and the condition is true.

    A pair comes out as soon as both rows are there. A row is kept until the promise of the other side says that no
    partner can come; one that cannot find any is not kept at all. Rows without a partner come out when they leave, a
    left row of a semi join when its first partner comes. A NULL key equals nothing.

    ``types``: the columns of each side that results and conditions have. ``joint``: promises are about both times of a
    result, too. ``keeping``: how the rows of each side are found; the same pairs come out. ``choosing`` changes that
    when another way would be cheaper. ``named``: how promises of a side name single keys, if they do: a key of which
    more is promised than of all lets rows of the other side go early.

    >>> types = {"k": pl.Int64(), "a": pl.String()}, {"b": pl.String()}
    >>> join = WindowJoin(["@k"], pairing.Within(0, 5), types)
    >>> join.on_batch(0, pl.DataFrame({"@k": [1], "@t": [10], "k": [1], "a": ["x"]}))
    []
    >>> join.on_batch(1, pl.DataFrame({"@k": [1, 1], "@t": [15, 16], "b": ["y", "z"]}))[0].rows()
    [(1, 'x', 'y', 15)]
    """

    def __init__(
        self,
        keys: Sequence[str],
        window: Pairing,
        types: tuple[Types, Types],
        *,
        on: On = "later",
        how: str = "inner",
        where: pl.Expr | None = None,
        test: Function | None = None,
        late: tuple[str, str] = ("drop", "drop"),
        named: tuple[Named | None, Named | None] = (None, None),
        joint: bool = False,
        keeping: tuple[Keeping, Keeping] = (RUNS, RUNS),
        choosing: Choosing | None = None,
    ) -> None:
        self.keys = list(keys)
        self.window = window
        self.on = on
        self.joint = joint
        self.kind = Kind.of(how)
        self.condition = None if where is None and test is None else Condition(where, test)
        self.late = late
        self.sides = (
            Kept(_side_of(keys, keeping[0]), dict(types[0]), finished=Finished(named[0])),
            Kept(_side_of(keys, keeping[1]), dict(types[1]), finished=Finished(named[1])),
        )
        self.keeping: list[Keeping] = list(keeping)
        self.choosing = choosing
        self.given = START
        self._saved = self._progress()

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        side = _side(port)
        own = self.sides[side]
        rows, late = self.on_time(side, batch, own.finished.promised(batch, own.promised))
        if not rows.height:
            return late
        rows = hashed(rows, self.keys) if RUNS in self.keeping else with_hashes(rows, self.keys)
        times = rows[PROGRESS].to_numpy()
        least, greatest = self.window.partners(side, times)
        found, matched = _Found(), np.zeros(rows.height, np.bool_)
        other = self.sides[1 - side]
        for number, mine, places in other.rows.partners(rows, least, greatest):
            self._pair(found, side, rows, mine, number, places, matched)
        found.joined += int(matched.sum())
        self._keep(found, side, rows, matched, greatest >= np.asarray(other.finished.promised(rows, other.promised)))
        if self.choosing is not None:
            self._choose(side, rows[HASH].to_numpy())
        return [*found.items, *joined_and_freed(found.joined, found.freed), *late]

    def _choose(self, side: pairing.Side, hashes: Hashes) -> None:
        """Keep the rows of a side in another way if that has been cheaper for long enough."""
        assert self.choosing is not None
        for at, new in self.choosing.saw(side, hashes, self.keeping, [kept.rows.count for kept in self.sides]).items():
            self._keep_as(at, new)

    def _keep_as(self, side: int, keeping: Keeping) -> None:
        new = _side_of(self.keys, keeping)
        new.take_over(self.sides[side].rows)
        self.sides[side].rows, self.keeping[side] = new, keeping

    def on_time(self, side: int, batch: Batch, promised: int | pl.Series) -> tuple[Batch, list[Item]]:
        """The rows that keep a promise about their side. Late ones are counted at home; "side" shows them."""
        return on_time_of_side(batch, promised, self.late[side])

    def _pair(
        self,
        found: _Found,
        side: pairing.Side,
        rows: Batch,
        mine: Any,
        number: int,
        places: Any,
        matched: Bools,
    ) -> None:
        """Pairs of rows of a batch with rows that one run of the other side holds."""
        other = self.sides[1 - side].rows
        run = other.runs[number]
        pairs = None
        if self.kind.pairs or self.condition is not None:
            both = ((rows, mine), (run.frame, places))
            pairs = self._built(*(both if side == 0 else both[::-1]))
        if self.condition is not None:
            assert pairs is not None
            holds, bad = self.condition.holds(pairs)
            mine, places, pairs = mine[holds], places[holds], pairs.filter(pl.Series(holds))
            found.items += bad
        if not len(mine):
            return
        matched[mine] = True
        news = other.match(number, places)
        found.joined += len(news)
        if self.kind.pairs:
            assert pairs is not None
            found.items.append(pairs)
        elif side == 1:  # left rows that have waited for this
            found.items += self._once(run.frame[news])
            other.leave(number, news)

    def _once(self, rows: Batch) -> list[Item]:
        """Left rows that have found their first partner: results of a semi join."""
        return [] if self.kind.alone or not rows.height else [self._single(0, rows)]

    def _keep(self, found: _Found, side: pairing.Side, rows: Batch, matched: Bools, waits: Bools) -> None:
        """Rows of a batch that can still find a partner are kept; what is known of the others comes out."""
        if self.kind.once and side == 0:
            if matched.any():
                found.items += self._once(rows.filter(pl.Series(matched)))
            waits = waits & ~matched
        alone = ~waits & ~matched
        if alone.any():
            found.freed += int(alone.sum())
            if side in self.kind.alone:
                found.items.append(self._single(side, rows.filter(pl.Series(alone))))
        if waits.all():
            self.sides[side].rows.push(rows, matched)
        elif waits.any():
            self.sides[side].rows.push(rows.filter(pl.Series(waits)), matched[waits])

    # -- results -----------------------------------------------------------------------------------------------
    def _built(self, left: tuple[Batch, Any], right: tuple[Batch, Any]) -> Batch:
        """Pairs as rows; each side is rows, and the places of those that are meant."""
        columns: list[pl.Series] = []
        times: list[Ints] = []
        for kept, (rows, places) in zip(self.sides, (left, right), strict=True):
            found = rows[pl.Series(places), [*kept.types, PROGRESS]]  # much faster than a gather for each column
            *own, time = found.get_columns()
            columns += own
            times.append(time.to_numpy())
        return pl.DataFrame([*columns, pl.Series(PROGRESS, self._time(*times))])

    def _time(self, left: Ints, right: Ints) -> Ints:
        match self.on:
            case "later":
                return np.maximum(left, right)
            case "earlier":
                return np.minimum(left, right)
            case "right":
                return right
        return left

    def _single(self, side: pairing.Side, rows: Batch) -> Batch:
        """Rows of one side, with NULL for what is from the other."""
        columns = []
        for number, kept in enumerate(self.sides):
            if number == side:
                columns += [pl.col(name) for name in kept.types]
            elif self.kind.pairs:
                columns += [pl.lit(None, dtype).alias(name) for name, dtype in kept.types.items()]
        return rows.select(*columns, PROGRESS)

    # -- promises ----------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        side = self.sides[port]
        if promise.value <= side.promised:
            return []
        if promise.group is not None:
            return self._finish(_side(1 - port), promise)
        side.promised, side.reached = promise.value, promise.reached
        side.finished.forget(promise.value)
        return [*self._free(_side(1 - port)), *self._news()]

    def _finish(self, side: pairing.Side, promise: Punctuation) -> list[Item]:
        """Rows of a side with a key of which the other side has promised more than of all: their partners have come."""
        key = self.sides[1 - side].finished.give(promise)
        if key is None:
            return []
        kept, found = self.sides[side], _Found()
        below = END if promise.value == END else int(self.window.first_kept(side, promise.value))
        for number, places in kept.rows.of_key(key, below):
            run = kept.rows.runs[number]
            alone = places[~run.matched[places]]
            found.freed += len(alone)
            if side in self.kind.alone and len(alone):
                found.items.append(self._single(side, run.frame[alone].sort(PROGRESS)))
            kept.rows.leave(number, places)
        kept.rows.shrink()
        return [*found.items, *joined_and_freed(found.joined, found.freed)]

    def _free(self, side: pairing.Side) -> list[Item]:
        """Rows of a side whose last partner would have come by now."""
        gone = self.sides[side].rows.free(self._limit(side))
        if gone is None:
            return []
        found = _Found(freed=gone.height)
        if side in self.kind.alone:
            found.items += [self._single(side, gone[at : at + PIECE]) for at in range(0, gone.height, PIECE)]
        return [*found.items, *joined_and_freed(found.joined, found.freed)]

    def _limit(self, side: pairing.Side) -> int:
        """The least time of a row of a side that can still find a partner."""
        promised = self.sides[1 - side].promised
        return promised if promised in (START, END) else int(self.window.first_kept(side, promised))

    def _news(self) -> list[Punctuation]:
        """What the promises of both sides mean for a result that is still to come, if that is new."""
        left, right = (side.promised for side in self.sides)
        found = joint(self.window, left, right, self.kind.alone)
        value = self._capped(getattr(found, self.on))
        if value == START or (value <= self.given and not self.joint):  # each promise of a side is new for the pair
            return []
        before, self.given = self.given, value
        boxes = found.boxes if self.joint else ()
        return [Punctuation(value, boxes=boxes)] if value != END else ended(before, self._last())

    def _capped(self, value: int) -> int:
        """A side that has ended came only so far. What is beyond that is promised when both have ended: it must not
        depend on which side ends first.
        """
        if value == END:
            return value
        for side in (0, 1):
            kept, other = self.sides[side], self.sides[1 - side]
            if kept.promised != END:
                continue
            reached = START if kept.reached is None else kept.reached
            further = self.on == "later" or (self.on in ("earlier", "first") and 1 - side in self.kind.alone)
            if further or (self.on == "first" and side == 1):  # the other side can give results on its own time
                value = min(value, max(reached, other.promised))
            elif self.on in ("earlier", "first", NAMES[side]):
                value = min(value, reached)
        return value

    def _last(self) -> int | None:
        reached = [side.reached for side in self.sides]
        if self.on in NAMES:
            return reached[NAMES.index(self.on)]
        known = [value for value in reached if value is not None]
        return (min if self.on == "earlier" else max)(known, default=None)

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        """The promise of the other side that lets the first row of a side go."""
        found = []
        for port, kept in enumerate(self.sides):
            if (first := kept.rows.first()) is not None:
                needed = int(self.window.partners(_side(port), first)[1]) + 1
                since, size = self.sides[1 - port].promised, kept.rows.state_bytes()
                found.append(Wait(1 - port, needed, since, "rows", kept.rows.height, size))
        return found

    # -- state -------------------------------------------------------------------------------------------------
    def _named(self) -> Iterator[tuple[str, Kept]]:
        yield from zip(NAMES, self.sides, strict=True)

    def _progress(self) -> list[tuple[str, int, int | None]]:
        return [*((name, kept.promised, kept.reached) for name, kept in self._named()), ("pairs", self.given, None)]

    def _frame(self) -> Batch:
        schema = {"of": pl.String, "promised": pl.Int64, "reached": pl.Int64}
        return pl.DataFrame(self._progress(), schema=schema, orient="row")

    def snapshot(self) -> State:
        rows = {f"{name}/{k}": v for name, kept in self._named() for k, v in kept.rows.snapshot().items()}
        keys = {f"finished/{name}": f for name, kept in self._named() if (f := kept.finished.snapshot()) is not None}
        return {"promises": self._frame(), **self._chosen(), **rows, **keys}

    def _chosen(self) -> State:
        """How rows are kept, if that can change."""
        return {} if self.choosing is None else {KEEPING: self.choosing.snapshot(self.keeping)}

    def changes(self) -> Changes:
        found: Changes = {f"{name}/{k}": v for name, kept in self._named() for k, v in kept.rows.changes().items()}
        found |= {
            f"finished/{name}": kept.finished.snapshot() for name, kept in self._named() if kept.finished.changed()
        }
        if (now := self._progress()) != self._saved:
            found["promises"], self._saved = self._frame(), now
        if self.choosing is not None and self.choosing.changed():
            found |= self._chosen()
        return found

    def restore(self, state: State) -> None:
        saved = state["promises"].rows() if "promises" in state else []
        rows = {of: (promised, reached) for of, promised, reached in saved}
        for name, kept in self._named():
            kept.promised, kept.reached = rows.get(name, (START, None))
            kept.finished.restore(state.get(f"finished/{name}"))
        self.given = rows.get("pairs", (START, None))[0]
        if self.choosing is not None:
            for side, keeping in enumerate(self.choosing.restore(state.get(KEEPING), self.keeping)):
                self._keep_as(side, keeping)
        for side in (0, 1):
            prefix, kept = f"{NAMES[side]}/", self.sides[side]
            own = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            kept.rows.restore(own, self._limit(_side(side)))
        self._saved = self._progress()

    def state_bytes(self) -> int:
        return sum(kept.rows.state_bytes() for kept in self.sides)


def _side_of(keys: Sequence[str], keeping: Keeping) -> JoinSide:
    """An empty side that keeps its rows so."""
    return JoinSide(keys) if keeping == "runs" else IndexedSide(keys, keeping)


def _side(port: int) -> pairing.Side:
    return 1 if port else 0
