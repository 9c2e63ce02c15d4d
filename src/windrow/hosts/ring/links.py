"""Connections between the nodes of a ring: Arrow IPC over TCP, with back pressure, for nodes that know a secret."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Sequence

from windrow.hosts.ring.greeting import Address, LostError, greeted, greeted_by, shut
from windrow.hosts.ring.incoming import Inbox, Incoming, Watched
from windrow.hosts.ring.outgoing import Outgoing
from windrow.hosts.ring.squeeze import Squeeze
from windrow.operators.ring.messages import Kind, Message

__all__ = ["Address", "Listener", "LostError", "TcpLinks"]

CONNECT = 60.0  # seconds that nodes have to find each other
ROOM = 1 << 26  # bytes that wait for a node before those who send to it have to wait
SILENT = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 6}  # seconds, seconds, times: then a machine has gone


class Listener:
    """Where the other nodes find this one. Its address is known before theirs are."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.socket = socket.create_server((host, 0), backlog=128)
        self.address = Address(host, self.socket.getsockname()[1])


class TcpLinks:
    """What ``Ring.connect`` takes. Nodes connect when they first send to each other; each connection has one direction.

    ``secret``: known to the nodes of this ring only. Who does not prove to know it is not listened to. ``room``: bytes
    that may wait for another node here; a message that is larger goes, too, and the next one waits for it.
    """

    def __init__(
        self,
        node: int,
        listener: Listener,
        addresses: Sequence[Address],
        secret: bytes,
        patience: float = CONNECT,
        room: int = ROOM,
    ) -> None:
        self.node, self.nodes = node, len(addresses)
        self.addresses, self.secret, self.patience, self.room = list(addresses), secret, patience, room
        self.listener = listener
        self.inbox = Inbox()
        self.sent = 0  # bytes
        self.most = 0  # that have waited for another node
        self._out: dict[int, Outgoing] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def send(self, to: int, message: Message) -> None:
        if to == self.node:
            self.inbox.post(message.size(), message)
            return
        link = self._out.get(to) or self._connected(to)
        try:
            self.sent += link.send(message)
            if link.waiting:
                self._wait(link)
        except OSError as error:
            raise LostError(f"node {to} at {self.addresses[to]} has gone ({error})") from None

    def receive(self, wait: bool) -> Message | None:
        return self.inbox.take(wait)

    def next_kind(self) -> Kind:
        """Waits for the next message, and says of which kind it is."""
        return self.inbox.next_kind()

    def check(self) -> None:
        """Raises LostError if a node has gone, as far as that can be known without waiting."""
        self.inbox.read(wait=False)
        if self.inbox.lost is not None:
            raise self.inbox.lost

    def receive_commit(self) -> Message:
        """The next message about the end of a round."""
        found = self.inbox.take(wait=True, commit=True)
        assert found is not None
        return found

    def squeezed(self, to: int, squeeze: Squeeze) -> None:
        """Decide otherwise what is compressed on the way to a node."""
        (self._out.get(to) or self._connected(to)).squeeze = squeeze

    def close(self, goodbye: bool = True) -> None:
        """With a goodbye, unless the round has failed here: then the others must not wait for this node."""
        for link in self._out.values():
            link.close(goodbye, self.patience)
        shut(self.listener.socket)
        self.inbox.close(goodbye)

    # -- the other nodes ---------------------------------------------------------------------------------------
    def _wait(self, link: Outgoing) -> None:
        """Until there is room again. What comes meanwhile is taken in, so that no two nodes wait for each other."""
        self.most = max(self.most, link.waiting)
        while link.waiting > self.room:
            if self.inbox.lost is not None:
                raise self.inbox.lost
            self.inbox.read(wait=True)
        if link.failed is not None:
            raise link.failed

    def _connected(self, to: int) -> Outgoing:
        address, until = self.addresses[to], time.monotonic() + self.patience
        while True:
            try:
                found = greeted_by(address, self.node, self.secret, max(0.1, until - time.monotonic()))
                break
            except (OSError, LostError) as error:
                if time.monotonic() >= until:
                    raise LostError(
                        f"node {self.node} has not reached node {to} at {address} within {self.patience:g} s "
                        f"({error}): see that the port is open between the machines of the ring, and that the "
                        "process is alive"
                    ) from None
                time.sleep(0.05)
        _probed(found)
        self.inbox.add(Watched(found, f"node {to} at {address}"))
        self._out[to] = Outgoing(found, self.inbox.wake)
        return self._out[to]

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self.listener.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._greeted, args=(found,), daemon=True).start()

    def _greeted(self, found: socket.socket) -> None:
        try:
            node = greeted(found, self.node, self.secret, self.patience)
            _probed(found)
            self.inbox.add(Incoming(found, f"node {node} at {self.addresses[node]}"))
        except (OSError, LostError, struct.error, ValueError):
            shut(found)  # nobody of this ring, or it is closed by now


def _probed(found: socket.socket) -> None:
    """A machine that has gone without a word is noticed."""
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in SILENT.items():
        if (option := getattr(socket, name, None)) is not None:
            found.setsockopt(socket.IPPROTO_TCP, option, value)
