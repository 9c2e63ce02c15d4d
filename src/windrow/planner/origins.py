"""Origins: what a wait inside a plan asks of the sources, as promises on what each of them progresses on.

Between a source and an operator that waits there are steps and stages that change promises: windows count their ids,
joins subtract their ranges, results progress on their last instants. None of them has to know its inverse: what it
makes of a promise only grows with the promise, so the least promise that is enough is found by trying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from windrow.errors import WindrowError
from windrow.logical.nodes import WindowAggregate
from windrow.operators import Bucket, Operator, Panes, WallClock
from windrow.operators.operator import Forwarding
from windrow.planner.plan import Arm, Meeting, Pipeline, Plan, Read, Stage, Step
from windrow.progress import END, FARTHEST, START, Punctuation

MOST = 64  # ways from sources to one input of a stage; more are not looked at
FAR = 1 << 52  # how far the other inputs of a stage are ahead while one is tried
COUNTING = (Panes, Bucket, WallClock)  # what a window aggregate translates back itself when it says what it waits for


def key_of(read: Read) -> str:
    """What a source is called where it is read: several attributes of one source may be read as its progress."""
    return f"{read.scan.name}:{'row number' if read.by_rows else read.attribute}"


@dataclass(frozen=True)
class Leg:
    """Steps, then a stage that takes their output in one of its arms; without ``stage`` the steps alone."""

    before: tuple[Step, ...]
    arms: tuple[Meeting, ...] = ()
    arm: int = 0
    stage: tuple[Step, ...] = ()

    def promised(self, value: int) -> int:
        """What comes out for a promise that goes in, if nothing is held and nothing else holds it back."""
        found = [Punctuation(value)]
        for step in self.before:
            found = _passed(_made(step), 0, found)
        if self.arms:
            found = _passed(self.arms[self.arm].make(1), 0, found)
        if self.stage:
            first = _made(self.stage[0])
            for other in (port for port in range(len(self.arms)) if port != self.arm):
                first.on_punctuation(other, Punctuation(min(value + FAR, FARTHEST - 1)))
            found = _passed(first, self.arm, found)
        for step in self.stage[1:]:
            found = _passed(_made(step), 0, found)
        return max((promise.value for promise in found), default=START)

    def asked(self, wanted: int) -> int:
        """The least promise that has to go in for a promise of ``wanted`` to come out."""
        if not self.stage and all(_is_identity(step) for step in self.before):
            return wanted
        return least(self.promised, wanted)


@dataclass(frozen=True)
class Origin:
    """A source, and the way from there to an arm of a stage."""

    source: str
    legs: tuple[Leg, ...]
    last: tuple[Step, ...]


@dataclass(frozen=True)
class Entry:
    """An arm of a stage: for each of its pipelines where its rows are from."""

    meeting: Meeting
    pipelines: tuple[tuple[Origin, ...], ...]
    named: tuple[tuple[str, ...], ...]  # the names of the steps of each pipeline

    @property
    def origins(self) -> tuple[Origin, ...]:
        return tuple(origin for origins in self.pipelines for origin in origins)


@dataclass(frozen=True)
class Entries:
    """A stage, as far as promises are concerned. It can be sent to where the stage runs."""

    number: int
    arms: tuple[Entry, ...]
    steps: tuple[Step, ...]
    counts: bool  # whether its first operator says in terms of the attribute what it waits for, and counts windows

    def asks(self, operator: str, port: int, wanted: int) -> dict[str, int]:
        """By source the promise that it would have to make for an operator to get the promise that it waits for."""
        found: dict[str, int] = {}
        for origin, last in self._ways(operator, port):
            value = wanted
            with suppress(WindrowError, OverflowError):
                for leg in (last, *reversed(origin.legs)):
                    value = leg.asked(value)
                found[origin.source] = max(value, found.get(origin.source, START))
        return found

    def _ways(self, operator: str, port: int) -> Iterator[tuple[Origin, Leg]]:
        """The ways to a port of an operator, and the end of each."""
        names = [step.name for step in self.steps]
        if operator in names:
            place = names.index(operator)
            for number, arm in enumerate(self.arms):
                if place or number == port:
                    for origin in arm.origins:
                        yield origin, self._into(origin, number, place)
            return
        for arm in self.arms:
            for number, origins in enumerate(arm.pipelines):
                if arm.meeting.name == operator and number == port:
                    yield from ((origin, Leg(origin.last)) for origin in origins)
                elif operator in arm.named[number]:
                    place = arm.named[number].index(operator)
                    yield from ((origin, Leg(_uncounted(origin.last[:place]))) for origin in origins)

    def _into(self, origin: Origin, arm: int, place: int) -> Leg:
        if place == 0:
            return Leg(_uncounted(origin.last) if self.counts else origin.last)
        return Leg(origin.last, tuple(each.meeting for each in self.arms), arm, self.steps[:place])


def entries(plan: Plan) -> dict[int, Entries]:
    """All stages of a plan by number."""
    ways = _Ways()
    return {stage.number: ways.of(stage) for stage in plan.stages()}


@dataclass
class _Ways:
    _known: dict[Stage, Entries] = field(default_factory=dict)

    def of(self, stage: Stage) -> Entries:
        if stage not in self._known:
            arms = tuple(self._entry(arm) for arm in stage.arms)
            counts = isinstance(stage.node, WindowAggregate)
            self._known[stage] = Entries(stage.number, arms, stage.steps, counts)
        return self._known[stage]

    def _entry(self, arm: Arm) -> Entry:
        pipelines = tuple(tuple(self._origins(p))[:MOST] for p in arm.inputs)
        return Entry(arm.meeting, pipelines, tuple(tuple(step.name for step in p.steps) for p in arm.inputs))

    def _origins(self, pipeline: Pipeline) -> Iterator[Origin]:
        source = pipeline.source
        if isinstance(source, Read):
            yield Origin(key_of(source), (), pipeline.steps)
            return
        before = self.of(source)
        meetings = tuple(arm.meeting for arm in source.arms)
        for number, arm in enumerate(before.arms):
            for origin in arm.origins:
                leg = Leg(origin.last, meetings, number, source.steps)
                yield Origin(origin.source, (*origin.legs, leg), pipeline.steps)


def least(of: Callable[[int], int], wanted: int) -> int:
    """The least value of which a function that never falls is at least ``wanted``; END if there is none.

    >>> least(lambda x: x // 10 * 10 - 5, 100), least(lambda x: x, 7), least(lambda x: 3, 4) == END
    (110, 7, True)
    """
    if wanted in (START, END):
        return wanted
    low, high, step = wanted - 1, wanted, 1
    while (now := of(high)) < wanted:
        step = max(2 * step, wanted - now if now > START else 0)
        low, high = high, high + step
        if high > FARTHEST:
            return END
    step = 1
    while of(low) >= wanted:
        low, high, step = low - step, low, 2 * step
        if low < -FARTHEST:
            return START
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle) >= wanted else (middle, high)
    return high


def _made(step: Step) -> Operator:
    return step.whole().make()


def _passed(operator: Operator, port: int, promises: Sequence[Punctuation]) -> list[Punctuation]:
    found = [item for promise in promises for item in operator.on_punctuation(port, promise)]
    items = [*found, *operator.on_flush()]
    return [item for item in items if isinstance(item, Punctuation) and item.group is None]


def _is_identity(step: Step) -> bool:
    own: object = type(_made(step)).on_punctuation
    return own is Forwarding.on_punctuation


def _uncounted(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Without the steps that count windows."""
    return tuple(step for step in steps if not isinstance(_made(step), COUNTING))
