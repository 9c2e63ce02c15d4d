"""What the nodes of a distributed join send each other: Arrow frames under schema tags, numbers, and small values."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints


class Kind(IntEnum):
    """What a message is for."""

    SETUP = 0  # the layout of the state and the orders of probes, for all nodes
    TRAIN = 1  # input rows, one after another: they build the state and probe it
    PARTIALS = 2  # intermediate results on their way through the state of the other streams
    MOVE = 3  # state on its way to the nodes that are to hold it
    DONE = 4  # all rows are processed: every node reports, and waits for the next round
    COMMIT = 5  # a node has written its state, and, from the head, that of all nodes counts
    MARK = 6  # between two rounds: here an epoch of the host ends


# Kind, train, sender, level, end; the lengths of what describes the tables and frames, and of the values.
HEADER = struct.Struct("<BqhhBII")
SEEN_LATELY = 64  # descriptions
Bytes = bytes | memoryview
Pack = Callable[[Bytes], tuple[Bytes, int]]
NEWEST = pl.CompatLevel.newest()  # both ends are the same program: text and binary columns cross as they are in memory


def _as_it_is(data: Bytes) -> tuple[Bytes, int]:
    return data, 0


class Payload:
    """A frame, or its bytes: what is only passed on is neither read nor written again.

    ``unpack``: of bytes that are compressed, what makes the ``size`` ones of them that they were.
    """

    __slots__ = ("_bytes", "_frame", "_packed", "_unpack")

    def __init__(
        self,
        frame: Batch | None = None,
        data: Bytes | None = None,
        size: int = 0,
        unpack: Callable[[Bytes, int], Bytes] | None = None,
    ) -> None:
        self._frame, self._bytes, self._unpack = frame, None if size else data, unpack
        self._packed = (data, size) if data is not None and size else None

    @property
    def frame(self) -> Batch:
        if self._frame is None:
            if self._bytes is None:
                assert self._packed is not None
                assert self._unpack is not None
                self._bytes = self._unpack(*self._packed)
            self._frame = pl.read_ipc_stream(io.BytesIO(self._bytes))
        return self._frame

    def packed(self, pack: Pack) -> tuple[Bytes, int]:
        """The bytes to be sent, and how many there were before they were compressed; 0 if they are not."""
        if self._packed is None:
            self.written()
            assert self._bytes is not None
            return pack(self._bytes)
        return self._packed

    def written(self) -> Payload:
        """As bytes from now on."""
        if self._bytes is None and self._packed is None:
            assert self._frame is not None
            out = io.BytesIO()
            self._frame.write_ipc_stream(out, compat_level=NEWEST)
            self._bytes = out.getbuffer()
        return self

    def size(self) -> int:
        """Bytes, about."""
        if self._packed is not None:
            return self._packed[1]
        if self._bytes is not None:
            return len(self._bytes)
        assert self._frame is not None
        return int(self._frame.estimated_size())


@dataclass(frozen=True)
class Message:
    """``train``: the input rows that it belongs to. ``sender``: the node that made it, for the control of its life
    span. ``level``: how many streams an intermediate result has rows of, less one. ``end``: it is the last one of its
    level at the head. ``frames`` have the schema tag of their rows as their name. ``ints``: tables of numbers, which go
    as they are in memory: a frame of a few takes longer to make than to send. ``to``: the node that it is for; None:
    the next one.
    """

    kind: Kind
    train: int = 0
    sender: int = 0
    level: int = 0
    end: bool = False
    frames: Mapping[str, Payload] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    to: int | None = None
    ints: Mapping[str, Ints] = field(default_factory=dict)

    def size(self) -> int:
        """Bytes on the wire, about."""
        return self._size

    @cached_property
    def _size(self) -> int:
        numbers = sum(table.nbytes for table in self.ints.values())
        return HEADER.size + numbers + sum(payload.size() for payload in self.frames.values())

    def parts(self, pack: Pack = _as_it_is) -> list[Bytes]:
        """The message as it is sent: buffers that follow each other. ``pack`` may compress one."""
        blobs = [payload.packed(pack) for payload in self.frames.values()]
        named = tuple((name, len(data), size) for name, (data, size) in zip(self.frames, blobs, strict=True))
        shapes = tuple((name, *table.shape) for name, table in self.ints.items())
        about, values = _described(shapes, named), json.dumps(self.values).encode() if self.values else b""
        header = HEADER.pack(self.kind, self.train, self.sender, self.level, self.end, len(about), len(values))
        tables = [table.tobytes() for table in self.ints.values()]
        return [b"".join([header, about, values, *tables]), *(data for data, _ in blobs)]

    @classmethod
    def read(cls, data: memoryview, unpack: Callable[[Bytes, int], Bytes] | None = None) -> Message:
        """What ``parts`` has written."""
        try:
            kind, train, sender, level, end, size, more = HEADER.unpack_from(data)
            at = HEADER.size + size
            shapes, named = _read_description(bytes(data[HEADER.size : at]))
            values = json.loads(str(data[at : at + more], "utf-8")) if more else {}
            ints, frames, at = {}, {}, at + more
            for name, shape in shapes:
                table = ints[name] = np.ndarray(shape, np.int64, data, at)
                at += table.nbytes
            for name, length, before in named:
                frames[name] = Payload(None, data[at : at + length], before, unpack)
                at += length
        except (struct.error, ValueError, TypeError) as error:
            raise InternalError(f"a message of the ring cannot be read ({error})") from None
        return cls(Kind(kind), train, sender, level, bool(end), frames, values, None, ints)


# One train is like the other: what describes them is written, and read, a few times only.
@lru_cache(SEEN_LATELY)
def _described(shapes: tuple[tuple[str | int, ...], ...], named: tuple[tuple[str, int, int], ...]) -> bytes:
    return json.dumps([shapes, named]).encode()


@lru_cache(SEEN_LATELY)
def _read_description(text: bytes) -> tuple[list[tuple[str, tuple[int, ...]]], list[tuple[str, int, int]]]:
    shapes, named = json.loads(text)
    return [(name, tuple(shape)) for name, *shape in shapes], [(name, size, before) for name, size, before in named]


def payloads(frames: Mapping[str, Batch]) -> dict[str, Payload]:
    """Frames that are there, to be sent."""
    return {name: Payload(frame) for name, frame in frames.items()}
