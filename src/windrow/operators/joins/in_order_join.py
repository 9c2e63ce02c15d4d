"""InOrderJoin: pairs in order, by whichever of two ways is the better one at the present rates (Hammad et al.)."""

from __future__ import annotations

import polars as pl

from windrow.errors import PlanError
from windrow.operators.joins.multi_join import MultiJoin
from windrow.operators.joins.opib_join import OpibJoin
from windrow.operators.joins.rates import Rates
from windrow.operators.joins.window_join import WindowJoin
from windrow.operators.operator import Item, Side, Wait
from windrow.operators.rows.sort import Sort
from windrow.operators.state.parts import part_of, together
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.in_order import ALPHA, Mode, bad_alpha

INPUTS, BUFFER, MODE, RATES = "inputs", "buffer", "mode", "rates"
BACK = 0.9  # of alpha: it goes back to Sync-Filter below that, so that noise in the rates does not flip it
Known = tuple[bool, list[tuple[int | None, int, int, float | None]]]  # the way, and the rates


class InOrderJoin:
    """Sync-Filter holds rows until no earlier one can come, and joins them in order. Filter-Order joins rows as they
    come, and holds results until no earlier one can come: what the join takes for them is spent while they wait.

    ``adaptive`` begins with Sync-Filter, which needs less memory, and runs Filter-Order while c |w| l1 l2 is at least
    ``alpha``: the share of its time that the join is busy; the mean response is then shorter by alpha / (1 + alpha)
    (Hammad, Eq. 7). ``cost`` is c, what it takes to compare two rows, in units of progress. Rates follow from the rows.
    Of a multi-way join it is the same of all that a row is compared with, input after input, and all inputs take part.
    TS_trigger is what both inputs have promised; in a stream that is in order each row is such a promise. When it goes
    back, the hold buffer need not be empty: whatever comes out goes through it, so results that it holds leave in turn.

    >>> from windrow.windows.pairing import Within
    >>> join = WindowJoin(["k"], Within(-5, 5), ({"a": pl.String()}, {"b": pl.String()}))
    >>> ordered = InOrderJoin(join, "filter-order")
    >>> ordered.on_batch(0, pl.DataFrame({"k": [1, 1], "@t": [12, 10], "a": ["x", "y"]}))
    []
    >>> [counted] = ordered.on_batch(1, pl.DataFrame({"k": [1], "@t": [11], "b": ["z"]}))
    >>> ordered.hold_rows()
    2
    >>> ordered.on_punctuation(0, Punctuation(20)), ordered.on_punctuation(1, Punctuation(11))[0].rows()
    ([], [('y', 'z', 11)])
    """

    def __init__(
        self, join: WindowJoin | MultiJoin, mode: Mode = "adaptive", alpha: float = ALPHA, cost: float = 0.0
    ) -> None:
        if (reason := bad_alpha(alpha)) is not None:
            raise PlanError(reason)
        self.inputs = OpibJoin(join)
        self.buffer = Sort()
        self.mode = mode
        self.alpha, self.cost = alpha, cost
        self.window = _length(join)
        self.rates = Rates(len(join.sides), int(self.window))
        self.inputs.holding = mode != "filter-order"
        self._saved: Known | None = None

    @property
    def filtering(self) -> bool:
        """Whether it runs Filter-Order."""
        return not self.inputs.holding

    def hold_rows(self) -> int:
        """Results in the hold buffer."""
        return self.buffer.runs.height

    def hold_bytes(self) -> int:
        """The memory of the hold buffer."""
        return self.buffer.state_bytes()

    # -- rows and promises -------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if self.mode == "adaptive":
            self.rates.saw(port, batch)
        return self._in_order([*self._switched(), *self.inputs.on_batch(port, batch)])

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is None and self.mode == "adaptive":
            self.rates.promised(port, promise.value)
        return self._in_order([*self._switched(), *self.inputs.on_punctuation(port, promise)])

    def on_flush(self) -> list[Item]:
        return self._in_order(self.inputs.on_flush())

    def busy(self) -> float | None:
        """c |w| l1 l2, the share of the time that the join takes (Hammad, Eq. 1); None as long as it is not known."""
        rates = [rate for port in range(len(self.inputs.promised)) if (rate := self.rates.of(port)) is not None]
        if len(rates) < len(self.inputs.promised):
            return None
        if isinstance(join := self.inputs.join, MultiJoin):
            return self.cost * join.compared(rates)
        return self.cost * self.window * rates[0] * rates[1]

    def _filters(self) -> bool:
        """Whether Filter-Order is the better way."""
        if self.mode != "adaptive":
            return self.mode == "filter-order"
        busy = self.busy()
        if busy is None:
            return self.filtering
        return busy >= (BACK * self.alpha if self.filtering else self.alpha)

    def _switched(self) -> list[Item]:
        """Change to the better way. Rows that Sync-Filter has held are joined then."""
        if self._filters() == self.filtering:
            return []
        if not self.filtering:
            return self.inputs.let_go()
        self.inputs.holding = True
        return []

    def _in_order(self, items: list[Item]) -> list[Item]:
        """What the join gives, through the buffer; what is counted apart from the results has no order."""
        found: list[Item] = []
        for item in items:
            if isinstance(item, Side):
                found.append(item)
            elif isinstance(item, Punctuation):
                found += self.buffer.on_punctuation(0, item)
            else:
                found += self.buffer.on_batch(0, item)
        return found

    def waits_for(self) -> list[Wait]:
        """As for the rows; and of each side that has not promised enough for the first result in the hold buffer."""
        found = {wait.port: wait for wait in self.inputs.waits_for()}
        if (first := self.buffer.runs.first()) is None:
            return [*found.values()]
        rows = self.hold_rows() + max((wait.count for wait in found.values()), default=0)
        for port, promise in self.inputs.needs_of_result(first):
            since = self.inputs.promised[port].value
            if since < promise and (port not in found or promise <= found[port].promise):
                found[port] = Wait(port, promise, since, "rows", rows, self.state_bytes())
        return [found[port] for port in sorted(found)]

    # -- state -------------------------------------------------------------------------------------------------
    def _known(self) -> Known:
        return self.filtering, self.rates.known()

    def _own(self) -> State:
        return {MODE: pl.DataFrame({"filtering": [self.filtering], "cost": [self.cost]}), RATES: self.rates.frame()}

    def snapshot(self) -> State:
        return {**self._own(), **together({INPUTS: self.inputs.snapshot(), BUFFER: self.buffer.snapshot()})}

    def changes(self) -> Changes:
        found: Changes = together({INPUTS: self.inputs.changes(), BUFFER: self.buffer.changes()})
        if (now := self._known()) != self._saved:
            self._saved = now
            found |= self._own()
        return found

    def restore(self, state: State) -> None:
        filtering = self.mode == "filter-order"
        if MODE in state:  # another machine can have another cost, and must decide alike
            filtering, self.cost = state[MODE].row(0)
        self.inputs.holding = not filtering  # before the rest: it says which rows have left
        self.rates.restore(state.get(RATES))
        self.inputs.restore(part_of(state, INPUTS))
        self.buffer.restore(part_of(state, BUFFER))
        self._saved = self._known() if MODE in state else None

    def state_bytes(self) -> int:
        return self.inputs.state_bytes() + self.buffer.state_bytes()


def _length(join: WindowJoin | MultiJoin) -> float:
    """|w|: of a band (-w, w) it is w; of a multi-way join it is how long rows are held, on average."""
    if isinstance(join, MultiJoin):
        return sum(join.ranges.lengths) / len(join.ranges.lengths)
    return (join.window.width + 1) / 2
