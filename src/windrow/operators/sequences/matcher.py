"""Matcher: sequences of rows of several streams, by one compiled automaton over rows that are final.

``B FOLLOWING CHRONICLE A`` of Bai et al. (section 5, Figure 13) is a sequence of two steps. There the operator waits
for the register of each input; here for a promise of each stream. Rows below all of them are final: sorted by key and
time, they run through the automaton (``kernels/automaton``), whatever order and batches they came in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.errors import DataError
from windrow.operators.joins.finished import Named
from windrow.operators.kernels import automaton
from windrow.operators.kernels.automaton import Conditions, Pattern
from windrow.operators.kernels.key_hash import hashes
from windrow.operators.operator import Item, Side, Wait, joined_and_freed
from windrow.operators.sequences.coded import coded
from windrow.operators.sequences.measured import STEP, Measured
from windrow.operators.state.inputs import Inputs, Storing, part_of
from windrow.operators.state.keyed import matched, numbered
from windrow.operators.state.keyed_runs import DUE, HASH, MATCHED, UNTIL, KeyedRuns
from windrow.operators.state.late import on_time_of_side
from windrow.operators.state.tied import tied_order
from windrow.operators.state.waiting import Waiting
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS

OLD, GROUP = "@old", "@group"
FIELDS = {
    automaton.GROUP: GROUP,
    automaton.TIMES: PROGRESS,
    automaton.STEP: STEP,
    automaton.OLD: OLD,
    automaton.PREV: "@prev",
    automaton.PLACE: "@place",
    automaton.BASE: "@base",
    automaton.START: "@start",
    automaton.UNTIL: UNTIL,
    automaton.DUE: DUE,
    automaton.MATCHED: MATCHED,
}
KNOWN = (  # what the automaton says of a row
    automaton.PREV,
    automaton.PLACE,
    automaton.BASE,
    automaton.START,
    automaton.UNTIL,
    automaton.DUE,
)
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Compare:
    """A comparison of a column (``column`` of rows of both steps) between a row of a step and one of a later step."""

    left: int
    comparison: str
    right: int
    column: str


class Matcher(Storing):
    """Rows of step ``i`` come on port ``i``, with a column ``@step`` and the same columns on all ports.

    ``ties``: for each step the columns that order its rows with equal times. ``strict``: no two rows of a sequence have
    the same time, because steps share a stream. ``measured``: the columns of results. ``most_keys``: more stop the
    query. ``last``: the step whose time results have. ``named``: how promises of a stream name single keys, if they do.
    """

    def __init__(
        self,
        keys: Sequence[str],
        pattern: Pattern,
        ties: Sequence[Sequence[str]],
        measured: Measured,
        *,
        compares: Sequence[Compare] = (),
        strict: bool = False,
        most_keys: int | None = None,
        late: Sequence[str] = (),
        named: Sequence[Named | None] = (),
        last: int = 0,
    ) -> None:
        self.keys = list(keys)
        self.pattern = pattern
        self.ties = [list(each) for each in ties]
        self.measured = measured
        self.compares = list(compares)
        self.strict = strict
        self.most_keys = most_keys
        number = len(self.ties)
        self.late = list(late) or ["drop"] * number
        self.inputs = Inputs(list(named) or [None] * number)
        self.last = last
        self.waiting = Waiting()  # rows that are not final
        self.open = KeyedRuns()  # rows of sequences that are not over

    # -- rows --------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        own = self.inputs[port]
        shown = self.measured.shown(batch, port) if self.late[port] == "side" else batch
        rows, items = on_time_of_side(shown, own.about(batch), self.late[port])
        rows = rows.select(batch.columns)
        if any(rows[key].null_count() for key in self.keys):  # NULL equals nothing: only a last step can have such rows
            there = rows.select(pl.all_horizontal(pl.col(self.keys).is_not_null())).to_series()
            alone = rows.filter(~there)
            items = [*items, self.measured.alone(alone), Side("freed", alone.height)]
            rows = rows.filter(there)
        if rows.height:
            self.waiting.push(rows.with_columns(pl.Series(HASH, self._hashes(rows))))
        return items

    def _hashes(self, rows: Batch) -> Hashes:
        return hashes(rows, self.keys) if self.keys else np.zeros(rows.height, np.uint64)

    # -- promises ----------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        own = self.inputs[port]
        if promise.value <= own.promised:
            return []
        if promise.group is not None:
            return self._about_key(port, promise)
        before = self.inputs.low
        own.take(promise)
        items = self._advance(self.inputs.low) if self.inputs.low > before else []
        return [*items, *self._news()]

    def _about_key(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise about one key: its rows are final up to what all streams have promised of it."""
        key = self.inputs[port].finished.give(promise)
        if key is None:
            return []
        promised = min(int(np.max(np.asarray(own.about(key)))) for own in self.inputs)
        if promised <= self.inputs.low:
            return []
        rows = self.waiting.take_key(key, promised)
        return self._run(rows, self._hashes(key), promised, key)

    def _advance(self, promised: int) -> list[Item]:
        """All rows below the promise are final."""
        rows = self.waiting.take(promised)
        due = self.open.due(promised)
        if rows is None and not len(due):
            self.open.free(promised)
            return self._counted(0, 0)
        touched = due if rows is None else np.union1d(rows[HASH].to_numpy(), due)
        return self._run(rows, touched, promised)

    # -- sequences ---------------------------------------------------------------------------------------------
    def _run(self, rows: Batch | None, touched: Hashes, promised: int, key: Batch | None = None) -> list[Item]:
        """Final rows, with the open sequences of their keys, through the automaton. ``key``: only of this one."""
        old, others = self.open.fetch(np.unique(touched)), None
        if old is not None and key is not None:  # another key with the same hash stays as it is
            old, others = (matched(old, key, key.columns, how) for how in ("semi", "anti"))
        frame = self._in_order(old, rows)
        if frame is None:
            return []
        nodes = self._nodes(frame)
        was = nodes[automaton.MATCHED].copy()
        numbers, places, needed = automaton.run(self.pattern, self._conditions(frame), nodes, promised)
        results = self.measured.of(frame, numbers, places)
        kept = self._kept(frame, nodes, needed)
        if others is not None and others.height:
            kept = pl.concat([kept, others]).sort(HASH, maintain_order=True)
        self.open.put(np.unique(touched), kept, self.inputs.low)  # of other keys less can be promised
        self._check_keys()
        now = nodes[automaton.MATCHED]
        gone = ~needed & (now == 0)
        items: list[Item] = [results] if results is not None else []
        return [*items, *self._counted(int((now - was).sum()), int(gone.sum()))]

    def _in_order(self, old: Batch | None, rows: Batch | None) -> Batch | None:
        """Rows by key and time; those of open sequences come first, in the order that they have."""
        parts = [] if old is None or not old.height else [old.with_columns(pl.lit(True).alias(OLD))]
        if rows is not None and rows.height:
            unknown = [pl.lit(-1, pl.Int64).alias(FIELDS[field]) for field in KNOWN]
            new = self._sorted(rows).with_columns(*unknown, *(pl.lit(False).alias(name) for name in (MATCHED, OLD)))
            parts.append(new.select(parts[0].columns) if parts else new)
        if not parts:
            return None
        frame = pl.concat(parts)
        return self._apart(frame.sort(HASH, maintain_order=True) if len(parts) == 2 else frame)

    def _apart(self, frame: Batch) -> Batch:
        """Rows with the number of their key; different keys with the same hash are separated."""
        given = frame[HASH].to_numpy()
        new = np.append(True, given[1:] != given[:-1])
        for key in self.keys:
            values = frame[key]
            same = (values == values.shift(1)).fill_null(False).to_numpy() | new
            if values.dtype.is_float():
                same |= (values.is_nan() & values.shift(1).is_nan()).fill_null(False).to_numpy()
            if not same.all():
                frame = numbered(frame, self.keys, GROUP)
                return frame.sort(GROUP, maintain_order=True)
        return frame.with_columns(pl.Series(GROUP, np.cumsum(new)))

    def _sorted(self, rows: Batch) -> Batch:
        """By key, time, step and columns."""
        steps = rows[STEP].to_numpy()
        order = np.lexsort((-steps if self.strict else steps, rows[PROGRESS].to_numpy(), rows[HASH].to_numpy()))
        rows, steps = rows[order], steps[order]
        places = np.arange(rows.height)
        for step, ties in enumerate(self.ties):
            mine = np.flatnonzero(steps == step)
            if (inner := tied_order(rows[mine], [HASH, PROGRESS], ties)) is not None:
                places[mine] = mine[inner]
        return rows[places]

    def _nodes(self, frame: Batch) -> NDArray[np.int64]:
        found = np.empty((automaton.FIELDS, frame.height), np.int64)
        for field, column in FIELDS.items():
            found[field] = frame[column].to_numpy()
        return found

    def _conditions(self, frame: Batch) -> Conditions:
        both = [coded(frame[each.column]) for each in self.compares]
        empty = np.zeros((0, frame.height))
        return Conditions(
            np.array([each.left for each in self.compares], np.int64),
            np.array([automaton.COMPARISONS[each.comparison] for each in self.compares], np.int64),
            np.array([each.right for each in self.compares], np.int64),
            np.array([values for values, _ in both], np.int64) if both else empty.astype(np.int64),
            np.array([nulls for _, nulls in both], np.bool_) if both else empty.astype(np.bool_),
        )

    def _kept(self, frame: Batch, nodes: NDArray[np.int64], needed: NDArray[np.bool_]) -> Batch:
        """The rows of open sequences, with what is known of them."""
        known = [pl.Series(FIELDS[field], nodes[field]) for field in KNOWN]
        found = frame.drop(OLD, GROUP).with_columns(*known, pl.Series(MATCHED, nodes[automaton.MATCHED] > 0))
        return found.filter(pl.Series(needed)).sort(HASH, maintain_order=True)

    def _check_keys(self) -> None:
        if self.most_keys is None:
            return
        if (keys := self.open.number_of_keys(self.most_keys)) > self.most_keys:
            raise DataError(
                f"the sequence has open rows of {keys} keys in one shard, and the query accepts {self.most_keys}. "
                "Accept more, give a greatest distance, or let the streams say which keys are finished"
            )

    def _counted(self, joined: int, freed: int) -> list[Item]:
        return joined_and_freed(joined, freed + self.open.take_freed())

    def _news(self) -> list[Punctuation]:
        """A result that is still to come ends with a row to come; one that waits has begun within its distance."""
        value = self.inputs.low
        if self.pattern.rules.waits and value not in (START, END):
            value -= self.pattern.rules.within
        return self.inputs.news(value, self.last)

    def waits_for(self) -> list[Wait]:
        """The promise of the slowest stream that makes the first row final."""
        first, held = self.waiting.first(), self.waiting.height + self.open.height
        if first is None and not held:
            return []
        slowest = min(range(len(self.inputs)), key=lambda port: self.inputs[port].promised)
        since = self.inputs[slowest].promised
        needed = max(since, first if first is not None else since) + 1
        return [Wait(slowest, min(needed, END), since, "rows", held, self.state_bytes())]

    # -- state -------------------------------------------------------------------------------------------------
    def stores(self) -> Iterator[tuple[str, Waiting | KeyedRuns]]:
        yield from (("waiting", self.waiting), ("open", self.open))

    def restore(self, state: State) -> None:
        self.inputs.restore(state)
        self.waiting.restore(part_of(state, "waiting"), self.inputs.low)
        self.open.restore(part_of(state, "open"))
