"""What goes to another node of a ring: at once as far as the kernel takes it, and the rest beside the node's work."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from windrow.hosts.ring.incoming import LENGTH
from windrow.hosts.ring.squeeze import Squeeze
from windrow.operators.ring.messages import Bytes, Message

PARTS = 64  # buffers that the kernel is given at once


class Outgoing:
    """A connection to another node. ``moved`` is called by another thread, when less waits than before."""

    def __init__(self, found: socket.socket, moved: Callable[[], None]) -> None:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.squeeze = found, Squeeze()
        self.waiting = 0  # bytes that the kernel has not taken
        self.failed: OSError | None = None
        self._moved = moved
        self._left: deque[memoryview] = deque()
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None

    def send(self, message: Message) -> int:
        """Returns the bytes of the message; some of them may still wait."""
        parts = message.parts(self.squeeze.packed)
        size = sum(len(part) for part in parts)
        left = _views([LENGTH.pack(size), *parts])
        with self._changed:
            if self.failed is not None:
                raise self.failed
            if not self._left:
                self._taken(left, socket.MSG_DONTWAIT)
            if left:
                self._left += left
                self.waiting += sum(len(part) for part in left)
                self._beside()
        return size

    def _taken(self, left: deque[memoryview], flags: int = 0) -> int:
        """Give the kernel what it takes; returns how much."""
        taken = 0
        while left:
            some = [left[n] for n in range(min(PARTS, len(left)))]
            began = time.perf_counter()
            try:
                done = self.socket.sendmsg(some, (), flags)
            except BlockingIOError:
                break
            self.squeeze.sent(done, time.perf_counter() - began)
            taken += done
            while left and done >= len(left[0]):
                done -= len(left.popleft())
            if done:
                left[0] = left[0][done:]
        return taken

    # -- the rest ----------------------------------------------------------------------------------------------
    def _beside(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, daemon=True)
            self._writer.start()
        self._changed.notify_all()

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._left:
                    self._changed.wait()
                some = deque(self._left[n] for n in range(min(PARTS, len(self._left))))
            count = len(some)
            try:
                done = self._taken(some)
            except OSError as error:
                with self._changed:
                    self.failed, self.waiting = error, 0
                    self._left.clear()
                    self._changed.notify_all()
                self._moved()
                return
            with self._changed:
                for _ in range(count):
                    self._left.popleft()
                self.waiting -= done
                self._changed.notify_all()
            self._moved()

    def close(self, goodbye: bool, patience: float) -> None:
        """``goodbye``: when all has gone, if that takes no longer than ``patience``."""
        if goodbye:
            with self._changed:
                self._changed.wait_for(lambda: not self._left, patience)
            with suppress(OSError):  # the other one has gone before
                self.socket.settimeout(patience)
                self.socket.sendall(LENGTH.pack(0))
        self.socket.close()


def _views(parts: list[Bytes]) -> deque[memoryview]:
    return deque(memoryview(part) for part in parts if len(part))
