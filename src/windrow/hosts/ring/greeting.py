"""How two nodes of a ring find out that the other one is of this ring: both know a secret, which neither sends."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

from windrow.errors import WindrowError

HELLO = struct.Struct("<4sh16s")  # magic, node, nonce
MAGIC = b"WRG1"
PROOF = hashlib.sha256().digest_size


class LostError(WindrowError):
    """A node is not there, or no longer: the round cannot end, and runs again."""


@dataclass(frozen=True)
class Address:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def greeted_by(address: Address, node: int, secret: bytes, patience: float) -> socket.socket:
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


def greeted(found: socket.socket, node: int, secret: bytes, patience: float) -> int:
    """The node at the other end of a connection that has come, if it knows the secret."""
    found.settimeout(patience)
    magic, other, theirs = HELLO.unpack(_exactly(found, HELLO.size))
    if magic != MAGIC:
        raise LostError("this is no node of a ring")
    nonce = os.urandom(16)
    found.sendall(HELLO.pack(MAGIC, node, nonce))
    if not hmac.compare_digest(_exactly(found, PROOF), _proof(secret, b"from", nonce, theirs)):
        raise LostError("it does not know the secret of this ring")
    found.sendall(_proof(secret, b"to", theirs, nonce))
    found.settimeout(None)
    return int(other)


def _proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"".join(parts), "sha256")


def _exactly(found: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = found.recv(size - len(data))
        if not more:
            raise LostError("the connection has ended")
        data += more
    return bytes(data)


def shut(found: socket.socket) -> None:
    """Close a connection, whoever waits for it."""
    with suppress(OSError):  # it is closed already
        found.shutdown(socket.SHUT_RDWR)
    found.close()
