"""A topic of Kafka, exactly once: a micro-batch is a transaction, which also says which micro-batch it was.

The number of the micro-batch goes where consumer groups keep their offsets: into the same transaction, under the name
of the query. When Spark runs a micro-batch again, that number tells whether its messages are in the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, QueryError, listing
from windrow.spec.extras import kafka as client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"  # of Spark: stays the same over restarts from a checkpoint
PREFIX = "windrow"
SETTINGS: dict[str, Any] = {
    "log_level": 0,
    "enable.idempotence": True,
    "transaction.timeout.ms": 300_000,
    "linger.ms": 5,
    "compression.type": "lz4",
}
Message = tuple[bytes | None, bytes]  # key and value


class KafkaSink:
    """For ``foreachBatch``: each row is a message, as JSON. ``key``: the columns that are the key of a message, one as
    its text, several as JSON; rows with equal keys go to one partition. ``settings``: of the client, as librdkafka
    calls them. ``id``: tells this sink from all others, where a query has several to one topic.

    Consumers must read committed messages alone, ``isolation.level=read_committed``: of a micro-batch that dies, others
    see its messages twice.
    """

    def __init__(
        self,
        brokers: str,
        topic: str,
        key: str | Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        id: str = "results",
        patience: float = 60.0,
    ) -> None:
        client()
        self.brokers = brokers
        self.topic = topic
        self.key = (key,) if isinstance(key, str) else tuple(key)
        self.settings = dict(settings or {})
        self.id = id
        self.patience = patience
        self._open: tuple[str, Any, Any] | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if query is None:
            raise QueryError("a Kafka sink is for foreachBatch of a streaming query: this DataFrame is of none")
        self.write(query, batch, [(_bytes(key), value.encode()) for key, value in self._rows(frame)])

    def _rows(self, frame: DataFrame) -> list[Any]:
        """All rows: leaving some out would leave parts of the query unrun, and their state uncommitted."""
        from pyspark.sql import functions as f

        if missing := [column for column in self.key if column not in frame.columns]:
            raise QueryError(f"key={missing[0]!r} is not a column of the result; available: {listing(frame.columns)}")
        options = {"ignoreNullFields": "false"}
        columns = [f.col(_quoted(column)) for column in frame.columns]
        keys = [f.col(_quoted(column)) for column in self.key]
        key = f.lit(None) if not keys else keys[0] if len(keys) == 1 else f.to_json(f.struct(*keys), options)
        return list(frame.select(key.cast("string"), f.to_json(f.struct(*columns), options)).collect())

    def write(self, query: str, batch: int, messages: Sequence[Message]) -> bool:
        """The messages of a micro-batch in one transaction; false if they are there already."""
        kafka = client()
        try:
            producer, consumer = self._opened(query)
            mark = kafka.TopicPartition(self.topic, 0)
            [done] = consumer.committed([mark], timeout=self.patience)
            if batch < done.offset:  # it is the number of the next one
                return False
            producer.begin_transaction()
            for key, value in messages:
                self._produce(producer, key, value)
            mark.offset = batch + 1
            producer.send_offsets_to_transaction([mark], consumer.consumer_group_metadata(), self.patience)
            producer.commit_transaction(self.patience)
        except kafka.KafkaException as error:
            self._open = None  # the next attempt makes a new one, which puts an end to what this one has begun
            raise DataError(
                f"the results of micro-batch {batch} cannot be written to topic {self.topic} at {self.brokers}: "
                f"{error.args[0].str()}. All of them are in the topic or none: start the query again, and it will know"
            ) from None
        return True

    def _produce(self, producer: Any, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                producer.produce(self.topic, value, key)
            except BufferError:  # too many wait to be sent
                producer.poll(0.1)
            else:
                producer.poll(0)
                return

    def _opened(self, query: str) -> tuple[Any, Any]:
        """A producer that has put an end to all before it of the same name, and who reads what they have committed."""
        name = f"{PREFIX}-{query}-{self.topic}-{self.id}"
        if self._open is None or self._open[0] != name:
            kafka = client()
            given = {**self.settings, "bootstrap.servers": self.brokers}
            consumer = kafka.Consumer({"log_level": 0, **given, "group.id": name, "enable.auto.commit": False})
            producer = kafka.Producer({**SETTINGS, **given, "transactional.id": name})
            producer.init_transactions(self.patience)
            self._open = name, producer, consumer
        return self._open[1], self._open[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _bytes(key: str | None) -> bytes | None:
    return None if key is None else key.encode()
