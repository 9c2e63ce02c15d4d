"""A ring that runs without end in threads of this process: real connections and files, a clock and a driver by hand."""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

import windrow as wr
from windrow.hosts.ring.epochs import Clocks, Follower, Head
from windrow.hosts.ring.links import Listener, LostError, TcpLinks
from windrow.hosts.spark.continuous import running

SLACK = 5


def near(x, y):
    return (x + y) % 3 == 0


def query(folder, streaming=True, where=None, **options):
    """Two streams of rows (t, n) that meet by a Python function."""
    files = {"schema": "t BIGINT, n BIGINT", "slack": SLACK, "progress": "t", "streaming": streaming}
    streams = [wr.read_parquet(folder / name, name=name, **files) for name in "ab"]
    test = wr.udf(near, "BOOLEAN", "n", "n_b") if where is None else where
    found = wr.multi_join(*streams, within=20, where=test, **{"nodes": 2, **options})
    return found.select("t", "n", "t_b", "n_b")


def put(folder, name, number, rows, at=None):
    """A file of a stream, complete when it appears, with a time of its own."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    draft = folder / name / f".{number}"
    pl.DataFrame(rows, schema={"t": pl.Int64, "n": pl.Int64}, orient="row").write_parquet(draft)
    seconds = number if at is None else at
    os.utime(draft, (seconds, seconds))
    draft.rename(folder / name / f"{number}.parquet")


@dataclass
class Script:
    """Who has started the run. Whenever nothing has come, the next step is taken; after the last one the run is to end.

    A step is a function, or seconds that pass. ``looks``: how long the head takes for a look at the sources.
    """

    steps: list
    looks: float = 0.0
    told: list = field(default_factory=list)
    sent: list = field(default_factory=list)  # bytes that the head has sent, at each step
    seconds: float = 0.0
    done: bool = False

    def stopping(self):
        return self.done

    def pause(self, seconds):
        if not self.steps:
            self.done = True
            return
        self.sent.append(self.links.sent)
        step = self.steps.pop(0)
        if callable(step):
            step()
        else:
            self.seconds += step

    def tell(self, progress):
        self.told.append(progress)

    def elapsed(self):
        self.seconds += self.looks
        return self.seconds

    def clocks(self):
        return Clocks(lambda: int(self.seconds * 1e6), self.elapsed)


def run(asked, folder, script, nodes=2, every=1.0, change=lambda run: run, watch=lambda node: None):
    """Until the script is over; returns how it has ended: the head's error, or None."""
    planned = asked.plan()
    found = change(running(planned, asked._data, nodes, folder / "sink", folder / "checkpoint", every))
    listeners = [Listener() for _ in range(nodes)]
    addresses = [listener.address for listener in listeners]
    links = [TcpLinks(n, listeners[n], addresses, b"s" * 32) for n in range(nodes)]

    def follow(node):
        with suppress(LostError):  # the head has failed
            Follower(found, links[node], watch(node)).serve()
        links[node].close()

    script.links = links[0]
    threads = [threading.Thread(target=follow, args=(node,)) for node in range(1, nodes)]
    for thread in threads:
        thread.start()
    ended = False
    try:
        Head(found, links[0], watch(0), script, script.clocks()).serve()
        ended = True
    finally:
        links[0].close(ended)
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    return script


def shown(folder, kind=""):
    """What whoever reads the sink sees."""
    files = sorted(Path(folder / "sink" / kind).glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame()
