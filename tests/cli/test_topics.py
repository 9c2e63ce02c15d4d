"""Topics of Kafka on the command line: what is given, and what is wrong with it."""

import json

import polars as pl
import pytest

from windrow.cli.inputs import Options, query, query_of_now
from windrow.cli.kafka_demo import _compared
from windrow.cli.run import batch_sink
from windrow.cli.topics import OF_SINKS, OF_SOURCES, place
from windrow.errors import QueryError
from windrow.sinks.kafka import KafkaSink

PACKETS = "t BIGINT, k STRING"
AVRO = {"type": "record", "name": "r", "fields": [{"name": "t", "type": "long"}]}


def built(source, schema=PACKETS, **options):
    given = Options(["t"], schema=None if schema is None else [schema], **options)
    return query("SELECT * FROM p", [source], given, None, 64)


def test_a_topic_is_a_source_with_its_options():
    found = built(
        "p=kafka:a:1,b:2/packets?max_rows=5&starting=latest&attributes=key&security.protocol=SSL", slack=["3"]
    )
    topic = found.sources["p"].data
    assert (topic.brokers, topic.name, topic.streaming) == ("a:1,b:2", "packets", True)
    assert (topic.max_rows, topic.starting, topic.settings) == (5, "latest", (("security.protocol", "SSL"),))
    assert list(found.schema) == ["t", "k", "partition", "offset", "key"]
    assert "promises 3 behind the greatest t of the slowest partition" in found.explain()


def test_formats_other_than_json(tmp_path):
    assert "in csv" in built("p=kafka-csv:a:1/packets", slack=["3"]).explain()
    (tmp_path / "one.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "some.json").write_text(json.dumps({3: AVRO}))
    for kind, file in (("avro", "one.avsc"), ("avro-confluent", "some.json")):
        found = built(f"p=kafka-{kind}:a:1/packets", f"@{tmp_path}/{file}")
        assert found.schema["t"] == pl.Int64()


def test_settings_can_be_in_a_file(tmp_path):
    (tmp_path / "client.properties").write_text("# secrets\nsasl.password=a=b\n\nsasl.username = me\n")
    found = place(f"a:1/t?settings={tmp_path}/client.properties", OF_SOURCES)
    assert found.settings == {"sasl.password": "a=b", "sasl.username": "me"}


def test_to_analyze_a_query_reads_what_is_there_now():
    found = query_of_now(
        "SELECT * FROM p", ["p=kafka:a:1/t?max_rows=5&starting=latest"], Options(["t"], schema=[PACKETS])
    )
    topic = found.sources["p"].data
    assert (topic.streaming, topic.max_rows, topic.starting) == (False, None, "earliest")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("p=kafka:packets", "is not BROKERS/TOPIC"),
        ("p=kafka:a:1/", "is not BROKERS/TOPIC"),
        ("p=kafka:a:1/t?rows=5", "unknown option 'rows'"),
        ("p=kafka:a:1/t?max_rows=many", "is not a number of rows"),
        ("p=kafka:a:1/t?settings=/nowhere", "there is no such file"),
        ("p=kafka:a:1/t?on_loss=ignore", "on_loss='ignore' is unknown"),
    ],
)
def test_what_is_wrong_with_a_topic(source, why):
    with pytest.raises(QueryError, match=why):
        built(source)


def test_a_topic_needs_its_columns():
    with pytest.raises(QueryError, match="schema="):
        built("p=kafka:a:1/t", None)
    with pytest.raises(QueryError, match="--schema @/nowhere"):
        built("p=kafka-avro:a:1/t", "@/nowhere")


def test_the_demo_finds_results_that_are_wrong_missing_or_there_twice():
    expected = pl.DataFrame({"window_end": [1, 1, 2], "src_ip": ["a", "b", "a"], "n": [5, 6, 7], "longest": [9, 9, 9]})
    assert _compared(expected.reverse(), expected) == (0, 0)
    assert _compared(pl.concat([expected, expected[1:]]), expected) == (0, 2)
    assert _compared(expected[1:], expected) == (1, 0)
    assert _compared(expected.with_columns(n=pl.col("n") + 1), expected) == (3, 0)


def test_a_topic_is_a_sink():
    sink = batch_sink("kafka:a:1/results?key=k,window_end&compression.type=zstd")
    assert isinstance(sink, KafkaSink)
    assert (sink.topic, sink.key, sink.id) == ("results", ("k", "window_end"), "results")
    assert sink.settings == {"compression.type": "zstd"}
    assert batch_sink("kafka:a:1/results", "late").id == "late"
    with pytest.raises(QueryError, match="unknown option 'attributes'"):
        place("a:1/t?attributes=key", OF_SINKS)
