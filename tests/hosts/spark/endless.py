"""The program that test_continuous_kills.py kills, and that kills nodes of its own: a ring that runs without end.

Run as ``python endless.py FOLDER NODES_TO_KILL``: reads FOLDER/a and FOLDER/b, a file of each at a time, writes
FOLDER/sink, and ends when all has been read.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import windrow as wr

SLACK = 5
POISON = 777  # a value that kills whoever looks at it


def near(x, y):
    return (x * y) % 7 < 3


def query(folder, test, streaming):
    files = {"progress": "t", "slack": SLACK, "streaming": streaming, "max_files": 1}
    streams = [wr.read_parquet(folder / name, name=name, **files) for name in "ab"]
    found = wr.multi_join(*streams, within=30, where=wr.udf(test, "BOOLEAN", "n", "n_b"), nodes=2)
    return found.select("t", "n", "t_b", "n_b")


def kill_some(alive, times):
    """SIGKILL a node in the middle of its work, again and again. Nodes leave their process numbers in a folder."""
    for _ in range(times):
        for each in alive.iterdir():
            each.unlink()
        while not (there := sorted(int(each.name) for each in alive.iterdir())):
            time.sleep(0.01)
        os.kill(there[-1], signal.SIGKILL)


def main(folder, kills):
    alive = folder / "alive"
    alive.mkdir(exist_ok=True)

    def test(x, y):
        (alive / str(os.getpid())).touch()
        if POISON in (x, y):
            os.kill(os.getpid(), signal.SIGKILL)
        return near(x, y)

    spark = wr.session("endless", master="local[2]", log=folder / "spark.log")
    asked = query(folder, test, streaming=True)
    run = asked.run_continuously(
        sink=folder / "sink", checkpoint=folder / "state", epoch="20 ms", retries=3 + kills, spark=spark
    )
    killing = threading.Thread(target=kill_some, args=(alive, kills))
    killing.start()
    rows = int((folder / "rows").read_text())
    while run.progress().counts.get("rows_in", 0) < rows:
        run.await_epoch(run.progress().epoch + 1, 240)
    killing.join()
    run.stop()
    run.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
