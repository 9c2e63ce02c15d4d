"""How far a stream of messages has come: which offsets of which partitions a step reads. What Spark logs of a topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from windrow.errors import CheckpointError, DataError
from windrow.sources.kafka.client import There
from windrow.sources.kafka.topic import Topic

FORMAT = 1


class Part(NamedTuple):
    """Of a partition: the step reads the messages from ``start`` to before ``end``. ``high``: where its end was, with
    the messages of transactions that were still open.
    """

    start: int
    end: int
    high: int

    @property
    def reached(self) -> bool:
        """Whether the step reads all that there was."""
        return self.end >= self.high


class Range(NamedTuple):
    """Messages of a partition that a task reads."""

    part: int
    start: int
    end: int


@dataclass(frozen=True)
class Offsets:
    """An offset in Spark's checkpoint. It names all that its step reads, so that it can be repeated.

    ``parts`` are all partitions that there were at the time ``asked``, in microseconds. ``lost``: how many messages
    were gone that no step had read, at most.
    """

    topic: str = ""
    id: str = ""
    asked: int = 0
    parts: Mapping[int, Part] = field(default_factory=dict)
    lost: int = 0

    @property
    def started(self) -> bool:
        return bool(self.id)

    @property
    def ranges(self) -> list[Range]:
        """What the step reads, by partition."""
        return [Range(part, at.start, at.end) for part, at in sorted(self.parts.items()) if at.end > at.start]

    def after(self, there: There, topic: Topic, most: int | None = None) -> Offsets:
        """The next step, over at most so many messages. The same again if there is nothing to do."""
        begun, lost = self._begun(there, topic)
        ends = _shared({part: (begun[part], end) for part, end in there.end.items()}, most)
        parts = {part: Part(begun[part], ends[part], there.high[part]) for part in there.end}
        known = {part: at.end for part, at in self.parts.items()}
        if self.id == there.id and not lost and known == {part: at.end for part, at in parts.items()}:
            return self
        return Offsets(topic.name, there.id, max(self.asked, there.asked), parts, lost)

    def silent(self, there: There) -> Offsets:
        """The step that reads nothing, as nothing has come, and says so."""
        parts = {part: Part(at.end, at.end, there.high[part]) for part, at in self.parts.items()}
        return replace(self, asked=max(self.asked, there.asked), parts=parts, lost=0)

    def _begun(self, there: There, topic: Topic) -> tuple[dict[int, int], int]:
        """Where each partition goes on, and how many messages are lost by it."""
        if not self.started:
            return dict(there.end if topic.starting == "latest" else there.first), 0
        if self.id != there.id:
            unread = sum(at.high - at.end for at in self.parts.values())
            check_loss(topic, f"was deleted and made anew: its id was {self.id} and is {there.id}")
            return dict(there.first), unread
        begun, lost = dict[int, int](), 0
        for part, first in there.first.items():
            at = self.parts[part].end if part in self.parts else first
            if at < first:
                check_loss(topic, _removed(part, at, first))
                lost, at = lost + first - at, first
            elif at > there.end[part]:
                check_loss(topic, f"ends at offset {there.end[part]} in partition {part}, before {at}, which was read")
                at = there.end[part]
            begun[part] = at
        if gone := sorted(set(self.parts) - set(there.first)):
            check_loss(topic, f"no longer has the partitions {gone}")
        return begun, lost

    def to_json(self) -> dict[str, Any]:
        return {
            "kafka": FORMAT,
            "topic": self.topic,
            "id": self.id,
            "asked": self.asked,
            "parts": json.dumps([[part, *at] for part, at in sorted(self.parts.items())]),
            **({"lost": self.lost} if self.lost else {}),
        }

    @staticmethod
    def from_json(given: dict[str, Any], topic: Topic) -> Offsets:
        if "kafka" not in given:
            raise CheckpointError(
                f"the checkpoint's position {json.dumps(given)[:200]} is not one of wr.read_kafka: it was written with "
                "another source, such as Spark's own. Read with that again, or start with a new checkpoint folder"
            )
        if (written := given["kafka"]) > FORMAT:
            raise CheckpointError(
                f"the checkpoint's position is of format {written}, and this version knows formats up to {FORMAT}: go "
                "on with the version of Windrow that wrote it"
            )
        if given["topic"] not in ("", topic.name):
            raise CheckpointError(
                f"the checkpoint is of topic {given['topic']}, and the query reads {topic.name}: give it the topic "
                "that it had, or a new checkpoint folder"
            )
        parts = {part: Part(*at) for part, *at in json.loads(given["parts"])}
        return Offsets(given["topic"], given["id"], int(given["asked"]), parts, int(given.get("lost", 0)))


def check_loss(topic: Topic, what: str) -> None:
    """Stop, unless the user wants to go on over a loss."""
    if topic.on_loss == "error":
        raise DataError(
            f"{topic} {what}. So messages may be missing that no step has read. To go on without them, with what is "
            "there now: on_loss='continue' (they are counted in rows_lost); or start with a new checkpoint folder"
        )


def _removed(part: int, at: int, first: int) -> str:
    return (
        f"has lost messages that were not read: partition {part} was read up to offset {at}, and now begins at "
        f"{first}, as its retention removed what was before"
    )


def removed(topic: Topic, part: int, at: int, first: int) -> int:
    """How many messages are lost at most, if a user wants to go on over it."""
    check_loss(topic, _removed(part, at, first))
    return first - at


def _shared(there: Mapping[int, tuple[int, int]], most: int | None) -> dict[int, int]:
    """Where partitions end, if together they give at most so many messages, each about the same share of its own.

    >>> _shared({0: (0, 90), 1: (5, 15), 2: (7, 7)}, 50)
    {0: 45, 1: 10, 2: 7}
    """
    counts = {part: max(0, end - start) for part, (start, end) in there.items()}
    total = sum(counts.values())
    if most is None or total <= most:
        return {part: start + counts[part] for part, (start, _) in there.items()}
    shares = {part: count * most // total for part, count in counts.items()}
    for part in sorted(counts, key=lambda part: (shares[part] - counts[part] * most / total, part)):
        if sum(shares.values()) < most and shares[part] < counts[part]:
            shares[part] += 1
    return {part: start + shares[part] for part, (start, _) in there.items()}


def spread(ranges: list[Range], tasks: int) -> list[list[Range]]:
    """The ranges in at most so many parts of about equal size, cut where one is large. A part has a partition once.

    >>> spread([Range(0, 0, 60_000), Range(1, 5, 6)], 2)
    [[Range(part=0, start=0, end=30001)], [Range(part=0, start=30001, end=60000), Range(part=1, start=5, end=6)]]
    """
    total = sum(each.end - each.start for each in ranges)
    size = max(LEAST, -(-total // max(1, tasks)))
    found: list[list[Range]] = [[]]
    room = size
    for part, start, end in ranges:
        at = start
        while at < end:
            if not room and len(found) < tasks:
                found.append([])
                room = size
            upto = min(end, at + room) if len(found) < tasks else end
            if 0 < end - upto < LEAST // 2:  # not worth a task's start
                upto = end
            found[-1].append(Range(part, at, upto))
            room = max(0, room - (upto - at))
            at = upto
    return [part for part in found if part]


LEAST = 10_000  # messages for which a further task is worth its start
