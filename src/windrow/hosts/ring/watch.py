"""Finds rows that kill the process in which a condition is tried for them, and sets them aside.

Before a user's function is called, a node notes in a file which rows it is about to see; the file outlives the process.
The next attempt at the same round finds the note of a call that never came back. Its rows are then tried one pair after
another, so that the second death names the pair; after the third one the row is set aside.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windrow.operators.ring.probing import KILLS
from windrow.windows.tuples import Bools, Ints

NOTE = struct.Struct("<QI")  # how many calls have begun, and the size of the note about the last one; 0: it is over
SIZE = 1 << 16
RECORD = "deaths.json"
Pair = tuple[int, ...]  # by stream the number of a row, or -1


@dataclass
class Deaths:
    """What earlier attempts have died of: calls with a row that is the reason, pairs that are, and the rows that have
    been found out.
    """

    suspects: list[tuple[Pair, Pair]] = field(default_factory=list)  # the least and the greatest numbers of a call
    pairs: Counter[Pair] = field(default_factory=Counter)
    aside: set[tuple[int, int]] = field(default_factory=set)  # stream and number

    @classmethod
    def read(cls, text: str) -> Deaths:
        given = json.loads(text)
        suspects = [(tuple(low), tuple(high)) for low, high in given["suspects"]]
        pairs = Counter({tuple(pair): int(kills) for pair, kills in given["pairs"]})
        return cls(suspects, pairs, {(stream, number) for stream, number in given["aside"]})

    def written(self) -> str:
        return json.dumps({"suspects": self.suspects, "pairs": list(self.pairs.items()), "aside": sorted(self.aside)})

    def add(self, low: Pair, high: Pair) -> None:
        """One more death: in a call of pairs with numbers in between.

        Of a pair that has killed often enough that row is set aside which has killed with more partners, or else the
        younger one, whose coming was the reason to try it.

        >>> deaths = Deaths()
        >>> deaths.add((3, 0), (5, 9))
        >>> deaths.add((4, 2), (4, 2))
        >>> deaths.aside
        set()
        >>> deaths.add((4, 2), (4, 2))
        >>> deaths.aside
        {(0, 4)}
        """
        if low != high:
            self.suspects.append((low, high))
            return
        self.pairs[low] += 1
        kills = self.pairs[low] + sum(_inside(low, *call) for call in self.suspects)
        partners = Counter(row for pair in self.pairs for row in _rows(pair))
        if kills >= KILLS:
            self.aside.add(max(_rows(low), key=lambda row: (partners[row], row[1], row[0])))

    def calls(self) -> Iterable[tuple[Pair, Pair]]:
        """What is tried pair after pair."""
        return [*self.suspects, *((pair, pair) for pair in self.pairs)]

    def survived(self) -> None:
        """The round is over: whatever was suspicious has been tried."""
        self.suspects, self.pairs = [], Counter()


class FileWatch:
    """What ``Ring.connect`` takes as its watch. ``folder``: of one node, on a disk that stays if its process is killed.
    Rows have the same numbers whenever a round runs again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._record, file = folder / RECORD, folder / "note"
        self.deaths = Deaths.read(self._record.read_text()) if self._record.exists() else Deaths()
        if file.exists():
            data = file.read_bytes()
            _, size = NOTE.unpack_from(data)
            if size:  # the attempt before has ended in a call
                low, high = json.loads(data[NOTE.size : NOTE.size + size])
                self.deaths.add(tuple(low), tuple(high))
                self._keep()
        file.write_bytes(bytes(SIZE))
        self._calls = 0
        self._file = file.open("r+b")
        self._note = mmap.mmap(self._file.fileno(), SIZE)

    def _keep(self) -> None:
        draft = self._record.with_suffix(".draft")
        draft.write_text(self.deaths.written())
        draft.replace(self._record)

    def close(self, survived: bool) -> None:
        """The process lives. ``survived``: and the round is over."""
        if survived and (self.deaths.suspects or self.deaths.pairs):
            self.deaths.survived()
            self._keep()
        self.after()
        self._note.close()
        self._file.close()

    # -- what the operator calls -------------------------------------------------------------------------------
    def refused(self, test: int, numbers: Sequence[Ints]) -> Bools | None:  # noqa: ARG002
        found = np.zeros(len(numbers[0]), np.bool_)
        for stream, number in self.deaths.aside:
            found |= numbers[stream] == number
        return found if found.any() else None

    def before(self, test: int, numbers: Sequence[Ints]) -> int:  # noqa: ARG002
        count = self._at_once(numbers)
        self._calls += 1
        low, high = ([int(each(n[:count])) for n in numbers] for each in (np.min, np.max))
        note = json.dumps([low, high]).encode()
        self._note[NOTE.size : NOTE.size + len(note)] = note
        self._note[: NOTE.size] = NOTE.pack(self._calls, len(note))
        return count

    def after(self) -> None:
        self._note[: NOTE.size] = NOTE.pack(self._calls, 0)

    def _at_once(self, numbers: Sequence[Ints]) -> int:
        """All that come before the first suspicious pair; of such pairs one."""
        suspicious = np.zeros(len(numbers[0]), np.bool_)
        for low, high in self.deaths.calls():
            inside = [(n >= a) & (n <= b) for n, a, b in zip(numbers, low, high, strict=True)]
            suspicious |= np.logical_and.reduce(inside)
        if not suspicious.any():
            return len(suspicious)
        return max(1, int(np.argmax(suspicious)))


def _rows(pair: Pair) -> list[tuple[int, int]]:
    return [(stream, number) for stream, number in enumerate(pair) if number >= 0]


def _inside(pair: Pair, low: Pair, high: Pair) -> bool:
    return all(a <= number <= b for number, a, b in zip(pair, low, high, strict=True))
