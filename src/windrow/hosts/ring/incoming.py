"""What comes from the other nodes of a ring. Who waits for a message reads the connections: no thread wakes another."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from windrow.hosts.ring.greeting import LostError, shut
from windrow.hosts.ring.squeeze import unpacked
from windrow.operators.ring.messages import Kind, Message

LENGTH = struct.Struct("<Q")  # of a message, before it; 0 is a goodbye
GOODBYE = b"!"  # of who reads, to who writes
SMALL = 1 << 16  # bytes: shorter messages are read several at once
# Seconds for which a node looks for a message before it sleeps: to wake a process takes longer than the rest of a hop.
LOOKS = 2e-4

_let_others = getattr(os, "sched_yield", lambda: None)  # not on all systems


class Incoming:
    """A connection that messages come by. ``name``: of the node at its other end."""

    def __init__(self, found: socket.socket, name: str) -> None:
        self.socket, self.name = found, name
        self.over = False  # whether it has said goodbye
        self._small = memoryview(bytearray(SMALL))
        self._large: memoryview | None = None  # a long message, as far as it has come
        self._at = 0  # bytes of either that are there

    def read(self) -> Iterator[tuple[int, Message]]:
        """The messages that are there by now, and their sizes."""
        while self._received():
            if self._large is None:
                yield from self._short()
                return
            if self._at == len(self._large):
                data, self._large, self._at = self._large, None, 0
                yield len(data), Message.read(data, unpacked)
                return

    def _received(self) -> bool:
        """Whether there was anything to read."""
        into = self._small if self._large is None else self._large
        try:
            got = self.socket.recv_into(into[self._at :], 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        if not got:
            raise LostError("the connection has ended")
        self._at += got
        return True

    def _short(self) -> Iterator[tuple[int, Message]]:
        """The messages that the buffer has as a whole. What is left of it is the beginning of one."""
        begin, size = 0, 0
        while self._at - begin >= LENGTH.size:
            size = LENGTH.unpack_from(self._small, begin)[0]
            if not size:
                self.over = True
                return
            end = begin + LENGTH.size + size
            if end > self._at:
                break
            data = bytes(self._small[begin + LENGTH.size : end])
            begin = end
            yield size, Message.read(memoryview(data), unpacked)
        rest = bytes(self._small[begin : self._at])
        if len(rest) >= LENGTH.size and size > SMALL - LENGTH.size:
            self._large = memoryview(bytearray(size))
            rest = rest[LENGTH.size :]
            self._large[: len(rest)] = rest
        else:
            self._small[: len(rest)] = rest
        self._at = len(rest)


class Watched:
    """A connection to another node. Nothing comes by it but the goodbye of a node that has all that it needs."""

    def __init__(self, found: socket.socket, name: str) -> None:
        self.socket, self.name = found, name
        self.over = False

    def read(self) -> Iterator[tuple[int, Message]]:
        if not self.socket.recv(len(GOODBYE), socket.MSG_DONTWAIT):
            raise LostError("the connection has ended")
        self.over = True
        yield from ()


class Inbox:
    """The messages of all connections. It reads when it is asked for a message, or when its node cannot send: so a node
    that is busy takes no more than the kernel holds for it, and where all nodes wait for each other all of them go on.
    """

    def __init__(self) -> None:
        self.held = self.most = 0  # bytes
        self.lost: LostError | None = None
        self._waiting: deque[tuple[int, Message]] = deque()
        self._commits: deque[tuple[int, Message]] = deque()  # they can overtake what is on its way round
        self._connections: list[Incoming | Watched] = []
        self._reading = threading.Lock()
        self._bell, self._rope = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bell, selectors.EVENT_READ)

    # -- any thread --------------------------------------------------------------------------------------------
    def add(self, connection: Incoming | Watched) -> None:
        """Read this one, too."""
        self._connections.append(connection)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self.wake()

    def lose(self, lost: LostError) -> None:
        """A node has gone: when what it has sent before is used up, nothing more can come."""
        self.lost = lost
        self.wake()

    def wake(self) -> None:
        """Whoever waits looks again at what it waits for."""
        with suppress(OSError):  # it is full, or the inbox is closed
            self._rope.send(b"!", socket.MSG_DONTWAIT)

    def post(self, size: int, message: Message) -> None:
        """A message of this node to itself."""
        self._put(size, message)
        if self._reading.locked():
            self.wake()

    def _put(self, size: int, message: Message) -> None:
        self.held += size
        self.most = max(self.most, self.held)
        (self._commits if message.kind == Kind.COMMIT else self._waiting).append((size, message))

    # -- the node ----------------------------------------------------------------------------------------------
    def take(self, wait: bool, commit: bool = False) -> Message | None:
        """The next message, or the next one about the end of a round."""
        lane = self._commits if commit else self._waiting
        while not lane:
            if self.lost is not None:
                raise self.lost
            self.read(wait)
            if not wait:
                break
        if not lane:
            return None
        size, message = lane.popleft()
        self.held -= size
        return message

    def next_kind(self) -> Kind:
        """The kind of the next message, which stays here."""
        while not self._waiting:
            if self.lost is not None:
                raise self.lost
            self.read(wait=True)
        return self._waiting[0][1].kind

    def read(self, wait: bool) -> None:
        """Take in what has come. ``wait``: until something has, or something else has changed."""
        with self._reading:
            for key, _ in self._soon() or self._selector.select() if wait else self._selector.select(0):
                if key.data is None:
                    self._bell.recv(SMALL)
                else:
                    self._read(key.data)

    def _soon(self) -> list[tuple[selectors.SelectorKey, int]]:
        """What comes in the next moments. Meanwhile whoever else wants the processor has it."""
        until = time.perf_counter() + LOOKS
        while not (found := self._selector.select(0)) and time.perf_counter() < until:
            _let_others()
        return found

    def _read(self, connection: Incoming | Watched) -> None:
        try:
            for size, message in connection.read():
                self._put(size, message)
        except (OSError, LostError) as error:
            self.lost = LostError(f"{connection.name} has gone ({error})")
            connection.over = True
        if connection.over:
            self._selector.unregister(connection.socket)

    def close(self, goodbye: bool) -> None:
        """Nothing more is read."""
        for connection in self._connections:
            if goodbye and isinstance(connection, Incoming):
                with suppress(OSError):  # the other one has gone before
                    connection.socket.send(GOODBYE, socket.MSG_DONTWAIT)
            shut(connection.socket)
        self._selector.close()
        self._bell.close()
        self._rope.close()
