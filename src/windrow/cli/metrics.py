"""``--metrics``: the figures of a query that runs, for Prometheus: at an address, or in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.serve.metrics import MetricsServer, Written, write_text

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

HOST = "127.0.0.1"


class Published:
    """What the last micro-batch has left, for whoever asks; a file is written anew each time."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.latest: Written | None = None

    def update(self, running: StreamingQuery) -> None:
        """A micro-batch of the query has ended."""
        from windrow.hosts.spark.reports import reports_in, snapshot

        progress = running.lastProgress
        if progress is None or not (parts := reports_in(progress)):
            return
        self.latest = snapshot(progress, parts)
        if self.file is not None:
            write_text(self.file, self.latest)


@contextlib.contextmanager
def published(wanted: str | None, told: Callable[[str], None]) -> Iterator[Published]:
    """``wanted``: a port of this machine, HOST:PORT, or a file that ends in .prom; None: nobody asks."""
    if wanted is None:
        yield Published()
    elif wanted.endswith(".prom"):
        file = Path(wanted)
        if not file.parent.is_dir():
            raise QueryError(f"--metrics {wanted}: the folder {file.parent} does not exist: create it first")
        yield Published(file)
    else:
        host, colon, port = wanted.rpartition(":")
        if not port.isdigit() or int(port) > 65535 or (colon and not host):
            raise QueryError(f"--metrics {wanted}: give a port, HOST:PORT, or a file that ends in .prom")
        found = Published()
        with MetricsServer(host or HOST, int(port), lambda: found.latest) as server:
            told(f"metrics on {server.address}/metrics")
            yield found
