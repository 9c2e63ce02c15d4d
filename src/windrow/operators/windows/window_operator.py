"""The base of all window aggregates: how far windows are released, what results look like, and the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Literal

import polars as pl

from windrow.aggregates.user import locating
from windrow.errors import InternalError
from windrow.operators.operator import Item, Wait
from windrow.operators.progress.meld import group_text
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.levels import Levels
from windrow.operators.windows.windowing import Shape, Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, WINDOW_END, WINDOW_START
from windrow.windows.tuples import Ints

LOOKED_AT = 1_000_000  # partials among which the slowest groups are looked for


class WindowOperator(ABC, Generic[Shape]):
    """Partials of open windows in chunks, and ``closed``: how far windows are released.

    ``lateness`` decides which rows are late and what happens to them. ``stores`` are all chunked tables of the state;
    ``marks`` are integers that must survive a restart. ``levels``: a group that promises name by itself is released as
    far as it is promised itself.
    """

    chunk_by: ClassVar[str]  # the column that, besides the keys, tells partials apart
    holds: ClassVar[Literal["rows", "partials", "rows and partials"]] = "partials"

    def __init__(self, windowing: Windowing[Shape]) -> None:
        self.window = windowing.window
        self.keys = windowing.keys
        self.aggregates = windowing.aggregates
        self.options = windowing.options
        self.bounds = windowing.bounds
        self.lateness = windowing.lateness()
        self.marks: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._saved: dict[str, int] = {}
        self.remember(value=START)
        of = (self.chunk_by, *self.keys)
        self.chunks = Chunks(lambda f: self._combined(f, (CHUNK, *of) if CHUNK in f.columns else of), together=True)
        self.levels = Levels(windowing.named)
        self.stores: dict[str, Chunks] = {"": self.chunks, **self.levels.stores()}

    # -- progress ------------------------------------------------------------------------------------------------
    @property
    def closed(self) -> int:
        return self.marks["value"]

    @closed.setter
    def closed(self, value: int) -> None:
        self.marks["value"] = value

    def closes_more(self, promise: Punctuation) -> bool:
        """Whether a promise about everyone closes anything new."""
        return promise.group is None and promise.value > self.closed

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """Release what a promise about everyone closes; one about a group is noted until ``on_flush``."""
        if promise.group is not None:
            self.levels.note(promise)
        if not self.closes_more(promise):
            return []
        before, self.closed = self.closed, min(promise.value, END)
        released = self.release(before, promise)
        self.levels.forget(self.closed)
        return [*released, *self.promises_out()]

    @abstractmethod
    def release(self, before: int, promise: Punctuation) -> list[Item]:
        """The results of the windows from ``before`` to ``closed``; what only they needed is freed."""

    def promises_out(self) -> list[Item]:
        """What is promised about the ends of later results, now that everything up to ``closed`` is released."""
        return [Punctuation(END if self.closed == END else self.promised_end(self.closed))]

    def on_flush(self) -> list[Item]:
        """What promises about single groups have closed, and what follows from them for the results of each."""
        news = self.levels.news(self.closed)
        if news is None:
            return []
        unmatched = self.levels.unmatched(news, self._held())
        return [*unmatched, *self.release_groups(news), *self.promises_of(news)]

    def _held(self) -> list[Batch]:
        """Whatever is remembered of rows."""
        own = self.levels.stores()
        stores = [store for prefix, store in self.stores.items() if prefix not in own]
        return [frame for store in stores for stack in store.stacks.values() for frame in stack]

    def release_groups(self, news: Batch) -> list[Item]:
        """The results of some groups, each from where it stood (``@from``) to where it is now (``@closed``)."""
        raise InternalError(f"{type(self).__name__} cannot release single groups")

    def promises_of(self, news: Batch) -> list[Item]:
        """What is promised about the results of these groups."""
        return [promise.mapped(self.promised_end) for promise in self.levels.promises(news)]

    def promised_end(self, closed: int) -> int:
        """The end of the first window that is still open where everything up to ``closed`` is released."""
        return self.bounds.value(min(END, self.window.end(closed)))

    def closed_of(self, frame: Batch, low: int | None = None) -> Ints:
        """How far the group of each row is released: as far as everyone, or ``low``, at least."""
        return self.levels.of(frame, self.closed if low is None else low).to_numpy()

    # -- waiting -------------------------------------------------------------------------------------------------
    def waits_for(self) -> list[Wait]:
        promise = self.next_promise()
        if promise is None:
            return []
        return [Wait(0, promise, self.promised_so_far(), self.holds, self.held(), self.state_bytes())]

    def held(self) -> int:
        """How many rows or partials it holds."""
        return self.chunks.height()

    def slowest(self, most: int) -> list[tuple[str, int]]:
        """Where promises close windows group by group: the groups with open windows that are closed least far, as JSON,
        and the promise up to which they are. Nothing where there are too many rows to look at after every micro-batch.
        """
        if not self.levels.by or not 0 < self.chunks.height() <= LOOKED_AT:
            return []
        by = list(self.levels.by)
        live = [self.live(frame).select(by) for stack in self.chunks.stacks.values() for frame in stack]
        groups = pl.concat(live).unique().sort(by)
        closed = self.closed_of(groups, START)
        places = sorted(range(groups.height), key=lambda place: (int(closed[place]), place))[:most]
        return [(group_text(groups.row(place)), self._promise_for(int(closed[place]))) for place in places]

    def open_ends(self, most: int) -> list[tuple[int, int]]:
        """Of windows with ids: the ends of those that hold rows and are open, as runs from a first to a last one. The
        last run has all that are beyond ``most`` runs. Nothing where that cannot be told, or takes too long.
        """
        return []

    def live(self, frame: Batch) -> Batch:
        """Of partials, those that can still be in a result."""
        return frame

    def _promise_for(self, closed: int) -> int:
        return closed if closed in (START, END) else self.bounds.value(self.window.releasing(closed))

    @abstractmethod
    def next_promise(self) -> int | None:
        """The smallest promise that makes it emit or free something; None if none would."""

    def promised_so_far(self) -> int:
        """The promise that ``closed`` stands for."""
        return self._promise_for(self.closed)

    # -- merging -------------------------------------------------------------------------------------------------
    def place(self, at: dict[str, Any]) -> dict[str, Any]:
        """Where a failure happened, in a user's words: the group, and the window if it is known."""
        return {k: v for k, v in at.items() if not k.startswith("@")}

    def _combined(self, frame: Batch, by: Sequence[str]) -> Batch:
        with locating(self.place):
            return self.aggregates.combine(frame, by)

    # -- what comes out ------------------------------------------------------------------------------------------
    def lowered(self, frame: Batch, starts: Ints | None, ends: Ints) -> Batch:
        """Keys, window bounds and aggregates from states with a window each; no ``starts``: there is no start."""
        frame = frame.with_columns(*self.bounds.columns(starts, ends))
        with locating(self.place):
            return self.aggregates.lower(frame, [*self.keys, WINDOW_START, WINDOW_END])

    # -- state ---------------------------------------------------------------------------------------------------
    def remember(self, **marks: int) -> None:
        """Have further marks, with what they are at first."""
        for known in (self.marks, self._first, self._saved):
            known.update(marks)

    def _marks(self) -> Batch:
        return pl.DataFrame({name: [value] for name, value in self.marks.items()})

    def snapshot(self) -> State:
        found: State = {"closed": self._marks()}
        for prefix, store in self.stores.items():
            found.update({f"{prefix}{name}": frame for name, frame in store.snapshot().items()})
        return found

    def changes(self) -> Changes:
        found: Changes = {}
        for prefix, store in self.stores.items():
            found.update({f"{prefix}{name}": frame for name, frame in store.changes().items()})
        if self.marks != self._saved:
            found["closed"] = self._marks()
            self._saved = dict(self.marks)
        return found

    def restore(self, state: State) -> None:
        chunks = dict(state)
        marks = chunks.pop("closed", None)
        self.marks.clear()  # not replaced: collaborators share them
        self.marks.update(self._first)
        if marks is not None:
            self.marks.update({name: int(marks[name][0]) for name in self.marks if name in marks.columns})
        self._saved = dict(self.marks)
        for prefix, store in sorted(self.stores.items(), reverse=True):
            own = {name: chunks.pop(name) for name in list(chunks) if name.startswith(prefix)}
            store.restore({name.removeprefix(prefix): frame for name, frame in own.items()})

    def state_bytes(self) -> int:
        return sum(store.state_bytes() for store in self.stores.values())
