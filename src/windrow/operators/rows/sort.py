"""Sort and Merge: rows in the order of the progressing attribute, each as soon as no smaller one can come."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.operators.operator import Item, Wait
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.operators.state.held import Held
from windrow.operators.state.late import on_time
from windrow.operators.state.runs import Runs
from windrow.progress import END, Combined, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS


class Sort(Held):
    """BSort (Li 8.1): holds rows until the promise has reached them, and then puts them out in order.

    ``order``: columns that order rows with the same progress value, descending or not. With them a row waits until the
    promise has passed it; without, rows of the promised value itself can go, as only equal ones may follow.

    >>> import polars as pl
    >>> sort = Sort()
    >>> sort.on_batch(0, pl.DataFrame({"@t": [5, 3, 9]}))
    []
    >>> out = sort.on_punctuation(0, Punctuation(5))
    >>> out[0]["@t"].to_list(), out[1]
    ([3, 5], Punctuation(value=5, group=None))
    """

    def __init__(self, order: Sequence[str] = (), descending: Sequence[bool] = (), late: str = "drop") -> None:
        super().__init__(runs := Runs())
        self.runs = runs
        self.late = late
        self.order = tuple(order)
        self.descending = tuple(descending)
        self.reach = 0 if order else 1  # how far beyond the promise rows can go

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        rows, sides = on_time(batch, self.promised, self.late)
        self.runs.push(rows)
        # Rows of the promised value itself need not wait for the next promise.
        return [*self._due(), *sides] if self.reach else sides

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised:
            return []
        self.promised = promise.value
        return [*self._due(), promise.alone()]  # rows of a box can still be held

    def _due(self) -> list[Item]:
        rows = self.runs.take(min(END, self.promised + self.reach))
        if rows is None:
            return []
        if not self.order:
            return [rows]
        nulls = [False, *self.descending]  # first, and last with DESC
        return [rows.sort(PROGRESS, *self.order, descending=nulls, nulls_last=nulls, maintain_order=True)]

    def waits_for(self) -> list[Wait]:
        return self.waiting(0, self._needed(), self.promised, self.runs.height)

    def _needed(self) -> int | None:
        """The smallest promise that lets a row go."""
        first = self.runs.first()
        return None if first is None else first + 1 - self.reach

    def restore(self, state: State) -> None:
        super().restore(state)
        self.runs.take(min(END, self.promised + self.reach))  # what was out before the state was taken


class Merge(Sort):
    """The order-preserving union (Li 8.2): a row waits until all inputs have promised that nothing smaller comes.

    An input that is silent or behind holds the rows of all others here. Meld lets them pass.

    >>> import polars as pl
    >>> merge = Merge(2)
    >>> merge.on_batch(0, pl.DataFrame({"@t": [5, 7]})), merge.on_punctuation(0, Punctuation(7))
    ([], [])
    >>> [x if isinstance(x, Punctuation) else x["@t"].to_list() for x in merge.on_punctuation(1, Punctuation(6))]
    [[5], Punctuation(value=6, group=None)]
    """

    def __init__(
        self, inputs: int, order: Sequence[str] = (), descending: Sequence[bool] = (), late: str = "drop"
    ) -> None:
        super().__init__(order, descending, late)
        self.inputs = inputs
        self.combined = Combined(inputs)
        self._changed = False

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None:
            return []
        self._changed |= promise.value > self.combined.inputs[port].low
        return [x for p in self.combined.give(port, promise) for x in super(Merge, self).on_punctuation(0, p)]

    def waits_for(self) -> list[Wait]:
        """A promise of each input that holds the first row back."""
        needed, inputs = self._needed(), self.combined.inputs
        behind = [port for port, p in enumerate(inputs) if needed is not None and p.low < needed]
        return [w for port in behind for w in self.waiting(port, needed, inputs[port].low, self.runs.height)]

    def snapshot(self) -> State:
        return {**super().snapshot(), "inputs": promises_frame(enumerate(self.combined.inputs))}

    def changes(self) -> Changes:
        changed, self._changed = self._changed, False
        return {**super().changes(), **({"inputs": promises_frame(enumerate(self.combined.inputs))} if changed else {})}

    def restore(self, state: State) -> None:
        rest = dict(state)
        saved = rest.pop("inputs", None)
        super().restore(rest)
        self.combined = Combined(self.inputs)
        for port, promises in (promises_of(saved) if saved is not None else {}).items():
            self.combined.inputs[port] = promises
        self.combined.given.give(Punctuation(self.promised))
        self._changed = False
