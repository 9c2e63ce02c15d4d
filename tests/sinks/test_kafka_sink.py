"""A topic as a sink: each micro-batch once, whatever dies and runs again."""

import pickle
import time

import polars as pl
import pytest

from windrow.errors import DataError
from windrow.sinks.kafka import KafkaSink
from windrow.sources.kafka.client import Client
from windrow.sources.kafka.reading import of_now
from windrow.sources.kafka.topic import Topic

QUERY = "12345678-1234"


@pytest.fixture
def name(request):
    return request.node.name[:100]


def sink(broker, topic, **options):
    return KafkaSink(broker.brokers, topic, patience=60.0, **options)


def rows(*values):
    return [(None if key is None else key.encode(), str(value).encode()) for key, value in values]


def written(broker, topic):
    """What committed transactions have written; a broker needs a moment to see that they are."""
    there, deadline = Client(Topic(broker.brokers, topic)).there, time.monotonic() + 60
    while (now := there()).end != now.high:
        assert time.monotonic() < deadline
    frames = list(of_now(Topic(broker.brokers, topic), ["key", "value"])[1])
    return pl.concat(frames).sort("value").rows() if frames else []


def test_a_micro_batch_that_runs_again_writes_nothing(broker, name):
    broker.make(name)
    first = sink(broker, name)
    assert first.write(QUERY, 0, rows(("a", 1), (None, 2)))
    assert first.write(QUERY, 1, [])
    assert first.write(QUERY, 2, rows(("a", 3)))
    again = pickle.loads(pickle.dumps(first))  # another process
    assert not again.write(QUERY, 2, rows(("a", 3)))
    assert not again.write(QUERY, 1, rows(("a", 9)))
    assert again.write(QUERY, 3, rows(("a", 4)))
    assert written(broker, name) == [(b"a", b"1"), (None, b"2"), (b"a", b"3"), (b"a", b"4")]


def test_what_a_dead_process_has_begun_does_not_count(broker, name):
    broker.make(name)
    dead = sink(broker, name)
    dead.write(QUERY, 0, rows(("a", 1)))
    producer, _ = dead._opened(QUERY)
    producer.begin_transaction()
    producer.produce(name, b"half")
    producer.flush(60)
    alive = sink(broker, name)
    assert alive.write(QUERY, 1, rows(("a", 2)))
    assert written(broker, name) == [(b"a", b"1"), (b"a", b"2")]
    with pytest.raises(DataError, match=f"micro-batch 2 cannot be written to topic {name}"):  # it has been replaced
        dead.write(QUERY, 2, rows(("a", 3)))
    assert written(broker, name) == [(b"a", b"1"), (b"a", b"2")]


def test_queries_and_outputs_of_one_are_told_apart(broker, name):
    broker.make(name)
    for query, id in ((QUERY, "results"), (QUERY, "late"), ("other", "results")):
        assert sink(broker, name, id=id).write(query, 0, rows((None, id)))
    assert len(written(broker, name)) == 3


def test_a_topic_that_is_not_there_is_named(broker, name):
    absent = KafkaSink(broker.brokers, name, patience=2.0, settings={"message.timeout.ms": 1000})
    with pytest.raises(DataError, match=f"cannot be written to topic {name} at {broker.brokers}"):
        absent.write(QUERY, 0, rows((None, 1)))
