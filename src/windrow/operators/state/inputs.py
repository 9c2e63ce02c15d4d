"""What the inputs of an operator have promised, of all rows and of single keys, and what it has promised itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from windrow.operators.joins.finished import Finished, Named
from windrow.operators.operator import Item
from windrow.progress import END, START, Punctuation, ended
from windrow.spec.batches import Batch, Changes, State

PROMISES, GIVEN = "promises", "given"


@dataclass
class Input:
    """What one input has promised. ``reached``: of one that has ended, how far it came."""

    promised: int = START
    reached: int | None = None
    finished: Finished = field(default_factory=Finished)

    def about(self, rows: Batch) -> int | pl.Series:
        """What is promised about the keys of some rows; one value for all if there is nothing special."""
        return self.finished.promised(rows, self.promised)

    def take(self, promise: Punctuation) -> None:
        """A promise about all rows."""
        self.promised, self.reached = promise.value, promise.reached
        self.finished.forget(promise.value)


class Inputs(list[Input]):
    """The inputs by port. ``given``: what the operator has promised. It all is state."""

    def __init__(self, named: Sequence[Named | None]) -> None:
        super().__init__(Input(finished=Finished(name)) for name in named)
        self.given = START
        self._saved = self._progress()

    @property
    def low(self) -> int:
        """What all of them have promised."""
        return min(each.promised for each in self)

    def news(self, value: int, of: int) -> list[Punctuation]:
        """The promise of the operator, if it is new; its results have the times of input ``of``.

        What is beyond the last row of that input is promised when all inputs have ended: it must not depend on which
        one ends first.
        """
        last = self[of]
        if last.promised == END and value != END:
            value = min(value, START if last.reached is None else last.reached)
        if value == START or value <= self.given:
            return []
        before, self.given = self.given, value
        return [Punctuation(value)] if value != END else ended(before, last.reached)

    # -- state -------------------------------------------------------------------------------------------------
    def _progress(self) -> list[tuple[str, int, int | None]]:
        return [
            *((str(port), each.promised, each.reached) for port, each in enumerate(self)),
            (GIVEN, self.given, None),
        ]

    def _frame(self) -> Batch:
        schema = {"of": pl.String, "promised": pl.Int64, "reached": pl.Int64}
        return pl.DataFrame(self._progress(), schema=schema, orient="row")

    def snapshot(self) -> State:
        keys = {f"finished/{port}": each.finished.snapshot() for port, each in enumerate(self)}
        return {PROMISES: self._frame(), **{name: frame for name, frame in keys.items() if frame is not None}}

    def changes(self) -> Changes:
        found: Changes = {
            f"finished/{port}": each.finished.snapshot() for port, each in enumerate(self) if each.finished.changed()
        }
        if (now := self._progress()) != self._saved:
            found[PROMISES], self._saved = self._frame(), now
        return found

    def restore(self, state: State) -> None:
        saved = state[PROMISES].rows() if PROMISES in state else []
        rows = {of: (promised, reached) for of, promised, reached in saved}
        for port, each in enumerate(self):
            each.promised, each.reached = rows.get(str(port), (START, None))
            each.finished.restore(state.get(f"finished/{port}"))
        self.given = rows.get(GIVEN, (START, None))[0]
        self._saved = self._progress()


class Store(Protocol):
    """Rows that an operator holds."""

    def snapshot(self) -> State: ...

    def changes(self) -> Changes: ...

    def state_bytes(self) -> int: ...


class Storing(ABC):
    """The state half of an operator that holds what its inputs have promised, and rows in stores with names."""

    inputs: Inputs

    @abstractmethod
    def stores(self) -> Iterable[tuple[str, Store]]:
        """What it holds; the names begin those of chunks."""

    def on_flush(self) -> list[Item]:
        return []

    def snapshot(self) -> State:
        rows = {f"{name}/{k}": v for name, store in self.stores() for k, v in store.snapshot().items()}
        return {**self.inputs.snapshot(), **rows}

    def changes(self) -> Changes:
        found: Changes = {f"{name}/{k}": v for name, store in self.stores() for k, v in store.changes().items()}
        return found | self.inputs.changes()

    def state_bytes(self) -> int:
        return sum(store.state_bytes() for _, store in self.stores())


def part_of(state: State, name: str) -> State:
    """The chunks whose names begin with another name."""
    return {k.removeprefix(f"{name}/"): v for k, v in state.items() if k.startswith(f"{name}/")}
