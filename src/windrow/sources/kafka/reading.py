"""The messages at some offsets of a partition, exactly, as frames with the columns of Spark's own connector."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

import polars as pl

from windrow.errors import DataError
from windrow.sources.kafka.client import DEFAULTS, Client, refused, unreachable
from windrow.sources.kafka.offsets import Offsets, Range, check_loss, removed
from windrow.sources.kafka.topic import Topic
from windrow.spec.extras import kafka as client
from windrow.spec.messages import RAW

AT_ONCE, BYTES_AT_ONCE = 200_000, 1 << 26  # messages, and bytes of their values, in a frame
TAKEN = 10_000  # messages in one call of the client
WAIT = 0.05  # seconds that a call waits for them
SETTINGS: dict[str, Any] = {
    "group.id": "windrow",  # must be there, and is not used: offsets are ours
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,  # tells the end where the last offsets have no messages
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 5,
    "fetch.message.max.bytes": 1 << 23,
    "queued.min.messages": 100_000,
}


@dataclass
class Reader:
    """Reads ranges one after the other, in the order of offsets. ``lost``: how many messages were gone by then."""

    topic: Topic
    columns: Sequence[str]
    lost: int = field(default=0, init=False)
    _end: int = field(default=0, init=False)

    def frames(self, ranges: Sequence[Range], topic_id: str) -> Iterator[pl.DataFrame]:
        """All messages of some ranges. After the last one it is sure that the topic was the same all the time."""
        if not ranges:
            return
        size = sum(each.end - each.start for each in ranges)
        settings = {
            **DEFAULTS,
            **SETTINGS,
            "queued.min.messages": min(100_000, max(size, 1)),
            **dict(self.topic.settings),
        }
        consumer = client().Consumer({**settings, "bootstrap.servers": self.topic.brokers})
        try:
            for each in ranges:
                yield from self._of_range(consumer, each)
        finally:
            consumer.close()
        if (now := Client(self.topic).id()) != topic_id:
            raise DataError(
                f"{self.topic} was deleted and made anew while it was read: its id was {topic_id} and is {now}. Start "
                "the query again"
            )

    def _of_range(self, consumer: Any, wanted: Range) -> Iterator[pl.DataFrame]:
        """Frames are cut at the same messages whenever the range is read."""
        waiting: list[Any] = []
        size = 0
        for messages in self._messages(consumer, wanted):
            more = sum(map(len, messages))
            if len(waiting) + len(messages) < AT_ONCE and size + more < BYTES_AT_ONCE:
                waiting += messages
                size += more
                continue
            for message in messages:
                waiting.append(message)
                size += len(message)
                if len(waiting) >= AT_ONCE or size >= BYTES_AT_ONCE:
                    yield frame(waiting, self.columns)
                    waiting, size = [], 0
        if waiting:
            yield frame(waiting, self.columns)

    def _messages(self, consumer: Any, wanted: Range) -> Iterator[list[Any]]:
        kafka = client()
        at = wanted.start
        consumer.assign([kafka.TopicPartition(self.topic.name, wanted.part, at)])
        heard, trouble = time.monotonic(), None
        while at < wanted.end:
            good, others = _sorted_out(consumer.consume(min(TAKEN, wanted.end - at), WAIT), wanted, at)
            if good:
                yield good
                heard, at = time.monotonic(), good[-1].offset() + 1
            for message in others:
                if (then := self._after(consumer, wanted, at, message)) is None:
                    trouble = message.error()
                else:
                    heard, at = time.monotonic(), then
            if time.monotonic() - heard > self.topic.patience:
                raise self._silent(wanted, at, trouble)

    def _after(self, consumer: Any, wanted: Range, at: int, message: Any) -> int | None:
        """Where reading goes on after a message that is not to be read; None if it is an error that may pass."""
        kafka, error = client(), message.error()
        if error is None or error.code() == kafka.KafkaError._PARTITION_EOF:
            mine = message.partition() == wanted.part  # it may be left from another range
            return max(at, min(message.offset(), wanted.end)) if mine else at
        if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            at = self._beyond(wanted, at)
            consumer.assign([kafka.TopicPartition(self.topic.name, wanted.part, at)])
            return at
        if refused(error):
            raise unreachable(self.topic, error)
        return None

    def _beyond(self, wanted: Range, at: int) -> int:
        """Where reading goes on if there is nothing at an offset: it was removed since the step was planned."""
        there = Client(self.topic).there()
        first, end = there.first.get(wanted.part), there.end.get(wanted.part)
        if first is None or end is None or end < at:
            check_loss(
                self.topic, f"has no messages at offset {at} of partition {wanted.part}, which a step is to read"
            )
            self.lost += wanted.end - at
            return wanted.end
        upto = min(max(first, at), wanted.end)
        if upto > at:
            self.lost += removed(self.topic, wanted.part, at, upto)
        return upto

    def _silent(self, wanted: Range, at: int, trouble: Any) -> DataError:
        if trouble is not None:
            return unreachable(self.topic, trouble)
        return DataError(
            f"{self.topic} has given no message of partition {wanted.part} from offset {at} on for "
            f"{self.topic.patience:g} s, and its end was at {wanted.end} or later: the brokers do not answer. Start "
            "the query again when they are back, or give it more patience=.."
        )


def _sorted_out(taken: list[Any], wanted: Range, at: int) -> tuple[list[Any], list[Any]]:
    """The messages that are to be read, and all others: errors, ends, and what is outside of the range."""

    def is_wanted(message: Any) -> bool:
        inside = message.partition() == wanted.part and at <= message.offset() < wanted.end
        return message.error() is None and inside

    if not any(map(_error, taken)) and all(map(is_wanted, (*taken[:1], *taken[-1:]))):
        return taken, []  # what is left of another range comes before
    return [m for m in taken if is_wanted(m)], [m for m in taken if not is_wanted(m)]


_error = methodcaller("error")


def of_now(topic: Topic, columns: Sequence[str]) -> tuple[Reader, Iterator[pl.DataFrame]]:
    """All messages that are there now, and who reads them."""
    offsets, reader = Offsets().after(Client(topic).there(), topic), Reader(topic, columns)
    return reader, reader.frames(offsets.ranges, offsets.id)


def frame(messages: Sequence[Any], columns: Collection[str]) -> pl.DataFrame:
    """Messages with the columns that are wanted of them."""
    types = {**RAW, "timestamp": pl.Int64()}
    wanted = [name for name in RAW if name in columns]
    series = [pl.Series(name, list(map(GETTERS[name], messages)), dtype=types[name]) for name in wanted]
    made = pl.DataFrame(series)
    if "timestamp" in columns:
        made = made.with_columns((pl.col("timestamp") * 1000).cast(RAW["timestamp"]))
    return made


def _stamp(message: Any) -> int | None:
    kind, at = message.timestamp()
    return int(at) if kind else None


def _kind(message: Any) -> int:
    """As Spark has it: 0 for the time of creation, 1 for that of the log."""
    return {1: 0, 2: 1}.get(message.timestamp()[0], -1)


def _headers(message: Any) -> list[dict[str, Any]] | None:
    given = message.headers()
    return None if given is None else [{"key": key, "value": value} for key, value in given]


GETTERS: dict[str, Callable[[Any], Any]] = {
    **{name: methodcaller(name) for name in ("key", "value", "topic", "partition", "offset")},
    "timestamp": _stamp,
    "timestampType": _kind,
    "headers": _headers,
}
