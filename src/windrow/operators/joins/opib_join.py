"""OpibJoin: pairs in order without a buffer of pairs: rows are held and joined in such an order (OPIB-Join, Li 7.3)."""

from __future__ import annotations

import polars as pl

from windrow.errors import PlanError
from windrow.operators.joins.multi_join import MultiJoin
from windrow.operators.joins.window_join import Kind, WindowJoin
from windrow.operators.operator import Item, Wait
from windrow.operators.state.parts import part_of, together
from windrow.operators.state.runs import Runs
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Side

JOIN, PROMISES = "join", "promises"
HELD: dict[str, tuple[int, ...]] = {"left": (0,), "right": (1,), "later": (0, 1)}  # which rows wait, by the order


def refused(kind: Kind, on: str, using: str = "opib") -> str | None:
    """Why there is no such join, if there is none."""
    if kind != Kind():
        return f"using={using!r} makes inner joins only: choose using='opob'"
    if on not in HELD:
        return f"using={using!r} cannot order pairs by the {on} of their times: choose using='opob'"
    return None


class OpibJoin:
    """Order-preserving, input-buffered. In the order of the left time, a left row waits until no earlier one can come,
    and all its partners are there; the join then gives its pairs and does not keep it. In the order of the later time,
    the rows of both sides wait until the promises of both have reached them; so do those of all inputs of a multi-way
    join, in whose order its results then are, whatever they progress on.

    The join inside is given rows in this order, and about the rows that wait it is promised no more than that.

    >>> from windrow.windows.pairing import Within
    >>> types = {"a": pl.String()}, {"b": pl.String()}
    >>> join = OpibJoin(WindowJoin(["k"], Within(0, 5), types, on="left"))
    >>> join.on_batch(0, pl.DataFrame({"k": [1, 1], "@t": [12, 10], "a": ["x", "y"]}))
    []
    >>> join.on_batch(1, pl.DataFrame({"k": [1], "@t": [13], "b": ["z"]}))
    []
    >>> join.on_punctuation(0, Punctuation(20)), join.on_punctuation(1, Punctuation(17))[0].rows()
    ([], [('y', 'z', 10)])
    """

    def __init__(self, join: WindowJoin | MultiJoin) -> None:
        if isinstance(join, WindowJoin) and (reason := refused(join.kind, join.on)):
            raise PlanError(reason)
        self.join = join
        ports = HELD[join.on] if isinstance(join, WindowJoin) else range(len(join.sides))
        self.held = {port: Runs() for port in ports}
        self.holding = True  # else rows and promises pass, and the results are in any order
        self.promised = [Punctuation(START) for _ in join.sides]
        self._saved = list(self.promised)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if port not in self.held or not self.holding:
            return self.join.on_batch(port, batch)
        rows, late = self.join.on_time(port, batch, self.promised[port].value)
        self.held[port].push(rows)
        return [*self._due(), *late]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised[port].value:
            return []
        self.promised[port] = promise
        if not self.holding:
            return self.join.on_punctuation(port, promise)
        found: list[Item] = [] if port in self.held else self.join.on_punctuation(port, promise)
        return [*found, *self._due(), *self._promises()]

    def let_go(self) -> list[Item]:
        """Hold nothing from now on: what was held is joined, and the join is promised all that was promised here."""
        self.holding = False
        found: list[Item] = []
        for side, runs in self.held.items():
            rows = runs.take(END)
            found += [] if rows is None else self.join.on_batch(side, rows)
        for side in self.held:
            found += self.join.on_punctuation(side, self.promised[side])
        return found

    def _due(self) -> list[Item]:
        """The pairs of rows that need not wait any longer. They may come out of the join in any order."""
        limit = self._limit()
        due = [(side, rows) for side, runs in self.held.items() if (rows := runs.take(limit)) is not None]
        items = [item for side, rows in due for item in self.join.on_batch(side, rows)]
        pairs = [item for item in items if isinstance(item, pl.DataFrame)]
        others = [item for item in items if not isinstance(item, pl.DataFrame)]
        return [*([pl.concat(pairs).sort(PROGRESS, maintain_order=True)] if pairs else []), *others]

    def _promises(self) -> list[Item]:
        """What the join is promised about the rows that wait here."""
        ready = self._ready()
        if ready == START:
            return []
        found: list[Item] = []
        for side, runs in self.held.items():
            promise = self.promised[side]
            over = promise.value == END and not runs.height
            found += self.join.on_punctuation(side, promise if over else Punctuation(ready))
        return found

    def _ready(self) -> int:
        """All rows below it have left, and none will come: what the join can be promised."""
        return min(self._bounds())

    def _limit(self) -> int:
        """Rows below it can go: those at the promise of their own side can, too, as only equal ones may follow."""
        own, complete = self._bounds()
        return min(own + 1, complete, END)

    def _bounds(self) -> tuple[int, int]:
        """What is promised about rows that wait, and the time below which all their partners are there."""
        if len(self.held) > 1:  # partners are those that came before, or come with it
            return min(p.value for p in self.promised), END
        assert isinstance(self.join, WindowJoin)
        side = self._only()
        own, other = self.promised[side].value, self.promised[1 - side].value
        return own, other if other in (START, END) else int(self.join.window.first_kept(side, other))

    def _only(self) -> Side:
        """The side whose rows wait, if it is one."""
        [side] = self.held
        return 1 if side else 0

    def on_flush(self) -> list[Item]:
        return self.join.on_flush()

    def waits_for(self) -> list[Wait]:
        """Of each side that has not promised enough for the first row that waits, or for one that the join keeps."""
        found: dict[int, Wait] = {}
        size, rows = self.state_bytes(), sum(runs.height for runs in self.held.values())
        needs = [need for runs in self.held.values() if (t := runs.first()) is not None for need in self.needs(t, t)]
        for wait in self.join.waits_for():
            rows += wait.count
            passed = wait.port not in self.held or not self.holding
            needs += [(wait.port, wait.promise)] if passed else self.needs(wait.promise, wait.promise - 1)
        for port, promise in sorted(needs, reverse=True):  # so that the smallest is the last
            if (since := self.promised[port].value) < promise:
                found[port] = Wait(port, promise, since, "rows", rows, size)
        return [found[port] for port in sorted(found)]

    def needs(self, own: int, last: int) -> list[tuple[int, int]]:
        """The promises for a row: of its own side, and of the other, beyond the last partner of a row at ``last``."""
        if len(self.held) > 1:
            return [(port, own) for port in self.held]
        assert isinstance(self.join, WindowJoin)
        side = self._only()
        return [(side, own), (1 - side, int(self.join.window.partners(side, last)[1]) + 1)]

    def needs_of_result(self, time: int) -> list[tuple[int, int]]:
        """The promises for a result with this time not to come after others."""
        if isinstance(self.join, WindowJoin):
            return self.needs(time, time)
        ranges, on = self.join.ranges, self.join.on
        needed = [ranges.needed(on, port, time) for port in self.held]
        return [(port, max(needed) if self.holding else own) for port, own in enumerate(needed)]

    # -- state -------------------------------------------------------------------------------------------------
    def _frame(self) -> Batch:
        rows = [(p.value, p.reached) for p in self.promised]
        return pl.DataFrame(rows, schema={"value": pl.Int64, "reached": pl.Int64}, orient="row")

    def snapshot(self) -> State:
        runs = {str(side): held.snapshot() for side, held in self.held.items()}
        return {PROMISES: self._frame(), **together({JOIN: self.join.snapshot(), **runs})}

    def changes(self) -> Changes:
        runs = {str(side): held.changes() for side, held in self.held.items()}
        found: Changes = together({JOIN: self.join.changes(), **runs})
        if self.promised != self._saved:
            found[PROMISES], self._saved = self._frame(), list(self.promised)
        return found

    def restore(self, state: State) -> None:
        self.join.restore(part_of(state, JOIN))
        saved = state[PROMISES].rows() if PROMISES in state else [(START, None)] * len(self.promised)
        self.promised = [Punctuation(value, reached=reached) for value, reached in saved]
        self._saved = list(self.promised)
        for side, runs in self.held.items():
            runs.restore(part_of(state, str(side)))
        for runs in self.held.values():  # a stored run can still have rows that had left by then
            runs.take(self._limit() if self.holding else END)

    def state_bytes(self) -> int:
        return self.join.state_bytes() + sum(runs.state_bytes() for runs in self.held.values())
