"""Meld: the order-agnostic union. Rows pass at once; the union promises what its slowest input promises."""

from __future__ import annotations

import datetime
import json
from collections.abc import Hashable, Iterable

import polars as pl

from windrow.errors import InternalError
from windrow.operators.operator import Item, Wait
from windrow.progress import END, START, Combined, Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State

BOXES = {"input": pl.Int64, "left": pl.Int64, "right": pl.Int64}


class Meld:
    """Holds no rows, only the promises of its inputs (Li 1.1, 8.1). A NULL in a group key is a key like any other.

    >>> m = Meld(2)
    >>> m.on_punctuation(0, Punctuation(9)), m.on_punctuation(1, Punctuation(5))
    ([], [Punctuation(value=5, group=None)])
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.combined = Combined(inputs)
        self._changed = False

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        before = self.combined.inputs[port]
        self._changed |= promise.value > before.for_group(promise.group) or promise.boxes not in ((), before.boxes)
        return list(self.combined.give(port, promise))

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        """A promise of each input that holds the union back: those that have promised least."""
        inputs = self.combined.inputs
        low = min(promises.low for promises in inputs)
        if low == END or len(inputs) == 1:  # a single input holds no other back
            return []
        ahead = sum((p.low > low) + len(p.groups) for p in inputs)
        slowest = [port for port, p in enumerate(inputs) if p.low == low]
        return [Wait(port, low + 1, low, "promises", ahead, self.state_bytes()) for port in slowest]

    def snapshot(self) -> State:
        held = [(-1, self.combined.given), *enumerate(self.combined.inputs)]
        boxes = [(number, *box) for number, promises in held for box in promises.boxes]
        joint = {"boxes": pl.DataFrame(boxes, schema=BOXES, orient="row")} if boxes else {}
        return {"promises": promises_frame(held), **joint}

    def changes(self) -> Changes:
        changed, self._changed = self._changed, False
        return dict(self.snapshot()) if changed else {}

    def restore(self, state: State) -> None:
        self.combined = Combined(self.inputs)
        self._changed = False
        for port, promises in promises_of(state["promises"]).items() if "promises" in state else ():
            if port < 0:
                self.combined.given = promises
            else:
                self.combined.inputs[port] = promises
        for port, *box in state["boxes"].rows() if "boxes" in state else ():
            promises = self.combined.given if port < 0 else self.combined.inputs[port]
            promises.boxes += ((box[0], box[1]),)

    def state_bytes(self) -> int:
        return 64 * sum(1 + len(p.groups) for p in self.combined.inputs)


def promises_frame(given: Iterable[tuple[int, Promises]]) -> Batch:
    """Numbered promises as a state chunk."""
    held = list(given)
    rows: list[tuple[int, str | None, int]] = [(number, None, p.low) for number, p in held]
    rows += [(number, group_text(g), v) for number, p in held for g, v in p.groups.items()]
    schema = {"input": pl.Int64, "group": pl.String, "value": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def promises_of(frame: Batch) -> dict[int, Promises]:
    """The promises of a state chunk by number."""
    found: dict[int, Promises] = {}
    for number, group, value in frame.rows():
        promises = found.setdefault(number, Promises())
        if value > START:
            promises.give(Punctuation(value, None if group is None else group_of(group)))
    return found


def group_text(group: Hashable) -> str:
    """A group as JSON, for state and for the exchange."""
    return json.dumps(group, default=_tagged)


def _tagged(value: object) -> dict[str, str]:
    """Dates and timestamps in a group key as JSON."""
    if isinstance(value, datetime.date):  # a timestamp is one, too
        return {type(value).__name__: value.isoformat()}
    raise InternalError(f"a group key of type {type(value).__name__} cannot be written to a snapshot")


def _untagged(tagged: dict[str, str]) -> object:
    ((kind, text),) = tagged.items()
    return datetime.datetime.fromisoformat(text) if kind == "datetime" else datetime.date.fromisoformat(text)


def group_of(text: str) -> Hashable:
    """The group of ``group_text``."""
    group = json.loads(text, object_hook=_untagged)
    return tuple(group) if isinstance(group, list) else group
