"""Connections between the nodes of a ring: Arrow IPC over TCP, with back pressure, for nodes that know a secret."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from windrow.errors import WindrowError
from windrow.hosts.ring.squeeze import Squeeze, unpacked
from windrow.operators.ring.messages import Kind, Message

CONNECT = 60.0  # seconds that nodes have to find each other
ROOM = 1 << 26  # bytes that wait for a node before those who send to it have to wait
LENGTH = struct.Struct("<Q")
HELLO = struct.Struct("<4sh16s")  # magic, node, nonce
MAGIC = b"WRG1"
PROOF = hashlib.sha256().digest_size
PARTS = 64  # buffers that the kernel is given at once


class LostError(WindrowError):
    """A node is not there, or no longer: the round cannot end, and runs again."""


@dataclass(frozen=True)
class Address:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Listener:
    """Where the other nodes find this one. Its address is known before theirs are."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_server((host, 0), backlog=128)
        self.address = Address(host, self.socket.getsockname()[1])


@dataclass
class Inbox:
    """Messages that have come. Readers wait while there are too many, but not while this node itself waits to send: in
    a ring where all nodes wait for each other nobody would go on.
    """

    room: int = ROOM
    held: int = 0  # bytes
    most: int = 0
    sending: bool = False
    waiting: deque[tuple[int, Message]] = field(default_factory=deque)
    commits: deque[tuple[int, Message]] = field(default_factory=deque)  # they can overtake what is on its way round
    lost: LostError | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def put(self, size: int, message: Message) -> None:
        with self.changed:
            while self.held > self.room and not self.sending:
                self.changed.wait()
            self.held += size
            self.most = max(self.most, self.held)
            (self.commits if message.kind == Kind.COMMIT else self.waiting).append((size, message))
            self.changed.notify_all()

    def lose(self, lost: LostError) -> None:
        """A node has gone: when what it has sent before is used up, nothing more can come."""
        with self.changed:
            self.lost = lost
            self.changed.notify_all()

    def take(self, wait: bool, commit: bool = False) -> Message | None:
        lane = self.commits if commit else self.waiting
        with self.changed:
            while not lane:
                if self.lost is not None:
                    raise self.lost
                if not wait:
                    return None
                self.changed.wait()
            size, message = lane.popleft()
            self.held -= size
            self.changed.notify_all()
        return message

    def next_kind(self) -> Kind:
        """The kind of the next message, which stays here."""
        with self.changed:
            while not self.waiting:
                if self.lost is not None:
                    raise self.lost
                self.changed.wait()
            return self.waiting[0][1].kind

    def send(self, sending: bool) -> None:
        """Whether this node is about to wait for another one."""
        with self.changed:
            self.sending = sending
            self.changed.notify_all()


class TcpLinks:
    """What ``Ring.connect`` takes. Nodes connect when they first send to each other; each connection has one direction.

    ``secret``: known to the nodes of this ring only. Who does not prove to know it is not listened to.
    """

    def __init__(
        self, node: int, listener: Listener, addresses: Sequence[Address], secret: bytes, patience: float = CONNECT
    ) -> None:
        self.node, self.nodes = node, len(addresses)
        self.addresses, self.secret, self.patience = list(addresses), secret, patience
        self.listener = listener
        self.inbox = Inbox()
        self.sent = 0  # bytes
        self._out: dict[int, Outgoing] = {}
        self._in: list[socket.socket] = []
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def send(self, to: int, message: Message) -> None:
        if to == self.node:
            self.inbox.put(message.size(), message)
            return
        link = self._out.get(to) or self._connected(to)
        self.inbox.send(True)
        try:
            self.sent += link.send(message)
        except OSError as error:
            raise LostError(f"node {to} at {self.addresses[to]} has gone ({error})") from None
        finally:
            self.inbox.send(False)

    def receive(self, wait: bool) -> Message | None:
        return self.inbox.take(wait)

    def next_kind(self) -> Kind:
        """Waits for the next message, and says of which kind it is."""
        return self.inbox.next_kind()

    def check(self) -> None:
        """Raises LostError if a node has gone."""
        if self.inbox.lost is not None:
            raise self.inbox.lost

    def receive_commit(self) -> Message:
        """The next message about the end of a round."""
        found = self.inbox.take(wait=True, commit=True)
        assert found is not None
        return found

    def close(self, goodbye: bool = True) -> None:
        """With a goodbye, unless the round has failed here: then the others must not wait for this node."""
        self._closing = True
        for link in self._out.values():
            link.close(goodbye)
        for each in (self.listener.socket, *self._in):
            _shut(each)

    # -- the other nodes ---------------------------------------------------------------------------------------
    def _connected(self, to: int) -> Outgoing:
        address, until = self.addresses[to], time.monotonic() + self.patience
        while True:
            try:
                found = _greeted_by(address, self.node, self.secret, max(0.1, until - time.monotonic()))
                break
            except (OSError, LostError) as error:
                if time.monotonic() >= until:
                    raise LostError(
                        f"node {self.node} has not reached node {to} at {address} within {self.patience:g} s "
                        f"({error}): see that the port is open between the machines of the ring, and that the "
                        "process is alive"
                    ) from None
                time.sleep(0.05)
        self._out[to] = Outgoing(found)
        return self._out[to]

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self.listener.socket.accept()
            except OSError:
                return
            self._in.append(found)
            threading.Thread(target=self._read, args=(found,), daemon=True).start()

    def _read(self, found: socket.socket) -> None:
        try:
            found.settimeout(self.patience)
            node = _greeted(found, self.node, self.secret)
            found.settimeout(None)
        except (OSError, LostError, struct.error):
            _shut(found)  # nobody of this ring
            return
        try:
            while size := LENGTH.unpack(_exactly(found, LENGTH.size))[0]:
                self.inbox.put(size, Message.read(_exactly(found, size), unpacked))
        except (OSError, LostError) as error:
            if not self._closing:
                self.inbox.lose(LostError(f"node {node} at {self.addresses[node]} has gone ({error})"))


class Outgoing:
    """A connection to another node."""

    def __init__(self, found: socket.socket) -> None:
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket, self.squeeze = found, Squeeze()

    def send(self, message: Message) -> int:
        """Returns the bytes that have gone."""
        parts = message.parts(self.squeeze.packed)
        size = sum(len(part) for part in parts)
        began = time.perf_counter()
        self._all([LENGTH.pack(size), *parts])
        self.squeeze.sent(size, time.perf_counter() - began)
        return size

    def _all(self, parts: list[bytes | memoryview]) -> None:
        left = deque(memoryview(part) for part in parts if len(part))
        while left:
            done = self.socket.sendmsg([left[n] for n in range(min(PARTS, len(left)))])
            while left and done >= len(left[0]):
                done -= len(left.popleft())
            if done:
                left[0] = left[0][done:]

    def close(self, goodbye: bool) -> None:
        if goodbye:
            with suppress(OSError):  # the other one has gone before
                self.socket.sendall(LENGTH.pack(0))
        self.socket.close()


# -- who is there ------------------------------------------------------------------------------------------------------
def _proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"".join(parts), "sha256")


def _greeted_by(address: Address, node: int, secret: bytes, patience: float) -> socket.socket:
    """A connection to a node that is of this ring."""
    found = socket.create_connection((address.host, address.port), patience)
    try:
        _greet(found, node, secret)
    except (OSError, LostError):
        found.close()
        raise
    found.settimeout(None)
    return found


def _greet(found: socket.socket, node: int, secret: bytes) -> None:
    """Show the node at the other end that this one knows the secret, and see that it does, too."""
    nonce = os.urandom(16)
    found.sendall(HELLO.pack(MAGIC, node, nonce))
    _, other, theirs = HELLO.unpack(_exactly(found, HELLO.size))
    found.sendall(_proof(secret, b"from", theirs, nonce))
    if not hmac.compare_digest(_exactly(found, PROOF), _proof(secret, b"to", nonce, theirs)):
        raise LostError(f"whoever answers as node {other} is not of this ring")


def _greeted(found: socket.socket, node: int, secret: bytes) -> int:
    """The node at the other end, if it knows the secret."""
    magic, other, theirs = HELLO.unpack(_exactly(found, HELLO.size))
    if magic != MAGIC:
        raise LostError("this is no node of a ring")
    nonce = os.urandom(16)
    found.sendall(HELLO.pack(MAGIC, node, nonce))
    if not hmac.compare_digest(_exactly(found, PROOF), _proof(secret, b"from", nonce, theirs)):
        raise LostError("it does not know the secret of this ring")
    found.sendall(_proof(secret, b"to", theirs, nonce))
    return int(other)


def _exactly(found: socket.socket, size: int) -> memoryview:
    data = memoryview(bytearray(size))
    at = 0
    while at < size:
        got = found.recv_into(data[at:])
        if not got:
            raise LostError("the connection has ended")
        at += got
    return data


def _shut(found: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        found.shutdown(socket.SHUT_RDWR)
    found.close()
