"""The program that test_ring_kills.py disturbs: a ring of two nodes, each on an executor of its own.

Run as ``python killed_ring.py FOLDER``: reads FOLDER/a, b and c, writes FOLDER/out, and ends when all has been read.
Some values make the condition kill: the Python worker in which it runs, an executor, or the worker each time again.
"""

import os
import signal
import sys
from pathlib import Path

import windrow as wr

WORKER, EXECUTOR, POISON = 1001, 1002, 1003  # values of x in stream a
SCHEMA = "t TIMESTAMP, x BIGINT"


def near(folder):
    def kill_once(name, pid):
        flag = folder / f"killed-{name}"
        if not flag.exists():
            flag.touch()
            os.kill(pid, signal.SIGKILL)

    def condition(x, y):
        if x == WORKER:
            kill_once("worker", os.getpid())
        elif x == EXECUTOR:
            kill_once("executor", executors()[0])
        elif x == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        return (x + y) % 3 == 0

    return condition


def executors():
    """The executors of this program."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, session = (entry / "cmdline").read_bytes(), os.getsid(int(entry.name))
        except (OSError, ProcessLookupError):  # it has ended meanwhile
            continue
        if b"CoarseGrainedExecutorBackend" in command and session == os.getsid(0):
            found.append(int(entry.name))
    return sorted(found)


def query(sources, condition):
    streams = [wr.stream(sources[name], "t", slack="2 seconds", name=name) for name in "abc"]
    where = [wr.udf(condition, "BOOLEAN", "x", "x_b"), "x_b < x_c"]
    return wr.multi_join(*streams, within={"a": "6 seconds", "b": "3 seconds", "c": "20 rows"}, where=where, nodes=2)


def main(folder):
    spark = wr.session(
        "killed-ring",
        master="local-cluster[2,1,1024]",
        log=folder / "spark.log",
        **{"spark.sql.shuffle.partitions": 2, "spark.executor.memory": "1g"},
    )
    sources = {}
    for name in "abc":
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        sources[name] = files.parquet(str(folder / name))

    def write(frame, number):
        frame.write.mode("overwrite").parquet(str(folder / "out" / str(number)))

    frame = query(sources, near(folder)).to_spark(shards=2, with_late=True)
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "state"))
    wr.start(writer.trigger(availableNow=True)).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
