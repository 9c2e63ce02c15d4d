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
from collections.abc import Sequence
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
    """What attempts have died of: by the least and the greatest numbers of its rows, each call that never came back;
    and the rows that have been found out.
    """

    calls: list[tuple[Pair, Pair]] = field(default_factory=list)
    aside: set[tuple[int, int]] = field(default_factory=set)  # stream and number

    @classmethod
    def read(cls, text: str) -> Deaths:
        given = json.loads(text)
        calls = [(tuple(low), tuple(high)) for low, high in given["calls"]]
        return cls(calls, {(stream, number) for stream, number in given["aside"]})

    def written(self) -> str:
        return json.dumps({"calls": self.calls, "aside": sorted(self.aside)})

    def found_out(self) -> set[tuple[int, int]]:
        """Of each pair that has killed, once three calls with one of its rows have: that row. If it could be either,
        it is the one of more pairs, or else the younger one, whose coming was the reason to try it.

        >>> Deaths([((3, 0), (5, 9)), ((4, 2), (4, 2))]).found_out()
        set()
        >>> Deaths([((3, 0), (5, 9)), ((4, 2), (4, 2)), ((4, 7), (4, 7))]).found_out()
        {(0, 4)}
        """
        pairs = [low for low, high in self.calls if low == high]
        partners = Counter(row for pair in set(pairs) for row in _rows(pair))
        found = set()
        for pair in pairs:
            worst = max(_rows(pair), key=lambda row: (self._kills(row), partners[row], row[1], row[0]))
            if self._kills(worst) >= KILLS:
                found.add(worst)
        return found

    def _kills(self, row: tuple[int, int]) -> int:
        stream, number = row
        return sum(low[stream] <= number <= high[stream] for low, high in self.calls)


class FileWatch:
    """What ``Ring.connect`` takes as its watch. ``folder``: of one node, on a disk that stays if its process is killed.
    Rows have the same numbers whenever a round runs again.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._record, file = folder, folder / RECORD, folder / "note"
        self.deaths = Deaths.read(self._record.read_text()) if self._record.exists() else Deaths()
        self.known = self.deaths
        if file.exists() and (size := NOTE.unpack_from(data := file.read_bytes())[1]):
            low, high = json.loads(data[NOTE.size : NOTE.size + size])  # the attempt before has ended in this call
            self.deaths.calls.append((tuple(low), tuple(high)))
            self._keep()
        file.write_bytes(bytes(SIZE))
        self._calls = 0
        self._file = file.open("r+b")
        self._note = mmap.mmap(self._file.fileno(), SIZE)

    def gather(self) -> None:
        """Learn what the other nodes have died of, whose folders are beside this one. All of them have begun by now."""
        every = [Deaths.read(record.read_text()) for record in sorted(self._folder.parent.glob(f"*/{RECORD}"))]
        aside = {row for each in every for row in each.aside}
        self.known = Deaths([call for each in every for call in each.calls], aside)
        if new := self.known.found_out() - aside:
            self.known.aside |= new
            self.deaths.aside |= new
            self._keep()

    def _keep(self) -> None:
        draft = self._record.with_suffix(".draft")
        draft.write_text(self.deaths.written())
        draft.replace(self._record)

    def close(self, survived: bool) -> None:
        """The process lives. ``survived``: and the round is over, so that whatever was suspicious has been tried."""
        if survived and self.deaths.calls:
            self.deaths.calls.clear()
            self._keep()
        self.after()
        self._note.close()
        self._file.close()

    # -- what the operator calls -------------------------------------------------------------------------------
    def refused(self, test: int, numbers: Sequence[Ints]) -> Bools | None:  # noqa: ARG002
        found = np.zeros(len(numbers[0]), np.bool_)
        for stream, number in self.known.aside:
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
        for low, high in self.known.calls:
            inside = [(n >= a) & (n <= b) for n, a, b in zip(numbers, low, high, strict=True)]
            suspicious |= np.logical_and.reduce(inside)
        if not suspicious.any():
            return len(suspicious)
        return max(1, int(np.argmax(suspicious)))


def _rows(pair: Pair) -> list[tuple[int, int]]:
    return [(stream, number) for stream, number in enumerate(pair) if number >= 0]
