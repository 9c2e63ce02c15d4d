"""The figures of a report, as text for Prometheus, over HTTP, in a file, and in the terminal."""

import json
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import polars as pl
import pytest
from typer.testing import CliRunner

import windrow as wr
from windrow import count
from windrow.cli import app
from windrow.cli.metrics import published
from windrow.cli.top import _news
from windrow.errors import QueryError
from windrow.hosts.figures import figures_of, prometheus
from windrow.hosts.spark.reports import FILE, write
from windrow.serve.metrics import MetricsServer, write_text
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"t": pl.Int64, "k": pl.String}


def written(batches=3):
    """What micro-batches over two streams leave."""
    spark = SimulatedSpark()
    streams = {name: wr.stream(spark.stream(SCHEMA), "t", slack=2, name=name) for name in ("a", 'b "x"')}
    running = spark.start(streams["a"].union(streams['b "x"']).window(10).agg(n=count()))
    for batch in range(batches):
        rows = pl.DataFrame({"t": [batch * 10 + 9, batch * 10 + 3], "k": ["u", None]}, schema=SCHEMA)
        found = running.push({"a": rows, 'b "x"': rows.head(1)})
    took = {"triggerExecution": 500}
    return {"format": 1, "batch": batches - 1, "began": str(batches), "milliseconds": took, "parts": found.reports}


def test_the_figures_of_a_query():
    found = figures_of(written())
    first, second = found.streams
    assert (first.name, first.rows, first.rate, first.promise, first.promised) == ("a", 6, 4.0, "27", 27.0)
    assert (first.lag, first.disorder) == (2.0, 0.0)
    assert (second.rows, second.rate) == (3, 2.0)
    assert (found.batch, found.seconds, found.results, found.rate) == (2, 0.5, 2, 2.0)
    paned = next(each for each in found.operators if each.name.endswith("paned"))
    assert paned.algorithm == "paned"
    assert paned.state > 0 < paned.held
    admitted = next(each for each in found.operators if each.name == "a/admit")
    assert (admitted.rows_in, admitted.rate_in) == (6, 4.0)


def test_disorder_is_how_far_rows_reach_back():
    spark = SimulatedSpark()
    stream = wr.stream(spark.stream(SCHEMA), "t", slack=50, name="s")
    running = spark.start(stream.window(10).agg(n=count()))
    for times in ([5, 40], [31, 60]):
        found = running.push({"s": pl.DataFrame({"t": times, "k": None}, schema=SCHEMA)})
    took = {"format": 1, "batch": 1, "began": "", "milliseconds": {}, "parts": found.reports}
    [figures] = figures_of(took).streams
    assert (figures.disorder, figures.rate) == (9.0, 0.0)


def test_prometheus_text():
    text = prometheus(figures_of(written()))
    assert '# TYPE windrow_rows_total counter\nwindrow_rows_total{source="a",on="t"} 6\n' in text
    assert 'windrow_promise{source="b \\"x\\"",on="t"} 27\n' in text
    assert "windrow_results_total 2\n" in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rsplit(" ", 1)[1]) >= 0
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_a_server_of_figures():
    latest = [None]
    with MetricsServer("127.0.0.1", 0, lambda: latest[0]) as server:
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{server.address}/metrics")
        assert refused.value.code == 503
        refused.value.close()
        latest[0] = written()
        with urlopen(f"{server.address}/metrics") as response:
            assert response.read().decode() == prometheus(figures_of(latest[0]))
        with urlopen(f"{server.address}/report") as response:
            assert figures_of(json.load(response)) == figures_of(latest[0])
        found = CliRunner().invoke(app, ["top", server.address, "--once", "--json"])
        assert json.loads(found.output) == json.loads(json.dumps(figures_of(latest[0]).as_json()))
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{server.address}/rows")
        assert refused.value.code == 404
        refused.value.close()


def test_figures_in_a_file(tmp_path):
    file = tmp_path / "windrow.prom"
    write_text(file, written())
    assert file.read_text() == prometheus(figures_of(written()))
    assert [each.name for each in tmp_path.iterdir()] == ["windrow.prom"]


@pytest.mark.parametrize("wanted", ["soon", ":80", "99999", "/no/such/folder/x.prom"])
def test_what_cannot_be_published_is_refused(wanted):
    with pytest.raises(QueryError, match="--metrics"), published(wanted, print):
        pass


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "metadata").write_text('{"id": "1"}')
    write(tmp_path / FILE, written())
    return str(tmp_path)


def test_top_shows_what_the_last_micro_batch_has_left(checkpoint):
    found = CliRunner(env={"COLUMNS": "160"}).invoke(app, ["top", checkpoint, "--once"])
    assert found.exit_code == 0, found.output
    for fact in ("micro-batch 2, 0.5 s from promise to output, 2 results", "promise", "disorder", "paned", "27"):
        assert fact in found.output


def test_why_reads_the_report_beside_a_checkpoint_without_spark(checkpoint):
    found = CliRunner().invoke(app, ["why", checkpoint])
    assert found.exit_code == 0, found.output
    assert found.output.startswith('Waiting for sources `a` and `b "x"`: last promise 27, 30 is needed; ')
    as_json = json.loads(CliRunner().invoke(app, ["why", checkpoint, "--json", "--check"]).output)
    assert as_json["cause"]["name"] == "waiting"
    assert [source["read"] for source in as_json["report"]["sources"]] == [6, 3]


def test_why_and_top_say_what_is_wrong_with_a_folder(tmp_path):
    for command in (["why"], ["top", "--once"]):
        found = CliRunner().invoke(app, [*command, str(tmp_path)])
        assert found.exit_code == 1
        assert "is not the checkpoint of a streaming query" in str(found.exception)
    (tmp_path / "metadata").write_text('{"id": "1"}')
    found = CliRunner().invoke(app, ["top", str(tmp_path), "--once"])
    assert "no micro-batch has left its figures yet" in str(found.exception)


def test_top_follows_micro_batches(monkeypatch):
    came = [None, written(1), written(1), written(3)]
    monkeypatch.setattr(time, "sleep", lambda _: None)
    found = _news(lambda: came.pop(0), 1.0, once=False)
    assert [next(found).batch, next(found).batch] == [0, 2]
    assert came == []
