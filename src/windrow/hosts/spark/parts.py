"""Large chunks of state as several values: Spark's state server takes no value of hundreds of megabytes.

The first value of a chunk has the name of the chunk, the others its name and a number. How many there are is kept with
the version of the state, which is read in every micro-batch anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MOST = 1 << 24  # bytes of a value
MARK = "|"  # no chunk has it in its name


@dataclass
class Version:
    """``token`` names a committed state; ``parts``: of chunks with several values, how many.

    >>> version = Version("7f")
    >>> list(version.write("a", [b"1", b"2"])), str(version)
    ([('a', b'1'), ('a|1', b'2')], '7f|{"a": 2}')
    >>> list(Version.read(str(version)).write("a", [b"3"]))
    [('a', b'3'), ('a|1', None)]
    """

    token: str
    parts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Version:
        token, _, parts = text.partition(MARK)
        return cls(token, json.loads(parts) if parts else {})

    def __str__(self) -> str:
        return f"{self.token}{MARK}{json.dumps(self.parts)}" if self.parts else self.token

    def write(self, name: str, values: list[bytes]) -> Iterator[tuple[str, bytes | None]]:
        """What to store for a chunk, and what to remove (None): nothing is left of what it was."""
        before = self.parts.pop(name, 1)
        if len(values) > 1:
            self.parts[name] = len(values)
        for number, value in enumerate(values):
            yield _key(name, number), value
        for number in range(len(values), before):
            yield _key(name, number), None


def divided(blob: bytes, most: int = MOST) -> list[bytes]:
    """A chunk as values of bounded size.

    >>> divided(b"abcde", 2)
    [b'ab', b'cd', b'e']
    """
    return [blob] if len(blob) <= most else [blob[at : at + most] for at in range(0, len(blob), most)]


def whole(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """Chunks from their values.

    >>> whole({"a|1": b"2", "a": b"1", "b": b"3"})
    {'a': b'12', 'b': b'3'}
    """
    parts: dict[str, dict[int, bytes]] = {}
    for key, value in values.items():
        name, _, number = key.partition(MARK)
        parts.setdefault(name, {})[int(number or 0)] = value
    return {name: b"".join(found[n] for n in sorted(found)) for name, found in parts.items()}


def _key(name: str, number: int) -> str:
    return f"{name}{MARK}{number}" if number else name
