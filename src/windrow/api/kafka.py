"""Streams over topics of Kafka, read by Windrow itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from windrow.api import given
from windrow.api.columns import Columns
from windrow.api.messages import messages
from windrow.api.sources import UNNAMED, built
from windrow.api.stream import Stream
from windrow.errors import QueryError
from windrow.sources.kafka.topic import Topic
from windrow.spec.extras import kafka as client
from windrow.spec.lengths import Length, length

OURS = (
    "bootstrap.servers",
    "group.id",
    "enable.auto.commit",
    "enable.partition.eof",
    "auto.offset.reset",
    "transactional.id",
)


def read_kafka(
    brokers: str,
    topic: str,
    progress: str,
    *,
    schema: Columns | Mapping[int, Any],
    format: str = "json",
    attributes: str | Sequence[str] = (),
    prefix: str = "",
    streaming: bool = True,
    starting: str = "earliest",
    max_rows: int | None = None,
    on_loss: str = "error",
    patience: Length = "1 minute",
    settings: Mapping[str, Any] | None = None,
    name: str = UNNAMED,
    **options: Any,
) -> Stream:
    """A stream over a topic of Kafka, with the map side of the query inside the reader.

    ``schema``: the columns inside the values of messages, as SQL text ("ts TIMESTAMP, k STRING") or as names with
    types; for Avro its schema. ``format``: "json", "csv", "avro" or "avro-confluent", whose values begin with the
    number of their schema: ``schema`` then has the schemas by number. ``attributes``: what is wanted as columns of
    messages themselves besides ``partition`` and ``offset``: key, topic, timestamp, timestampType and headers, as
    Spark's connector has them; ``prefix``: what their names begin with.

    ``slack=`` is about each partition by itself: it is at most so far behind its own greatest value. The stream is as
    far as its slowest partition. ``streaming``: messages that come later are read, too; without it, those that are
    there now. ``starting``: where the first start begins, "earliest" or "latest"; a later start goes on from the
    checkpoint. ``max_rows``: at most so many per micro-batch. ``on_loss``: whether to stop with an "error" when
    messages are gone that have not been read, by retention or because the topic was made anew, or to "continue"; they
    are counted in ``rows_lost``. ``patience``: how long brokers may be away. ``settings``: of the client, by the names
    that librdkafka has for them: {"security.protocol": "SASL_SSL", ..}. ``options`` are those of :func:`stream`.

    Messages whose values cannot be read are bad rows: counted, with the reason in ``bad_rows()``.

    >>> packets = read_kafka("broker:9092", "packets", "ts", schema="ts TIMESTAMP, src_ip STRING, len BIGINT")
    >>> list(packets.schema)
    ['ts', 'src_ip', 'len', 'partition', 'offset']
    """
    client()
    if max_rows is not None and given.whole(max_rows, "max_rows") < 1:
        raise QueryError(f"max_rows must be at least 1, not {max_rows}")
    if not given.flag(streaming, "streaming") and (starting != "earliest" or max_rows is not None):
        raise QueryError("starting= and max_rows= are for streaming=True: a finite stream has all that is there now")
    start: Any = given.one_of(starting, "starting", ("earliest", "latest"))
    loss: Any = given.one_of(on_loss, "on_loss", ("error", "continue"))
    chosen = tuple(sorted(dict(settings or {}).items()))
    if odd := [key for key, _ in chosen if key in OURS]:
        raise QueryError(f"settings={{{odd[0]!r}: ..}}: Windrow sets it itself, as its offsets are in the checkpoint")
    seconds = length(patience, pl.Datetime("us"), "patience") / 1_000_000
    where = Topic(
        given.text(brokers, "brokers"), given.text(topic, "topic"), streaming, start, max_rows, loss, seconds, chosen
    )
    named = (progress, *options.get("also", ()))
    read = messages(format, schema, attributes, prefix, 0, named)
    return built(where, progress, read, name=name, **options)
