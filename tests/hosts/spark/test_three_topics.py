"""Three topics on Spark: one falls silent for good, one stalls and comes back, and the clock of one is ahead."""

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed

pytestmark = pytest.mark.spark
PATIENCE = 120  # seconds, for a busy machine: nothing depends on when things happen
SCHEMA = "ts TIMESTAMP, k STRING"
CLOSED = "5 seconds"  # after so long without rows a topic no longer holds the others back
SECOND = timedelta(seconds=1)


def messages(start, seconds):
    return [json.dumps({"ts": (start + s * SECOND).isoformat(), "k": "ab"[s % 2]}) for s in seconds]


def truth(start, seconds):
    return Counter((start + s // 10 * 10 * SECOND, "ab"[s % 2]) for s in seconds)


def query(broker):
    def topic(name):
        ahead = {"attributes": "timestamp", "arrival": "timestamp", "ahead": "1 minute"}
        rest = {"schema": SCHEMA, "name": name, "slack": "1 second", "idle_after": CLOSED, **ahead}
        return wr.read_kafka(broker.brokers, name, "ts", **rest)

    united = topic("silent").union(topic("stalls"), topic("ahead"))
    return united.window("10 seconds").group_by("k").agg(n=wr.count())


class Seen:
    """What a running query has released and counted so far."""

    def __init__(self, running, folder):
        self.running, self.folder, self.batches = running, folder, {}

    def until(self, windows, rows):
        """Wait until it has released so many, and read so many rows."""
        deadline = time.monotonic() + PATIENCE
        while (self.windows(), self.counts()["rows_in"]) != (windows, rows):
            if (error := self.running.exception()) is not None:
                raise error
            assert time.monotonic() < deadline, (self.windows(), self.counts(), self.running.lastProgress)
            time.sleep(0.1)

    def counts(self):
        for progress in self.running.recentProgress:
            if (metrics := (progress.observedMetrics or {}).get("windrow")) is not None:
                self.batches[progress.batchId] = metrics
        names = ("rows_in", "rows_late", "rows_bad", "rows_out")
        return {name: sum(metrics[name] or 0 for metrics in self.batches.values()) for name in names}

    def windows(self):
        return self.counts()["rows_out"]


def released(folder):
    found = read_committed(folder).select("window_start", "k", "n").rows()
    assert len({row[:2] for row in found}) == len(found)
    return Counter({(start.replace(tzinfo=UTC), k): n for start, k, n in found})


def test_what_is_healthy_is_released_and_what_comes_back_is_not_lost(spark, broker, tmp_path):
    began = datetime.now(UTC).replace(microsecond=0)
    first = began - (60 + began.second % 10) * SECOND  # the start of a window
    for name in ("silent", "stalls", "ahead"):
        broker.make(name, 2)
    broker.put("silent", messages(first, range(20)), 0)  # its partition 1 never has a message
    broker.put("stalls", messages(first, range(35)), 1)
    broker.put("ahead", messages(first + timedelta(minutes=6), range(7)), 0)
    expected = truth(first, range(20)) + truth(first, range(35))
    writer = query(broker).to_spark().writeStream.format("parquet").option("path", str(tmp_path / "out"))
    running = writer.option("checkpointLocation", str(tmp_path / "state")).start()
    try:
        seen = Seen(running, tmp_path / "out")
        seen.until(len(expected), 20 + 35 + 7)  # no further message is needed
        assert released(tmp_path / "out") == expected
        quiet = running.lastProgress.batchId
        # It comes back: what it did not send in time, and what is new.
        now = datetime.now(UTC).replace(microsecond=0)
        fresh = now - now.second % 10 * SECOND
        broker.put("stalls", messages(first, range(3, 10)), 0)
        broker.put("stalls", messages(fresh, range(10)), 1)
        expected += truth(fresh, range(10))
        seen.until(len(expected), 20 + 35 + 7 + 7 + 10)
        counts = seen.counts()
    finally:
        running.stop()
    assert released(tmp_path / "out") == expected
    assert (counts["rows_late"], counts["rows_bad"]) == (7, 7)
    assert expected.total() + counts["rows_late"] + counts["rows_bad"] == counts["rows_in"]
    assert quiet < 30  # micro-batches came when their answers helped
    again = query(broker).to_spark().writeStream.format("parquet").option("path", str(tmp_path / "out"))
    again = again.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    again.awaitTermination()
    assert released(tmp_path / "out") == expected
