"""PairAggregate: groups by both times of a join, each out as soon as a joint promise covers it (Li 7.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.aggregates.user import locating
from windrow.operators.operator import Item, Side, Wait
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.late import LATE_ROWS
from windrow.progress import END, START, Box, Punctuation, grown
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, PROGRESS
from windrow.windows import pairing

On = Literal["left", "right", "later", "earlier", "first"]  # which time of a group is the progress value of its result
NOTHING: tuple[Box, ...] = ((START, END), (END, START), (START, START))
ALL: tuple[Box, ...] = ((END, END),) * 3
BOXES = "boxes"
LEFT, RIGHT, OUT, BEFORE = "@left", "@right", "@out", "@before"


class PairAggregate:
    """Partials of groups of which a row can still come, in chunks by time; and ``boxes``, what is promised.

    A group is in a box if both of its times are below the numbers of the box; a time that is missing is below END only.
    A promise releases the groups that are in one of its boxes and were in none before. A chunk is written again when
    half of its groups are released: until then the boxes tell them from the others.

    ``times``: the left and the right time of a group as integers. ``keys``: all columns that make a group. ``width``:
    the length of the slice of time of a chunk. ``alone``: the sides whose rows have no partner in some results, as of
    an outer join. ``joint``: its consumer asks for joint promises, too.

    >>> from windrow.operators.windows.pairs import Pairs
    >>> count = PairAggregate((pl.col("l"), pl.col("r")), ["l", "r"], Partials([]))
    >>> [partials] = Pairs(["l", "r"], Partials([])).on_batch(0, pl.DataFrame({"l": [0, 0], "r": [1, 3]}))
    >>> count.on_batch(0, partials)
    []
    >>> [released, promise] = count.on_punctuation(0, Punctuation(START, boxes=((0, END), (END, 0), (2, 2))))
    >>> released.rows(), promise
    ([(0, 1, 1)], Punctuation(value=2, group=None))
    """

    def __init__(
        self,
        times: tuple[pl.Expr, pl.Expr],
        keys: Sequence[str],
        aggregates: Partials,
        on: On = "later",
        width: int = 1,
        alone: Collection[pairing.Side] = (),
        joint: bool = False,
    ) -> None:
        self.times = [time.alias(name) for time, name in zip(times, (LEFT, RIGHT), strict=True)]
        self.keys = list(keys)
        self.aggregates = aggregates
        self.on = on
        self.width = width
        self.alone = tuple(alone)
        self.joint = joint
        self.boxes = NOTHING
        self.chunks = Chunks(self._combined, together=True)
        self.least: dict[int, Box] = {}  # of the groups of a chunk that are not released: the least times
        self._saved = NOTHING

    def _combined(self, frame: Batch) -> Batch:
        by = [CHUNK, *self.keys] if CHUNK in frame.columns else self.keys
        with locating(dict):
            return self.aggregates.combine(frame, by)

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        timed = batch.with_columns(*self.times)
        late = timed.select(_inside(self.boxes)).to_series()
        items: list[Item] = []
        if late.any():
            gone = timed.filter(late)
            items.append(Side("late", int(gone[ROWS].sum()), gone.select(*self.keys, pl.col(ROWS).alias(LATE_ROWS))))
            timed = timed.filter(~late)
        if timed.height:
            timed = timed.with_columns((pl.coalesce(LEFT, RIGHT) // self.width).alias(CHUNK))
            self._note(_least(timed))
            self.chunks.append(timed.drop(LEFT, RIGHT))
        return items

    def _note(self, found: Batch) -> None:
        for chunk, left, right in found.rows():
            before = self.least.get(chunk, (END, END))
            self.least[chunk] = min(left, before[0]), min(right, before[1])

    # -- promises ----------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None:
            return []
        new = ALL if promise.value == END else grown(self.boxes, promise.boxes)
        if new == self.boxes:
            return []
        before, self.boxes = self.boxes, new
        return [*self._released(before), *self._news(before, promise)]

    def _news(self, before: tuple[Box, ...], promise: Punctuation) -> list[Item]:
        if promise.value == END:
            return [Punctuation(END, reached=promise.reached)]
        value = self._promised(self.boxes)
        if value == START or not (self.joint or value > self._promised(before)):
            return []
        return [Punctuation(value, boxes=self.boxes if self.joint else ())]

    def _promised(self, boxes: tuple[Box, ...]) -> int:
        """What the boxes say about the time of the results that are still to come."""
        left, right = boxes[0][0], boxes[1][1]
        sides = [(left, right)[side] for side in self.alone]
        match self.on:
            case "left":
                return left
            case "right":
                return right
            case "later":
                return min(max(left, right, min(boxes[2])), *sides, END)
            case "earlier":
                return min(left, right)
        return min(left, right) if 1 in self.alone else left

    def _released(self, before: tuple[Box, ...]) -> list[Item]:
        reached = [chunk for chunk, least in self.least.items() if any(_below(least, box) for box in self.boxes)]
        if not reached:
            return []
        held = self._stored(reached).with_columns(_inside(self.boxes).alias(OUT), _inside(before).alias(BEFORE))
        self._tidy(held)
        results = held.filter(pl.col(OUT) & ~pl.col(BEFORE)).drop(CHUNK, LEFT, RIGHT, OUT, BEFORE)
        return [self._results(self._combined(results))] if results.height else []

    def _stored(self, chunks: Collection[int]) -> Batch:
        """The partials of some chunks, with their times."""
        frames = [f.with_columns(pl.lit(c, pl.Int64).alias(CHUNK)) for c in chunks for f in self.chunks.stacks[c]]
        return pl.concat(frames).with_columns(*self.times)

    def _tidy(self, held: Batch) -> None:
        """Free what is released, and note where the rest of each chunk begins."""
        rest = held.filter(~pl.col(OUT))
        least = {chunk: (left, right) for chunk, left, right in _least(rest).rows()}
        sizes = held.group_by(CHUNK).agg(pl.len(), pl.col(OUT).sum().alias(OUT)).rows()
        small = [chunk for chunk, size, out in sizes if size <= 2 * out]
        kept = rest.filter(pl.col(CHUNK).is_in(small)).drop(LEFT, RIGHT, OUT, BEFORE)
        parts = kept.partition_by(CHUNK, include_key=False, as_dict=True)
        for chunk in small:
            part = parts.get((chunk,))
            self.chunks.replace(chunk, self._combined(part) if part is not None else held.clear())
        for chunk, _, _ in sizes:
            self.least.pop(chunk)
        self.least |= least

    def _results(self, groups: Batch) -> Batch:
        with locating(dict):
            found = self.aggregates.lower(groups, self.keys)
        left, right = self.times
        time = {
            "left": left,
            "right": right,
            "later": pl.max_horizontal(left, right),
            "earlier": pl.min_horizontal(left, right),
            "first": pl.coalesce(left, right),
        }[self.on]
        return found.with_columns(time.alias(PROGRESS))

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        """The least promise about the later time that covers a group, whatever is promised about either time."""
        if not self.least:
            return []
        timed = self._stored(self.least).filter(~_inside(self.boxes))
        first = timed.select(pl.max_horizontal(LEFT, RIGHT).min()).item()
        since = min(self.boxes[2])
        return [Wait(0, first + 1, since, "partials", self.chunks.height(), self.state_bytes())]

    # -- state -------------------------------------------------------------------------------------------------
    def _promises(self) -> Batch:
        return pl.DataFrame(self.boxes, schema={"left": pl.Int64, "right": pl.Int64}, orient="row")

    def snapshot(self) -> State:
        return {BOXES: self._promises(), **self.chunks.snapshot()}

    def changes(self) -> Changes:
        found = self.chunks.changes()
        if self.boxes != self._saved:
            found[BOXES], self._saved = self._promises(), self.boxes
        return found

    def restore(self, state: State) -> None:
        self.chunks.restore({name: frame for name, frame in state.items() if name != BOXES})
        self.boxes = tuple((a, b) for a, b in state[BOXES].rows()) if BOXES in state else NOTHING
        self._saved = self.boxes
        self.least = {}
        if self.chunks.stacks:
            self._note(_least(self._stored(self.chunks.stacks).filter(~_inside(self.boxes))))

    def state_bytes(self) -> int:
        return self.chunks.state_bytes()


def _least(timed: Batch) -> Batch:
    """The least times of each chunk; a time that is missing is below END only."""
    return timed.group_by(CHUNK).agg(pl.col(name).fill_null(END - 1).min() for name in (LEFT, RIGHT))


def _below(least: Box, box: Box) -> bool:
    return least[0] < box[0] and least[1] < box[1]


def _inside(boxes: Sequence[Box]) -> pl.Expr:
    """Whether the times of a group are in one of the boxes."""
    return pl.any_horizontal([_under(LEFT, a) & _under(RIGHT, b) for a, b in boxes])


def _under(time: str, bound: int) -> pl.Expr:
    return pl.lit(True) if bound == END else (pl.col(time) < bound).fill_null(False)
