"""Promises about the future of a stream, and how the promises of several inputs combine (Li, chapters 2 and 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

START = -(1 << 63)  # nothing promised yet
END = (1 << 63) - 1  # the stream has ended: no tuple follows
FARTHEST = 1 << 62  # progress values are nearer to zero than this, so that adding lengths to them stays in 64 bits
LONGEST = 1 << 60  # and no length is longer; an origin may be twice as far

Box = tuple[int, int]  # all pairs of times of which the first and the second are below these; END is above any time


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Every later tuple has a progress value of at least ``value``; with ``group``, every later tuple of that group.

    ``marks``: the promises of a source that it sums up, in ascending order and as the source wrote them, so that those
    which say less than one before can be counted. They mean nothing else, and a promise of our own making has none.
    ``reached``: of the end of a stream, the greatest progress value of any row that was read; None if there was none.
    ``boxes``: of rows with two times, those of a join, joint promises: the times of no later tuple are in any of these
    boxes. A box with END as one of its numbers is a promise about the other time alone. Whoever makes such promises
    always makes the same number of them, and each box contains the one that it gave before in that place.
    """

    value: int
    group: Hashable = None
    marks: tuple[int, ...] = field(default=(), compare=False, repr=False)
    reached: int | None = field(default=None, compare=False, repr=False)
    boxes: tuple[Box, ...] = field(default=(), repr=False)

    def mapped(self, of: Callable[[int], int]) -> Punctuation:
        """The same promise about a function of the attribute that never gives less for more."""
        value = self.value if self.value in (START, END) else of(self.value)
        reached = None if self.reached is None else of(self.reached)
        return Punctuation(value, self.group, reached=reached, boxes=self.boxes)

    def alone(self) -> Punctuation:
        """The promise about the progressing attribute, without joint ones."""
        return replace(self, boxes=()) if self.boxes else self


def ended(promised: int, reached: int | None) -> list[Punctuation]:
    """The end of a stream that came so far: all that was read can be promised before it.

    >>> ended(7, 9)
    [Punctuation(value=9, group=None), Punctuation(value=9223372036854775807, group=None)]
    """
    last = [Punctuation(reached)] if reached is not None and reached > promised else []
    return [*last, Punctuation(END, reached=reached)]


class Promises:
    """What one stream has promised so far. Promises only grow; a weaker one than held adds nothing.

    >>> p = Promises()
    >>> p.give(Punctuation(10)), p.give(Punctuation(7)), p.give(Punctuation(30, group="a"))
    (True, False, True)
    >>> p.low, p.for_group("a"), p.for_group("b")
    (10, 30, 10)
    """

    def __init__(self, low: int = START, groups: dict[Hashable, int] | None = None) -> None:
        self.low = low
        self.groups = dict(groups or {})
        self.reached: int | None = None  # of a stream that has ended: how far it came
        self.boxes: tuple[Box, ...] = ()

    def give(self, promise: Punctuation) -> bool:
        """Take a promise; true if it says more than what was known."""
        wider = grown(self.boxes, promise.boxes)
        news, self.boxes = wider != self.boxes, wider
        if promise.value <= self.for_group(promise.group):
            return news
        if promise.group is not None:
            self.groups[promise.group] = promise.value
        else:
            self.low = promise.value
            self.reached = promise.reached
            # A group that is promised no more than everyone needs no entry: this bounds the state.
            self.groups = {g: v for g, v in self.groups.items() if v > self.low}
        return True

    def backwards(self, promise: Punctuation) -> int:
        """How many of the promises that this one sums up promise less than what was already known."""
        return bisect_left(promise.marks or (promise.value,), self.for_group(promise.group))

    def for_group(self, group: Hashable) -> int:
        """The strongest promise that holds for this group."""
        return max(self.low, self.groups.get(group, START)) if group is not None else self.low


def grown(known: tuple[Box, ...], new: tuple[Box, ...]) -> tuple[Box, ...]:
    """The joint promises of a stream after new ones: each box grows, or stays as it is.

    >>> grown(((5, 7), (1, 9)), ((6, 7), (4, 2)))
    ((6, 7), (1, 9))
    """
    if not known or not new:
        return known or new
    return tuple(b if a[0] <= b[0] and a[1] <= b[1] else a for a, b in zip(known, new, strict=True))


class Combined:
    """The promises of the union of several streams: the weakest of theirs, for everyone, group by group, box by box.

    >>> c = Combined(2)
    >>> c.give(0, Punctuation(10)), c.give(1, Punctuation(4))
    ([], [Punctuation(value=4, group=None)])
    >>> c.give(1, Punctuation(8, group="a"))         # input 0 has promised 10 for everyone, so also for "a"
    [Punctuation(value=8, group='a')]
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = [Promises() for _ in range(inputs)]
        self.given = Promises()

    def give(self, port: int, promise: Punctuation) -> list[Punctuation]:
        """Take a promise of input ``port``; returns the promises of the union that follow from it and are new."""
        if not self.inputs[port].give(promise):
            return []
        news = []
        if promise.group is None:
            low = min(p.low for p in self.inputs)
            ends = [p.reached for p in self.inputs if p.reached is not None]
            # The union ends when all inputs have, and came as far as the furthest of them.
            if low != END:
                news.append(Punctuation(low, boxes=self._boxes()))
            else:
                news += ended(self.given.low, max(ends, default=None))
            # The others may have promised more for some groups than this input had until now.
            touched = {g for p in self.inputs for g in p.groups}
        else:
            touched = {promise.group}
        news += [Punctuation(min(p.for_group(g) for p in self.inputs), g) for g in sorted(touched, key=repr)]
        return [p for p in news if self.given.give(p)]

    def _boxes(self) -> tuple[Box, ...]:
        """The least of each number: a pair of times that is in the box of every input is in none to come."""
        going = [p.boxes for p in self.inputs if p.low != END]
        if not all(going):
            return ()
        places = zip(*going, strict=True)
        return tuple((min(a for a, _ in place), min(b for _, b in place)) for place in places)
