"""Whether it pays to compress what is sent: that depends on the data, the network and the processor."""

from __future__ import annotations

import time

import pyarrow as pa

CODEC = "lz4"
LEAST = 1 << 15  # bytes: less goes as it is
AGAIN = 16  # large buffers until compression is tried anew
NEW = 0.5  # the weight of what was measured last


class Squeeze:
    """One for each connection. Compresses a buffer if that, and sending what is left, takes less than sending it all.

    >>> squeeze = Squeeze()
    >>> squeeze.sent(1 << 20, 10.0)  # a slow network
    >>> len(squeeze.packed(bytes(1 << 16))[0]) < 1 << 12, bytes(unpacked(*squeeze.packed(bytes(9)))) == bytes(9)
    (True, True)
    """

    def __init__(self) -> None:
        self.network = 1e-9  # seconds for a byte
        self.packing = 2.5e-9
        self.ratio = 0.5
        self._count = 0

    def packed(self, data: bytes | memoryview) -> tuple[bytes | memoryview, int]:
        """A buffer as it is sent, and its size before; 0 if it goes as it is."""
        if len(data) < LEAST:
            return data, 0
        self._count += 1
        if not self.pays and self._count % AGAIN:
            return data, 0
        began = time.perf_counter()
        small = pa.compress(data, codec=CODEC, asbytes=True)
        self.packing = _mixed(self.packing, (time.perf_counter() - began) / len(data))
        self.ratio = _mixed(self.ratio, len(small) / len(data))
        return (small, len(data)) if self.pays and len(small) < len(data) else (data, 0)

    @property
    def pays(self) -> bool:
        """Whether it saves time, of a byte."""
        return self.packing + self.ratio * self.network < self.network

    def sent(self, size: int, seconds: float) -> None:
        """How long it took to hand over so many bytes: small messages only say how fast the kernel is."""
        if size >= LEAST:
            self.network = _mixed(self.network, seconds / size)


def unpacked(data: bytes | memoryview, size: int) -> bytes | memoryview:
    """What ``packed`` was given."""
    return pa.decompress(data, decompressed_size=size, codec=CODEC, asbytes=True) if size else data


def _mixed(before: float, now: float) -> float:
    return (1 - NEW) * before + NEW * now
