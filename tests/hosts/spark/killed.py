"""The program that test_restart.py kills: streaming queries of every kind in one Spark, each with its own checkpoint.

Run as ``python killed.py FOLDER``: reads FOLDER/main and a topic, writes FOLDER/<name>, and ends when
all has been read.
"""

import json
import sys
import threading
from pathlib import Path

import windrow as wr
from windrow.cli.run import Both
from windrow.sinks.delta import Delta
from windrow.sinks.kafka import KafkaSink
from windrow.sinks.parquet import ParquetBatches

SLACK = "3.2 seconds"  # what the rows need; the sessions have less, so that some rows are late


def sliding(s):
    found = s.where("len > 60").window("4 minutes", "1 minute").group_by("src_ip")
    return found.agg(n=wr.count(), longest=wr.max("len"), mean=wr.avg("len"))


def sessions(s):
    found = s.session("20 seconds").late("side").group_by("src_ip")
    return found.agg(n=wr.count(), typical=wr.median("len"), opened=wr.first("src_port"))


def in_order(s):
    return s.where("len > 60").select("ts", "src_ip", "len").distinct().order_by("ts", "src_ip", "len")


def two_stages(s):
    inner = s.window("30 seconds").group_by("src_ip").agg(n=wr.count())
    return inner.window("2 minutes", "1 minute").agg(rows=wr.sum("n"), most=wr.max("n"))


def by_row(s):
    return s.each_row("30 seconds", 50).agg(n=wr.count(), longest=wr.max("len"))


def joined(s):
    """A stream with itself, and the pairs grouped by another key."""
    large = s.where("len > 800").select("ts", "src_ip", "len")
    small = s.where("len < 200").select("ts", "src_ip", "src_port")
    pairs = large.join(small, on="src_ip", within=("0 seconds", "1 second"))
    return pairs.window("30 seconds", on="ts").group_by("src_port").agg(n=wr.count(), longest=wr.max("len"))


def outer(s):
    """Rows without a partner, and the state that remembers which rows have one."""
    large = s.where("len > 1200").select("ts", "src_ip", "len")
    small = s.where("len < 100").select("ts", "src_ip", "src_port")
    return large.join(small, on="src_ip", tumbling="5 seconds", how="full", where="len % 7 <> src_port % 7")


def followed(s):
    """Sequences that come out when their time is over, and an as-of join of them."""
    large = s.where("len > 1200").select("ts", "src_ip", "len")
    small = s.where("len < 100").select("ts", "src_ip", "src_port")
    other = s.where("len BETWEEN 100 AND 130").select("ts", "src_ip")
    found = wr.seq(
        {"a": large, "x": wr.no(other), "b": wr.some(small)},
        on="src_ip",
        within="5 seconds",
        matching="chronicle",
        columns={"ip": "a.src_ip", "begin": "a.ts", "n": "count(b.*)", "port": "last(b.src_port)", "end": "last(b.ts)"},
    )
    return found.join_asof(large, left_on="end", right_on="ts", by_left="ip", by_right="src_ip", max_keys=10_000)


def limited(s):
    """Pairs of what a join keeps that may take four rows a second and hold twelve. Without keys it is in one shard."""
    large = s.where("len > 1000").select("ts", "len")
    small = s.where("len < 300").select("ts", "src_port")
    return large.join(small, within=("-2 seconds", "2 seconds"), max_rate=4, max_state=12, seed=1)


def pairs_in_order(s):
    """A join that holds rows or results, and the order of all shards."""
    large = s.where("len > 1000").select("ts", "src_ip", "len")
    small = s.where("len < 300").select("ts", "src_ip", "src_port")
    pairs = large.join(small, on="src_ip", within=("-2 seconds", "2 seconds"), using="adaptive")
    return pairs.select("src_ip", "len", "src_port", u="greatest(ts, ts_right)").order_by(
        "u", "src_ip", "len", "src_port"
    )


WINDOWS = (sliding, sessions, two_stages, by_row)
ROWS = (in_order, joined, outer, followed, limited, pairs_in_order)
QUERIES = {f.__name__: f for f in (*WINDOWS, *ROWS)}


class Stopping(Delta):
    """The Delta sink, which waits to be killed where FOLDER/stop says: its files "written", or "committed" as well."""

    def commit(self, table, app, batch, attempt):
        if any(attempt.glob("*.parquet")):
            self._stop("written")
        super().commit(table, app, batch, attempt)
        self._stop("committed")

    def _stop(self, where):
        stop = self.path.parent / "stop"
        if stop.exists() and stop.read_text() == where:
            stop.with_name(where).touch()
            threading.Event().wait()


def topic(folder, **options):
    """The same rows in a topic; FOLDER/topics.json says where, and how many make a micro-batch."""
    given = json.loads((folder / "topics.json").read_text())
    columns = "ts TIMESTAMP, src_ip STRING"
    return wr.read_kafka(given["brokers"], given["main"], "ts", schema=columns, max_rows=given["rows"], **options)


def started(spark, folder, name):
    main = str(folder / "main")
    if name == "two_stages":
        # What it answers at the end of the last run closes its last windows.
        source = topic(folder, slack=SLACK, delay="1 day", name="main")
    elif name == "sliding":  # Spark's own reader; the others have ours
        files = spark.readStream.schema(spark.read.parquet(main).schema).option("maxFilesPerTrigger", 1)
        source = wr.stream(files.parquet(main), progress="ts", slack=SLACK, name="main")
    else:
        slack = "1 second" if name == "sessions" else SLACK
        source = wr.read_parquet(main, progress="ts", slack=slack, name="main", streaming=True, max_files=1)
    late = name == "sessions"
    frame = QUERIES[name](source).to_spark(with_late=late, checkpoint=folder / f"{name}-state")
    writer = frame.writeStream.option("checkpointLocation", str(folder / f"{name}-state")).trigger(availableNow=True)
    if name == "sliding":
        given = json.loads((folder / "topics.json").read_text())
        return wr.start(writer.foreachBatch(KafkaSink(given["brokers"], given["sliding"], key="src_ip")))
    if late:
        return wr.start(writer.foreachBatch(Both(f"parquet:{folder / name}", f"parquet:{folder / 'late'}")))
    if name == "joined":
        return wr.start(writer.foreachBatch(Stopping(folder / name)))
    if name == "two_stages":
        return wr.start(writer.foreachBatch(ParquetBatches(folder / name)))
    return wr.start(writer.format("parquet").option("path", str(folder / name)))


def main(folder):
    spark = wr.session("killed", log=folder / "spark.log", **{"spark.sql.shuffle.partitions": 2})
    for running in [started(spark, folder, name) for name in QUERIES]:
        running.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
