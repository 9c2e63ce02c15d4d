"""The results of a query as they come: JSON lines or server-sent events, one for each micro-batch.

A micro-batch is one line or one event. A client that has read it whole goes on after it, and one that has not asks for
it again: nothing is lost or doubled. The text is made in pieces, and each waits until the client has taken the one
before: a slow client holds its own connection and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import anyio
import polars as pl

from windrow.errors import QueryError
from windrow.serve import values
from windrow.serve.session import QueryInfo, Session

T = TypeVar("T")
Threads = Callable[[Callable[[], T]], Awaitable[T]]


class Format(Protocol):
    """How a micro-batch and the end of the results are written."""

    media_type: str

    def batch(self, number: int, frame: pl.DataFrame) -> Iterator[str]: ...
    def end(self, reason: dict[str, str]) -> str: ...


class JsonLines:
    """``{"batch": 7, "rows": [..]}``, and where results end for good ``{"end": ..}``."""

    media_type = "application/x-ndjson"

    def batch(self, number: int, frame: pl.DataFrame) -> Iterator[str]:
        """A line, in pieces."""
        yield f'{{"batch": {number}, "rows": ['
        yield from values.rows(frame)
        yield "]}\n"

    def end(self, reason: dict[str, str]) -> str:
        """The last line."""
        return json.dumps(reason) + "\n"


class Events:
    """Server-sent events: the id is the micro-batch, the data its rows."""

    media_type = "text/event-stream"

    def batch(self, number: int, frame: pl.DataFrame) -> Iterator[str]:
        """An event, in pieces."""
        yield f"id: {number}\ndata: ["
        yield from values.rows(frame)
        yield "]\n\n"

    def end(self, reason: dict[str, str]) -> str:
        """The last event."""
        return f"event: end\ndata: {json.dumps(reason)}\n\n"


@dataclass
class Tail:
    """What one client has seen of a query, and what is next for it."""

    session: Session
    name: str
    after: int
    query: QueryInfo | None = None

    def next(self) -> tuple[list[tuple[int, pl.DataFrame]], dict[str, str] | None]:
        """Micro-batches that the client has not seen, and whether and why there will be no more. Blocks."""
        # The state is read before the results: what a query wrote before it failed is never missed.
        now, stopped = self.session.queries().get(self.name), self.session.error()
        if now is None or (self.query is not None and not _same(self.query, now)):
            return [], {"end": "dropped"}
        self.query = now
        try:
            found = self.session.results(self.name, self.after)
        except QueryError:
            if self.name in self.session.queries():
                raise
            return [], {"end": "dropped"}
        if found:
            self.after = found[-1][0]
        if now.status == "failed":
            return found, {"end": "failed", "error": now.error or "unknown"}
        return found, None if stopped is None else {"end": "stopped", "error": stopped}


def _same(before: QueryInfo, now: QueryInfo) -> bool:
    """Whether a name still stands for the same query. It was dropped and added again if its start is another."""
    return before.text == now.text and before.first_batch in (None, now.first_batch)


async def written(
    tail: Tail,
    form: Format,
    follow: bool,
    threads: Threads[tuple[list[tuple[int, pl.DataFrame]], dict[str, str] | None]],
    stopping: Callable[[], bool],
    pause: float,
) -> AsyncIterator[str]:
    """The text of a response."""
    while True:
        found, end = await threads(tail.next)
        for number, frame in found:
            for piece in form.batch(number, frame):
                yield piece
                await anyio.sleep(0)  # a client that is always ready would keep the others waiting
        if not follow:
            return
        if end is None and stopping():
            end = {"end": "stopping"}
        if end is not None:
            yield form.end(end)
            return
        if not found:
            await anyio.sleep(pause)
