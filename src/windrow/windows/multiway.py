"""Which rows of several streams are near enough to be a result: the windows of a multi-way join, as pure functions.

``near`` is the definition: every row is still held when the last one comes. Everything else follows from it: where the
next row can be, what to keep, what to promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from windrow.progress import END, START

PREFIX = {True: "@later of ", False: "@earlier of "}


class Moment(NamedTuple):
    """A time of results: the later, or the earlier, of those of some inputs; of one input its own.

    >>> Moment((0, 2)).name, Moment.read("@earlier of 1 2"), Moment.read("@left")
    ('@later of 0 2', Moment(inputs=(1, 2), later=False), None)
    """

    inputs: tuple[int, ...]
    later: bool = True

    @property
    def name(self) -> str:
        """What a logical plan calls the attribute."""
        return PREFIX[self.later] + " ".join(map(str, self.inputs))

    @classmethod
    def read(cls, name: str) -> Self | None:
        """The moment of that name, if it is one."""
        for later, prefix in PREFIX.items():
            if name.startswith(prefix):
                return cls(tuple(int(each) for each in name.removeprefix(prefix).split()), later)
        return None

    def of(self, times: Sequence[Any]) -> Any:
        """The time of results, given the times of their rows, of every input an array or a number."""
        return reduce(np.maximum if self.later else np.minimum, [times[i] for i in self.inputs])

    def ends(self, reached: Sequence[int | None]) -> int | None:
        """Where results end whose inputs have come so far."""
        known = [value for i in self.inputs if (value := reached[i]) is not None]
        return (max if self.later else min)(known, default=None)


@dataclass(frozen=True)
class Ranges:
    """``[RANGE w]`` of each input: a row is held for so long, and is in results with rows that come in that time.

    >>> Ranges((10, 2)).near([5, 14]), Ranges((10, 2)).near([5, 15]), Ranges((10, 2)).near([5, 3])
    (True, False, False)
    """

    lengths: tuple[int, ...]
    by_rows: tuple[bool, ...] = ()  # of inputs whose last so many rows are held; none are, if it is empty

    def counts(self, of: int) -> bool:
        """Whether the length of an input is a number of rows: it holds the last ones before the row that comes."""
        return bool(self.by_rows) and self.by_rows[of]

    def near(self, times: Sequence[int]) -> bool:
        """Whether rows with these times, one of each input, can be a result."""
        last = max(times)
        return all(last - time < held for time, held in zip(times, self.lengths, strict=True))

    def between(self, target: int, latest: Any, until: Any) -> tuple[Any, Any]:
        """The first and the last time of a row of ``target`` beside rows of which the last has the time ``latest``, and
        which are all held below ``until``: the least of their times plus lengths.
        """
        return latest - self.lengths[target] + 1, until - 1

    def first_kept(self, of: int, promised: Sequence[int]) -> int:
        """The least time of a row of an input that can be in a result to come: with a row to come of another one.

        >>> Ranges((10, 2, 5)).first_kept(0, [50, 30, 20])
        11
        """
        least = min(value for i, value in enumerate(promised) if i != of)
        return self._back(least, of)

    def promised(self, moment: Moment, promised: Sequence[int]) -> int:
        """The strongest true promise about the time of a result to come: one of its rows is still to come.

        >>> ranges = Ranges((10, 2, 5))
        >>> [ranges.promised(Moment(of), [50, 30, 40]) for of in ((0, 1, 2), (0,), (1,), (0, 2))]
        [30, 21, 30, 26]
        """
        return min(self._least(moment, source, value) for source, value in enumerate(promised))

    def needed(self, moment: Moment, source: int, value: int) -> int:
        """What an input must promise for results to come not to be before a value.

        >>> [Ranges((10, 2, 5)).needed(Moment((1, 2), later), 1, 30) for later in (True, False)]
        [30, 34]
        """
        return value - self._least(moment, source, 0)

    def _least(self, moment: Moment, source: int, value: int) -> int:
        """The least time of a result with a row of ``source`` that is not before ``value``."""
        found = [value if i == source else self._back(value, i) for i in moment.inputs]
        return (max if moment.later else min)(found)

    def _back(self, value: int, of: int) -> int:
        """The least time of a row of an input that is held when one with this time comes."""
        if self.counts(of) and value != END:
            return START
        return value if value in (START, END) else value - self.lengths[of] + 1
