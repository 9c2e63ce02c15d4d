"""The one interface of all operators: rows and promises in, rows and promises out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import polars as pl

from windrow.progress import END, START, Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State


@dataclass(frozen=True)
class Side:
    """Rows or promises that are counted apart from the main stream.

    ``bad`` and ``late`` rows have left the main stream; ``revised`` rows were late and changed a released result.
    ``evidence`` describes rows and counts none; ``marks`` are the values of markers, for an audit. ``ignored``
    promises say less than an earlier one; ``unmatched`` promises are about a group of which nothing is held. Rows of a
    join are ``joined`` when they find their first partner, ``freed`` when they leave without one, and ``shed`` when
    limits leave them out; ``near`` is an estimate of the pairs of rows that are near enough, and ``missed`` of those
    with a row that was shed. ``failed``: an operator that several queries share goes on without one of them, and
    ``rows`` has the error.

    ``count`` rows are meant; ``rows`` describes them: a bad row with its reason, a late one with its window. ``of``:
    the query that they are counted for, where several share an operator and each has its own.
    """

    kind: Literal[
        "bad",
        "late",
        "revised",
        "evidence",
        "ignored",
        "unmatched",
        "marks",
        "joined",
        "freed",
        "shed",
        "near",
        "missed",
        "failed",
    ]
    count: int
    rows: Batch = field(default_factory=pl.DataFrame, compare=False)
    of: str | None = field(default=None, compare=False)


Item = Batch | Punctuation | Side


def joined_and_freed(joined: int, freed: int) -> list[Item]:
    """How many rows have found their first partner, and how many have left without one; nothing for none."""
    found: list[Item] = [Side("joined", joined)] if joined else []
    return found + ([Side("freed", freed)] if freed else [])


@dataclass(frozen=True)
class Wait:
    """What an operator waits for, and what it holds until then.

    ``promise`` is the smallest promise on ``port``, as a value of the stream's progressing attribute, that makes the
    operator emit or free something. ``since`` is what is promised there so far: the progress value at which the wait
    began (START: nothing is promised yet). ``count`` says how much is held, and ``holds`` of what. ``at`` names the
    operator inside a graph.

    >>> print(Wait(1, 305, since=300, holds="rows", count=7))
    waits on port 1 for a promise >= 305 since 300, holding 7 rows
    """

    port: int
    promise: int
    since: int
    holds: Literal["rows", "partials", "rows and partials", "promises"]
    count: int
    bytes: int = 0
    at: str = ""

    def __str__(self) -> str:
        wanted = "the end of the stream" if self.promise == END else f"a promise >= {self.promise}"
        since = "" if self.since == START else f" since {self.since}"
        where = f"{self.at} " if self.at else ""
        return f"{where}waits on port {self.port} for {wanted}{since}, holding {self.count} {self.holds}"


class Operator(Protocol):
    """One thread owns an operator; a host may snapshot between any two calls.

    Configuration is fixed in ``__init__``; whatever changes later is in ``snapshot()``. It reads no clock, draws no
    random numbers and knows no host, so that every run can be replayed. A promise given to ``on_punctuation`` must
    be true: rows that break it are counted as late and never change a released result.
    """

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        """Take rows of input ``port``."""

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """Take a promise about the rows still to come on ``port``."""

    def on_flush(self) -> list[Item]:
        """The host has no more input for now: emit whatever is due without a promise."""

    def waits_for(self) -> list[Wait]:
        """The promises that would make it emit or free something, the smallest of each port that it waits on."""

    def snapshot(self) -> State:
        """All state, as named chunks."""

    def changes(self) -> Changes:
        """The chunks that changed since the last call (None: freed). Applied in turn they add up to ``snapshot``."""

    def restore(self, state: State) -> None:
        """Continue from a state that ``snapshot`` of an operator with the same configuration returned."""

    def state_bytes(self) -> int:
        """How much memory the state holds."""


class Forwarding:
    """For operators that hold nothing back: promises pass unchanged, and nothing waits. They may have state."""

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [promise]

    def on_flush(self) -> list[Item]:
        return []

    def waits_for(self) -> list[Wait]:
        return []


class Stateless(Forwarding):
    """The state half of the interface for operators that remember nothing."""

    def snapshot(self) -> State:
        return {}

    def changes(self) -> Changes:
        return {}

    def restore(self, state: State) -> None:
        return None

    def state_bytes(self) -> int:
        return 0


class OnlyNews:
    """For operators that turn several promises into the same one: only what says more than before goes on.

    What has been sent is not part of the state: at worst a promise is repeated after a restart, which is harmless.
    """

    def __init__(self) -> None:
        self.sent = Promises()

    def news(self, promise: Punctuation) -> list[Item]:
        """The promise, if it is new."""
        return [promise] if self.sent.give(promise) else []
