"""What the driver and the head of a ring that runs without end tell each other, over one connection."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from windrow import errors
from windrow.errors import WindrowError
from windrow.hosts.ring.epochs import Progress
from windrow.hosts.ring.links import LostError

STOP = b"stop"
RAISED = re.compile(r"\bwindrow\.errors\.(\w+): (.*?)(?=\n\s*at [\w$.]+\(|\Z)", re.DOTALL)  # as Spark shows it


class DeskControl:
    """At the head. Without a driver a run has nobody who could stop it, so it ends."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._stop = False

    def stopping(self) -> bool:
        self._read(0)
        return self._stop

    def pause(self, seconds: float) -> None:
        if not self._stop:
            self._read(seconds)

    def tell(self, progress: Progress) -> None:
        try:
            self._connection.send_bytes(json.dumps(progress.written()).encode())
        except OSError as error:
            raise _gone(error) from None

    def _read(self, seconds: float) -> None:
        try:
            while self._connection.poll(seconds):
                self._stop |= self._connection.recv_bytes() == STOP
                seconds = 0
        except (OSError, EOFError) as error:
            raise _gone(error) from None


def raised(text: str) -> WindrowError | None:
    """The error of Windrow in the text of one of Spark; None if there is none: a process has died.

    >>> raised("Job aborted: windrow.errors.LateError: too late\\n\\n\\tat org.apache.spark.Some$.where(Some.scala:1)")
    LateError('too late')
    """
    found = RAISED.search(text)
    kind = None if found is None else getattr(errors, found[1], None)
    return None if found is None or kind is None else kind(found[2].strip())


def _gone(error: Exception) -> LostError:
    return LostError(f"the driver has gone ({error})")


class Followed:
    """At the driver: how far a run has come, whichever attempt at it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._changed = threading.Condition()
        self._connection: Any = None
        self._stop = self._ended = False

    def listen(self, connection: Any) -> None:
        """Take what the head of an attempt tells; raises EOFError when it ends."""
        with self._changed:
            self._connection = connection
            if self._stop:
                connection.send_bytes(STOP)
        while True:
            found = Progress(**json.loads(connection.recv_bytes()))
            with self._changed:
                self.progress = found
                self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stop = True
            if self._connection is not None:
                with suppress(OSError):  # that attempt has ended, and the next one is told when it comes
                    self._connection.send_bytes(STOP)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait(self, come: Callable[[], bool], timeout: float | None) -> None:
        """Until something is so, or the run has ended."""
        with self._changed:
            self._changed.wait_for(lambda: come() or self._ended, timeout)
