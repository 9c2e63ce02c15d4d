"""MultiJoin: one row of each of several inputs with equal keys and near times, all in one operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.joins.condition import Condition
from windrow.operators.joins.partial import Held, Partial
from windrow.operators.joins.probe_order import ProbeOrder
from windrow.operators.kernels.probe import Hashes, sorted_by
from windrow.operators.operator import Item, Wait, joined_and_freed
from windrow.operators.state.join_side import HASH, JoinSide, hashed
from windrow.operators.state.late import on_time_of_side
from windrow.progress import END, START, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS
from windrow.windows.multiway import Moment, Ranges

PIECE = 1 << 20  # partial results that are carried on together
PROMISES, ORDERS = "promises", "orders"
PROMISED = {"of": pl.Int64, "promised": pl.Int64, "reached": pl.Int64}
PROBES = {
    "of": pl.Int64,
    "target": pl.Int64,
    "rows": pl.Int64,
    "probed": pl.Int64,
    "found": pl.Int64,
    "fanout": pl.Float64,
}
RESULTS = -1  # where inputs have numbers


@dataclass
class Kept:
    """The rows of one input that can be in results to come, what it has promised, and how its rows probe the others."""

    rows: JoinSide
    order: ProbeOrder
    promised: int = START
    reached: int | None = None  # of an input that has ended: how far it came

    @property
    def came(self) -> int:
        """How far it is: as promised, or where it ended."""
        if self.promised != END:
            return self.promised
        return START if self.reached is None else self.reached


@dataclass(frozen=True)
class Probe:
    """A batch of one input that is joined: its rows, and those that the others hold."""

    port: int
    rows: Batch
    held: Mapping[int, Held]

    @property
    def frames(self) -> dict[int, Batch]:
        return {self.port: self.rows, **{number: each.frame for number, each in self.held.items()}}


class MultiJoin:
    """Rows of all inputs are a result if their keys are equal, each is still held when the last one comes, and the
    condition is true. It comes out as soon as all rows are there: a row probes one input after another, in the order
    that costs least, and only where times are near enough to all rows so far.

    A row is kept until the promises of all other inputs say that it can be in no result to come. ``types``: the columns
    of each input that results and conditions have. ``tests``: conditions that are tried as soon as their columns are
    there; ``where`` and ``test`` when all rows are. ``on``: which time of a result is its progress value. ``orders``:
    how rows of each input probe the others at first.

    >>> types = [{"a": pl.String()}, {"b": pl.String()}, {"c": pl.String()}]
    >>> join = MultiJoin(["k"], Ranges((10, 10, 3)), types)
    >>> join.on_batch(0, pl.DataFrame({"k": [1], "@t": [10], "a": ["x"]}))
    []
    >>> join.on_batch(2, pl.DataFrame({"k": [1, 1], "@t": [12, 15], "c": ["u", "v"]}))
    []
    >>> join.on_batch(1, pl.DataFrame({"k": [1], "@t": [17], "b": ["y"]}))[0].rows()
    [('x', 'y', 'v', 17)]
    """

    def __init__(
        self,
        keys: Sequence[str],
        ranges: Ranges,
        types: Sequence[Mapping[str, pl.DataType]],
        *,
        on: Moment | None = None,
        tests: Sequence[pl.Expr] = (),
        where: pl.Expr | None = None,
        test: Function | None = None,
        late: Sequence[str] = (),
        orders: Sequence[Sequence[int]] = (),
    ) -> None:
        self.keys = list(keys)
        self.ranges = ranges
        numbers = range(len(types))
        self.columns = [(name, number) for number in numbers for name in types[number]]
        self.on = Moment(tuple(numbers)) if on is None else on
        self.tests = [(test, self._columns_of(test)) for test in tests]
        self.condition = None if where is None and test is None else Condition(where, test)
        self.late = list(late) or ["drop" for _ in numbers]
        first = list(orders) or [[n for n in numbers if n != number] for number in numbers]
        self.sides = [Kept(JoinSide(keys), ProbeOrder(list(order))) for order in first]
        self.given = START
        self._saved = self._progress(), self._orders()

    def _columns_of(self, test: pl.Expr) -> list[tuple[str, int]]:
        named = set(test.meta.root_names())
        return [(name, number) for name, number in self.columns if name in named]

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        own = self.sides[port]
        rows, late = self.on_time(port, batch, own.promised)
        if not rows.height:
            return late
        rows = hashed(rows, self.keys)
        times = rows[PROGRESS].to_numpy()
        probe = Probe(port, rows, {n: Held(kept.rows) for n, kept in enumerate(self.sides) if n != port})
        items, joined, matched = list[Item](), 0, np.zeros(rows.height, np.bool_)
        if all(held.numbers for held in probe.held.values()):
            start = Partial({port: np.arange(rows.height)}, times, times + self.ranges.lengths[port])
            start = self._tested(probe, start, port)
            for found in self._extended(probe, start, tuple(own.order.targets)):
                results, whole = self._results(probe, found)
                items += results
                matched[whole.places[port]] = True
                joined += sum(held.match(whole.places[number]) for number, held in probe.held.items())
            own.order.look(rows.height)
        waits = times >= self._limit(port)
        own.rows.push(rows.filter(pl.Series(waits)), matched[waits])
        return [*items, *joined_and_freed(joined + int(matched.sum()), int((~waits & ~matched).sum())), *late]

    def on_time(self, port: int, batch: Batch, promised: int) -> tuple[Batch, list[Item]]:
        """The rows that keep a promise about their input. Late ones are counted at home; "side" shows them."""
        return on_time_of_side(batch, promised, self.late[port])

    def _extended(self, probe: Probe, partial: Partial, targets: tuple[int, ...]) -> Iterator[Partial]:
        """Partial results with a row of each target, in pieces."""
        if not targets:
            yield partial
            return
        for found in self._probed(probe, partial, targets[0]):
            yield from self._extended(probe, found, targets[1:])

    def _probed(self, probe: Probe, partial: Partial, target: int) -> Iterator[Partial]:
        """Partial results with a row of one target."""
        if not partial.height:
            return
        if len(partial.places) > 1:
            hashes: Hashes = probe.rows[HASH].to_numpy()[partial.places[probe.port]]
            partial = partial.take(sorted_by(hashes, partial.latest))
        rows = probe.rows.select(HASH, *self.keys)[partial.places[probe.port]]
        held, length = probe.held[target], self.ranges.lengths[target]
        bounds = self.ranges.between(target, partial.latest, partial.until)
        parts, size, total = list[Partial](), 0, 0
        for number, mine, places in held.side.partners(rows, *bounds):
            times = held.side.runs[number].times[places]
            at = places.astype(np.int64) + held.first[number]
            found = self._tested(probe, partial.take(mine).beside(target, at, times, length), target)
            parts, size = [*parts, found] if found.height else parts, size + found.height
            if size >= PIECE:
                yield Partial.all_of(parts)
                parts, size, total = [], 0, total + size
        self.sides[probe.port].order.count(target, partial.height, total + size)
        if parts:
            yield Partial.all_of(parts)

    def _tested(self, probe: Probe, partial: Partial, target: int) -> Partial:
        """Those for which all conditions are true that have waited for rows of the target."""
        for test, columns in self.tests:
            used = {number for _, number in columns}
            if partial.height and target in used and used <= partial.places.keys():
                holds = partial.frame(probe.frames, columns).select(test.fill_null(False)).to_series()
                partial = partial.take(holds.to_numpy())
        return partial

    # -- results -----------------------------------------------------------------------------------------------
    def _results(self, probe: Probe, whole: Partial) -> tuple[list[Item], Partial]:
        """Rows of all inputs as result rows, and which they are: those for which the condition is true."""
        frames = probe.frames
        built = whole.frame(frames, self.columns).with_columns(pl.Series(PROGRESS, self._times(frames, whole)))
        if self.condition is None:
            return [built], whole
        holds, bad = self.condition.holds(built)
        kept: list[Item] = [built.filter(pl.Series(holds))] if holds.any() else []
        return [*kept, *bad], whole.take(holds)

    def _times(self, frames: Mapping[int, Batch], whole: Partial) -> Any:
        if self.on.later and len(self.on.inputs) == len(self.sides):
            return whole.latest
        times: dict[int, Any] = {n: whole.frame(frames, [(PROGRESS, n)])[PROGRESS].to_numpy() for n in self.on.inputs}
        return self.on.of([times.get(number) for number in range(len(self.sides))])

    # -- promises ----------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        side = self.sides[port]
        if promise.group is not None or promise.value <= side.promised:
            return []
        side.promised, side.reached = promise.value, promise.reached
        gone = [kept.rows.free(self._limit(number)) for number, kept in enumerate(self.sides) if number != port]
        return [*joined_and_freed(0, sum(rows.height for rows in gone if rows is not None)), *self._news()]

    def _limit(self, number: int) -> int:
        """The least time of a row of an input that can be in a result to come."""
        return self.ranges.first_kept(number, [kept.promised for kept in self.sides])

    def _news(self) -> list[Punctuation]:
        """What the promises of all inputs mean for a result that is still to come, if that is new.

        Beyond where an input has ended nothing is promised before all have: it must not depend on which ends first.
        """
        value = self.ranges.promised(self.on, [kept.promised for kept in self.sides])
        if value != END:
            value = min(value, int(self.on.of([kept.came for kept in self.sides])))
        if value == START or value <= self.given:
            return []
        before, self.given = self.given, value
        return [Punctuation(value)] if value != END else ended(before, self.on.ends([k.reached for k in self.sides]))

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        """Of every input the least promise that helps to let the first row of another one go."""
        found: dict[int, Wait] = {}
        for number, kept in enumerate(self.sides):
            first = kept.rows.first()
            if first is None:
                continue
            needed, size = first + self.ranges.lengths[number], kept.rows.state_bytes()
            for port, other in enumerate(self.sides):
                if port != number and other.promised < needed < (found[port].promise if port in found else END):
                    found[port] = Wait(port, needed, other.promised, "rows", kept.rows.height, size)
        return list(found.values())

    # -- state -------------------------------------------------------------------------------------------------
    def _progress(self) -> list[tuple[int, int, int | None]]:
        own = [(number, kept.promised, kept.reached) for number, kept in enumerate(self.sides)]
        return [*own, (RESULTS, self.given, None)]

    def _orders(self) -> list[tuple[Any, ...]]:
        return [(number, *each) for number, kept in enumerate(self.sides) for each in kept.order.saved()]

    def compared(self, rates: Sequence[float]) -> float:
        """Half of the comparisons that nested loops would make for a unit of progress: as |w| l1 l2 counts them."""
        held = [rate * length for rate, length in zip(rates, self.ranges.lengths, strict=True)]
        return sum(rate * kept.order.compared(held) for rate, kept in zip(rates, self.sides, strict=True)) / 2

    def _frames(self) -> State:
        return {
            PROMISES: pl.DataFrame(self._progress(), schema=PROMISED, orient="row"),
            ORDERS: pl.DataFrame(self._orders(), schema=PROBES, orient="row"),
        }

    def snapshot(self) -> State:
        rows = {f"{n}/{k}": v for n, kept in enumerate(self.sides) for k, v in kept.rows.snapshot().items()}
        return {**self._frames(), **rows}

    def changes(self) -> Changes:
        found: Changes = {f"{n}/{k}": v for n, kept in enumerate(self.sides) for k, v in kept.rows.changes().items()}
        now, frames = (self._progress(), self._orders()), self._frames()
        for name, before, after in zip((PROMISES, ORDERS), self._saved, now, strict=True):
            found |= {name: frames[name]} if before != after else {}
        self._saved = now
        return found

    def restore(self, state: State) -> None:
        saved = {of: each for of, *each in state[PROMISES].rows()} if PROMISES in state else {}
        orders = state[ORDERS].rows() if ORDERS in state else []
        for number, kept in enumerate(self.sides):
            kept.promised, kept.reached = saved.get(number, (START, None))
            if own := [row[1:] for row in orders if row[0] == number]:
                kept.order.restore(own)
        self.given = saved.get(RESULTS, (START, None))[0]
        for number, kept in enumerate(self.sides):
            prefix = f"{number}/"
            own_rows = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            kept.rows.restore(own_rows, self._limit(number))
        self._saved = self._progress(), self._orders()

    def state_bytes(self) -> int:
        return sum(kept.rows.state_bytes() for kept in self.sides)
