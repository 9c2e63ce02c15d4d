"""What brokers say of a topic: its identity, its partitions, and from where to where each has messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from windrow.errors import DataError
from windrow.sources.kafka.topic import Topic
from windrow.spec.extras import kafka as client

Answer = TypeVar("Answer")
PAUSE = 0.2  # seconds between two attempts
UNKNOWN_FOR = 10.0  # seconds: a topic that has just been made is not known to all brokers at once
DEFAULTS: dict[str, Any] = {
    "log_level": 0,  # what goes wrong is in our errors
    "reconnect.backoff.max.ms": 1000,
    "allow.auto.create.topics": False,
}


@dataclass(frozen=True)
class There:
    """A topic at a moment. ``asked``: before the ends were fetched, in microseconds. ``end``: where the next committed
    message of a partition will be, or a later one; ``first``: its oldest message, or before it. ``high``: its end with
    the messages of open transactions, which come when they are committed.
    """

    id: str
    asked: int
    first: Mapping[int, int] = field(default_factory=dict)
    end: Mapping[int, int] = field(default_factory=dict)
    high: Mapping[int, int] = field(default_factory=dict)


class TopicGoneError(DataError):
    """The brokers do not know the topic."""


class Client:
    """Asks brokers about a topic; where they do not answer, again and again, as long as its patience lasts."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic

    @cached_property
    def _admin(self) -> Any:
        settings = {name: value for name, value in self.topic.settings if not name.startswith(("isolation", "fetch."))}
        return client().admin.AdminClient({**DEFAULTS, **settings, "bootstrap.servers": self.topic.brokers})

    def id(self) -> str:
        """What distinguishes the topic from one of the same name that was there before."""
        return self._patiently(lambda: self._described()[0])

    def there(self) -> There:
        """The topic as it is now."""
        return self._patiently(self._there)

    def _there(self) -> There:
        kafka, asked = client(), time.time_ns() // 1000
        topic_id, parts = self._described()
        read = str(dict(self.topic.settings).get("isolation.level", "read_committed")).upper()
        spec, level = kafka.admin.OffsetSpec, kafka.IsolationLevel
        # The ends with open transactions come last: they must not be before those without.
        found = [self._offsets(parts, spec.earliest(), level[read]), self._offsets(parts, spec.latest(), level[read])]
        first, end = ({part: int(each.result().offset) for part, each in one.items()} for one in found)
        open_too = self._offsets(parts, spec.latest(), level.READ_UNCOMMITTED)
        high = {part: int(each.result().offset) for part, each in open_too.items()}
        return There(topic_id, asked, first, end, high)

    def _described(self) -> tuple[str, list[int]]:
        kafka, name = client(), self.topic.name
        found = self._admin.describe_topics(kafka.TopicCollection([name]), request_timeout=self._timeout)
        described = found[name].result()
        return str(described.topic_id), sorted(part.id for part in described.partitions)

    def _offsets(self, parts: list[int], wanted: Any, level: Any) -> dict[int, Future[Any]]:
        asked = {client().TopicPartition(self.topic.name, part): wanted for part in parts}
        found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=self._timeout)
        return {at.partition: future for at, future in found.items()}

    @property
    def _timeout(self) -> float:
        return max(1.0, min(5.0, self.topic.patience))

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        kafka, began = client(), time.monotonic()
        while True:
            try:
                return ask()
            except kafka.KafkaException as error:
                what = error.args[0]
                gone = what.code() == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
                limit = min(UNKNOWN_FOR, self.topic.patience) if gone else self.topic.patience
                if refused(what) or time.monotonic() - began >= limit:
                    raise self._failed(what, gone) from None
                time.sleep(PAUSE)

    def _failed(self, what: Any, gone: bool) -> DataError:
        if gone:
            return TopicGoneError(
                f"there is no topic {self.topic.name} at {self.topic.brokers}: make it, or look at its name"
            )
        return unreachable(self.topic, what)


def refused(error: Any) -> bool:
    """Whether trying again cannot help."""
    kafka = client().KafkaError
    return error.code() in (
        kafka.TOPIC_AUTHORIZATION_FAILED,
        kafka.GROUP_AUTHORIZATION_FAILED,
        kafka.CLUSTER_AUTHORIZATION_FAILED,
        kafka.SASL_AUTHENTICATION_FAILED,
        kafka._AUTHENTICATION,
        kafka._INVALID_ARG,
        kafka.UNSUPPORTED_VERSION,
        kafka._UNSUPPORTED_FEATURE,
    )


def unreachable(topic: Topic, error: Any) -> DataError:
    """What to say when the brokers have been away for too long, or do not let us in."""
    if refused(error):
        return DataError(
            f"the brokers {topic.brokers} refuse topic {topic.name}: {error.str()}. Give what they want to know of you "
            "in settings={..}, such as security.protocol and sasl.mechanism"
        )
    return DataError(
        f"the brokers {topic.brokers} of topic {topic.name} have not answered for {topic.patience:g} s: {error.str()}. "
        "Nothing is lost: start the query again when they are back, or give it more patience=.."
    )
