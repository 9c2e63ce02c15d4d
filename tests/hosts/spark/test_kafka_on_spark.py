"""Topics on Spark: one to another over a restart, each message once; and messages that another source has read."""

import json
import time

import polars as pl
import pytest

import windrow as wr
from windrow.sinks.kafka import KafkaSink
from windrow.sources.kafka.client import Client
from windrow.sources.kafka.reading import of_now
from windrow.sources.kafka.topic import Topic
from windrow.testing import compare

pytestmark = pytest.mark.spark
SCHEMA = "t BIGINT, k STRING"


def messages(times):
    return [json.dumps({"t": t, "k": f"k{t % 3}"}).encode() for t in times]


def query(stream):
    return stream.window(10).group_by("k").agg(n=wr.count())


def results(broker, topic):
    there, deadline = Client(Topic(broker.brokers, topic)).there, time.monotonic() + 60
    while (now := there()).end != now.high:
        assert time.monotonic() < deadline
    values = pl.concat(of_now(Topic(broker.brokers, topic), ["value"])[1])["value"].cast(pl.String)
    return pl.DataFrame([json.loads(value) for value in values])


def test_each_message_counts_once_from_one_topic_to_another(spark, broker, tmp_path):
    broker.make("in", 2)
    broker.make("out", 2)
    state = tmp_path / "state"

    def topic(**options):
        return wr.read_kafka(broker.brokers, "in", "t", schema=SCHEMA, slack=0, name="s", **options)

    def run():
        """A start of the program, to the end of what is there; its counts."""
        both = query(topic(max_rows=100)).to_spark(checkpoint=state)
        writer = both.writeStream.foreachBatch(KafkaSink(broker.brokers, "out", key="k"))
        running = writer.option("checkpointLocation", str(state)).trigger(availableNow=True).start()
        running.awaitTermination()
        found = [p.observedMetrics["windrow"] for p in running.recentProgress if "windrow" in p.observedMetrics]
        return sum(each["rows_in"] for each in found), sum(each["rows_bad"] for each in found)

    broker.put("in", messages(range(80)), 0)
    broker.put("in", messages(range(0, 90, 2)), 1)
    assert run() == (125, 0)
    broker.put("in", [*messages(range(80, 100)), b"oops"], 0)
    broker.put("in", messages([98, 99]), 1)
    assert run() == (23, 1)
    expected = query(topic(streaming=False)).collect()
    compare(results(broker, "out"), expected.filter(pl.col("window_end") <= 99), "topic to topic")


def test_messages_of_any_dataframe(spark, tmp_path):
    """As Spark's connector would give them: in a stream, a malformed one is a bad row, and partitions promise."""
    values = [*messages(range(50)), b"oops", None]
    rows = {"value": values, "partition": [0] * 52, "offset": range(52), "key": [None] * 52, "topic": "p"}
    other = {"value": messages(range(30)), "partition": [1] * 30, "offset": range(30), "key": [None] * 30, "topic": "p"}
    types = {"value": pl.Binary, "partition": pl.Int32, "offset": pl.Int64, "key": pl.Binary}
    frame = pl.concat([pl.DataFrame(each).cast(types) for each in (rows, other)])
    (tmp_path / "in").mkdir()
    frame.write_parquet(tmp_path / "in" / "1.parquet")

    def stream(data):
        return wr.stream(data, "t", value="json", schema=SCHEMA, slack=0, partitions=2, attributes="topic", name="s")

    given = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    out = query(stream(given)).to_spark().writeStream.format("memory").queryName("messages")
    bad = stream(given).bad_rows().writeStream.format("memory").queryName("bad_messages")
    running = [
        each.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
        for name, each in (("out", out), ("bad", bad))
    ]
    for each in running:
        each.awaitTermination()
    expected = query(stream(frame)).collect()
    compare(query(stream(spark.read.parquet(str(tmp_path / "in")))).collect(), expected, "batch")
    found = pl.DataFrame(spark.table("messages").toArrow())
    compare(found, expected.filter(pl.col("window_end") <= 29), "streaming")
    assert found.height
    assert sorted(row["offset"] for row in spark.table("bad_messages").collect()) == [50, 51]
