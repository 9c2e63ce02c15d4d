"""``windrow serve`` over a real session: queries and their state outlive the server."""

import json
import os
import signal
import threading

import polars as pl
import pytest
from typer.testing import CliRunner

from windrow.cli import app
from windrow.serve.client import connect
from windrow.serve.folder import Folder

BYTES = "SELECT k, sum(len) AS total FROM packets [RANGE 10, SLIDE 10, WA ts] GROUP BY k"


class Visit:
    """A client that comes when the server is ready, and stops it with a signal when it has what it wants."""

    def __init__(self, folder, calls):
        self.folder, self.calls, self.found = folder, calls, []
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            with connect(str(self.folder)) as client:
                for call in self.calls:
                    self.found.append(call(client))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def visited(tmp_path, monkeypatch, spark):
    """Run ``windrow serve`` with visits from a client; what it found."""
    publish = Folder.publish
    visits = []

    def announced(folder, address):
        publish(folder, address)
        visits[-1].thread.start()

    monkeypatch.setattr(Folder, "publish", announced)

    def run(*calls):
        visits.append(Visit(tmp_path / "session", calls))
        source = ["--source", f"packets=parquet:{tmp_path / 'packets'}", "--schema", "ts BIGINT, k STRING, len BIGINT"]
        options = ["--progress", "ts", "--slack", "0", "--port", "0", "--folder", str(tmp_path / "session")]
        result = CliRunner().invoke(app, ["serve", *source, *options], catch_exceptions=False)
        visits[-1].thread.join()
        assert result.exit_code == 0, result.output
        return visits[-1].found

    return run


@pytest.mark.spark
def test_queries_and_their_state_outlive_the_server(visited, tmp_path):
    (tmp_path / "packets").mkdir()

    def arrive(name, rows):
        draft = tmp_path / f"{name}.parquet"
        pl.DataFrame(rows, schema=["ts", "k", "len"], orient="row").write_parquet(draft)
        draft.replace(tmp_path / "packets" / draft.name)

    def first(client):
        client.add("bytes", BYTES)
        arrive("first", [(1, "a", 40), (12, "a", 2)])
        return json.loads(next(client.results("bytes", follow=True)))

    def described(client):
        return client.queries()

    def then(client):
        arrive("second", [(15, "a", 3), (25, "a", 9)])
        return json.loads(next(client.results("bytes", after=seen["batch"], follow=True)))

    def explained():
        found = CliRunner().invoke(app, ["why", str(tmp_path / "session"), "--json"], catch_exceptions=False)
        found = json.loads(found.output)
        sentence = found["cause"]["sentence"].removeprefix("Waiting for source `packets`: ")
        return sentence, found["report"]["sources"][0]["read"]

    seen, [before] = visited(first, described)
    assert explained() == (
        "last promise 12, 20 is needed; 1 partial is held until 20.",
        2,
    )
    assert seen["rows"] == [{"k": "a", "window_start": 0, "window_end": 10, "total": 40}]
    assert before == {
        "name": "bytes",
        "query": BYTES,
        "status": "running",
        "error": None,
        "first_batch": 0,
        "rows_out": 1,
        "rows_late": 0,
        "rows_bad": 0,
    }
    [after], more = visited(described, then)
    assert after == before
    assert more["batch"] > seen["batch"]
    assert more["rows"] == [{"k": "a", "window_start": 10, "window_end": 20, "total": 5}]  # of both files
    assert explained() == (
        "last promise 25, 30 is needed; 1 partial is held until 30.",
        4,
    )
