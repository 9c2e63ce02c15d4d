"""Where the rows of an aligned join go: which node has which segment of the master, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.progress import END, START
from windrow.windows.multiway import Ranges
from windrow.windows.tuples import Bools, Ints

USUAL = 5  # times the longest window: with shorter segments most rows are near a border


def master_of(ranges: Ranges, heights: Sequence[int]) -> int:
    """The stream that is cut into segments, and of which no row is copied: the one with most rows, of those whose
    windows are times, because only of these it is known where a row of another stream can meet theirs.

    >>> master_of(Ranges((10, 5, 3), (False, False, True)), [4, 7, 9])
    1
    """
    streams = range(len(heights))
    by_time = [n for n in streams if not ranges.counts(n)]
    return max(by_time or streams, key=lambda n: (heights[n], -n))


def usual_length(ranges: Ranges) -> int:
    """How long a segment is if nothing is said: in units of time, or in rows where all windows are rows.

    >>> usual_length(Ranges((10, 200), (False, True)))
    50
    """
    by_time = [held for n, held in enumerate(ranges.lengths) if not ranges.counts(n)]
    return USUAL * max(by_time or ranges.lengths)


@dataclass(frozen=True)
class Segments:
    """The master is cut by time, or by its rows where its window is rows. Each of ``epochs``: from where on segments of
    a length go round so many nodes. What is held stays where it is when these change.

    >>> segments = Segments(((0, 10, 2), (70, 10, 3)))
    >>> segments.nodes(np.array([50, 65, 65]), np.array([50, 65, 75]), 3).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [1, 1, 0]]
    """

    epochs: tuple[tuple[int, int, int], ...] = ()

    def nodes(self, first: Ints, last: Ints, most: int) -> Bools:
        """Which of ``most`` nodes have a segment between the first and the last place of each row: rows x nodes."""
        found = np.zeros((len(first), most), np.bool_)
        ends = [*(start - 1 for start, *_ in self.epochs[1:]), END]
        for (start, length, nodes), end in zip(self.epochs, ends, strict=True):
            low, high = np.maximum(first, start), np.minimum(last, end)
            inside, count = low <= high, high // length - low // length
            ahead = (np.arange(nodes) - (low // length)[:, np.newaxis]) % nodes  # segments until that of each node
            found[:, :nodes] |= inside[:, np.newaxis] & (ahead <= count[:, np.newaxis])
        return found

    def changed(self, length: int, nodes: int, start: int, needed: int) -> Segments:
        """Another length, or as many nodes as that, from a place on; nobody asks for what is before ``needed``."""
        if not self.epochs:
            return Segments(((START, length, nodes),))
        same = self.epochs[-1][1:] == (length, nodes)
        epochs = self.epochs if same else (*self.epochs, (start, length, nodes))
        while len(epochs) > 1 and epochs[1][0] <= needed:
            epochs = epochs[1:]
        return Segments(epochs)


@dataclass(frozen=True)
class Alignment:
    """Which nodes a row goes to: those with rows of the master that it can be a result with, whichever comes first.

    Where one of the two is held until so many others have come, nobody can say how long that is: then every node has
    the row.
    """

    ranges: Ranges
    master: int
    segments: Segments

    def place(self, times: Ints, numbers: Ints) -> Ints:
        """Where rows of any stream are among the segments."""
        return numbers if self.ranges.counts(self.master) else times

    def reach(self, stream: int, times: Ints, numbers: Ints) -> tuple[Ints, Ints] | None:
        """Between which places there are rows of the master that rows can meet; None: nobody knows."""
        if stream == self.master:
            own = self.place(times, numbers)
            return own, own
        if self.ranges.counts(stream) or self.ranges.counts(self.master):
            return None
        return times - self.ranges.lengths[self.master] + 1, times + self.ranges.lengths[stream] - 1

    def nodes(self, stream: int, times: Ints, numbers: Ints, most: int) -> Bools:
        """Which of ``most`` nodes rows go to: rows x nodes."""
        reach = self.reach(stream, times, numbers)
        return np.ones((len(times), most), np.bool_) if reach is None else self.segments.nodes(*reach, most)

    def at_home(self, node: int, most: int, times: Ints, numbers: Ints) -> int:
        """How many rows of a node, one of ``most``, are not copies: their own segment is there."""
        place = self.place(times, numbers)
        return int(self.segments.nodes(place, place, most)[:, node].sum()) if len(place) else 0

    def values(self) -> dict[str, Any]:
        return {"master": self.master, "epochs": self.segments.epochs}

    @classmethod
    def read(cls, ranges: Ranges, values: Mapping[str, Any]) -> Alignment:
        """What ``values`` gives, after a way through JSON."""
        epochs = tuple((int(start), int(length), int(nodes)) for start, length, nodes in values["epochs"])
        return cls(ranges, int(values["master"]), Segments(epochs))
