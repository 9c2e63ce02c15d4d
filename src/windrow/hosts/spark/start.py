"""Starts a streaming query, and starts it again where Spark gave up on a Python process that was slow to come up.

Spark starts a Python process for each stateful operator and each source of ours whenever a query starts, and waits 10 s
for it to connect, a constant. On a machine with much more to do than it has cores, a process can take longer; the query
then fails before its first micro-batch, and the next start finds everything as the one before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.errors import StreamingQueryException
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

TOO_SLOW = "Python worker failed to connect back"  # what Spark says
AGAIN = 4  # times
ADVICE = (
    "Spark gave up on a Python worker that did not start within its 10 s: this machine is too busy. Start fewer "
    "queries at once, or give this one a greater share of the machine; it continues from its checkpoint"
)


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def start(writer: DataStreamWriter, say: Callable[[str], None] = _print) -> StreamingQuery:
    """The query of ``writer.start()``, started again, up to four times, if a Python worker does not start in time.

    Only that failure counts, and only before this start has committed anything; ``say`` is called each time. The
    result can be used like any ``StreamingQuery``.
    """
    return cast("StreamingQuery", Restarted(writer.start, say))


class Restarted:
    """A streaming query; asking whether it runs, or waiting for its end, starts it again if it failed to start."""

    def __init__(self, begin: Callable[[], StreamingQuery], say: Callable[[str], None] = _print) -> None:
        self._begin = begin
        self._say = say
        self._starts = 1
        self._query = begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def isActive(self) -> bool:  # noqa: N802 (Spark's names)
        return bool(self._query.isActive) or self._again()

    def exception(self) -> StreamingQueryException | None:
        return None if self._again() else self._query.exception()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """As Spark's; a new start has the whole ``timeout``."""
        ended: bool | None = self._patiently(lambda query: query.awaitTermination(timeout))
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802
        self._patiently(lambda query: query.processAllAvailable())

    def _patiently(self, wait: Callable[[StreamingQuery], Any]) -> Any:
        while True:
            try:
                return wait(self._query)
            except Exception:
                if not self._again():
                    raise

    def _again(self) -> bool:
        """Start once more, if it failed for this reason before it committed anything."""
        error = self._query.exception()
        if error is None or TOO_SLOW not in str(error) or self._query.recentProgress or self._starts > AGAIN:
            return False
        self._say(
            "Spark gave up on a Python worker that did not start within 10 s, as on a busy machine. Nothing was "
            f"committed: starting the query again ({self._starts} of {AGAIN})"
        )
        self._starts += 1
        with suppress(Exception):  # the failure once more; after it Spark has let go of the checkpoint
            self._query.awaitTermination()
        self._query = self._begin()
        return True
