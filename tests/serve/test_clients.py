"""The commands that are clients of a served session, and windrow serve as far as it goes without Spark."""

import json
import socketserver
import threading
from contextlib import contextmanager

import polars as pl
import pytest
from fake_session import SQL, FakeSession, serving
from typer.testing import CliRunner

from windrow.cli import app, inputs
from windrow.cli import serve as serve_command
from windrow.errors import QueryError, WindrowError
from windrow.serve.client import Client, connect
from windrow.serve.folder import Folder

invoke = CliRunner(env={"COLUMNS": "100", "WINDROW_SERVER": "", "WINDROW_TOKEN": ""}).invoke


@pytest.fixture
def run(served):
    def run(command, *arguments, **named):
        return invoke(app, [command, *arguments, "--server", str(served.folder.path)], **named)

    return run


def refused(result, kind, *words):
    """The error of a command, which main() prints with exit code 1."""
    assert isinstance(result.exception, kind), result.output
    assert all(word in str(result.exception) for word in words), result.exception


# -- commands ----------------------------------------------------------------------------------------------------------
def test_the_life_of_a_query(served, run, tmp_path):
    (tmp_path / "q.sql").write_text(SQL)
    assert run("add", "q", str(tmp_path / "q.sql")).output == "added q, from micro-batch 0\n"
    assert run("add", "p", "-e", SQL).exit_code == 0
    served.session.finish()
    assert run("pause", "q").output == "paused q\n"
    assert run("resume", "q").output == "resumed q\n"
    listed = json.loads(run("list", "--json").output)["queries"]
    assert [(q["name"], q["status"], q["query"], q["rows_out"]) for q in listed] == [
        ("p", "running", SQL, 1),
        ("q", "running", SQL, 1),
    ]
    assert run("drop", "q").output == "dropped q\n"
    assert list(served.session.infos) == ["p"]


def test_list_shows_why_a_query_failed(served, run):
    served.add("q", "SELECT '[red]'\n  FROM p")
    served.session.fail("q", "sum beyond 64 bits")
    output = run("list").output
    for words in ("q", "failed", "sum beyond 64 bits", "SELECT '[red]' FROM p"):
        assert words in output


def test_tail_prints_tables_or_lines(served, run):
    served.add()
    served.session.finish(pl.DataFrame({"k[b]": ["a", None], "x": [0.1, float("nan")]}))
    served.session.finish()
    shown = run("tail", "q", "--once").output
    for words in ("micro-batch 0", "k[b]", "NULL", "0.1", "NaN", "micro-batch 1"):
        assert words in shown
    lines = run("tail", "q", "--once", "--json", "--after", "0").output
    assert lines == '{"batch": 1, "rows": [{"n": 1}]}\n'


def test_tail_shows_the_first_rows_of_a_long_micro_batch(served, run):
    served.add()
    served.session.finish(pl.DataFrame({"n": range(50)}))
    assert "first 20 of 50 rows" in run("tail", "q", "--once").output


def test_tail_ends_with_its_query(served, run):
    served.add()
    served.session.finish()
    served.session.fail("q", "boom")
    failed = run("tail", "q", "--json")
    assert failed.stdout == '{"batch": 0, "rows": [{"n": 0}]}\n'
    refused(failed, QueryError, "q failed: boom")


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (
            {"end": "stopped", "error": "disk"},
            "the session has stopped: disk; to go on where this ended, use --after 7",
        ),
        ({"end": "stopping"}, "the server was stopped; to go on where this ended, use --after 7"),
    ],
)
def test_tail_says_how_to_go_on(run, monkeypatch, end, words):
    lines = ['{"batch": 7, "rows": [{"n": 1}]}', json.dumps(end)]
    monkeypatch.setattr(Client, "results", lambda *given, **named: iter(lines))
    refused(run("tail", "q"), WindrowError, words)


def test_tail_of_a_dropped_query_is_no_error(run, monkeypatch):
    monkeypatch.setattr(Client, "results", lambda *given, **named: iter(['{"end": "dropped"}']))
    result = run("tail", "q")
    assert (result.exit_code, result.stderr) == (0, "q was dropped\n")


def test_tail_can_be_interrupted(run, monkeypatch):
    def results(*given, **named):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Client, "results", results)
    assert run("tail", "q").exit_code == 130


# -- errors ------------------------------------------------------------------------------------------------------------
def test_what_the_server_refuses_is_an_error_with_its_words(served, run, tmp_path):
    served.add()
    refused(run("add", "q", "-e", SQL), QueryError, "there is a query 'q' already")
    refused(run("add", "p", "-e", "SELECT bad"), QueryError, "unknown column bad; available: n")
    refused(run("add", "p", "-e", "SELECT bug"), WindrowError, "unexpected ZeroDivisionError")
    refused(run("add", "p", str(tmp_path / "nope.sql")), QueryError, "nope.sql does not exist")
    refused(run("add", "p", "-e", "x" * (2 << 20)), WindrowError, "more than 1,048,576 bytes")
    for command in ("drop", "pause", "resume", "tail"):
        refused(run(command, "no/such"), WindrowError)
        refused(run(command, "nope"), QueryError, "there is no query 'nope'")
    assert list(served.session.infos) == ["q"]


@pytest.mark.parametrize("given", [["q"], ["q", "q.sql", "-e", SQL], []])
def test_wrong_usage_has_exit_code_two(run, given):
    assert run("add", *given).exit_code == 2


def test_a_server_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(invoke(app, ["list"]), WindrowError, "no server runs over windrow-session", "windrow serve --folder")
    monkeypatch.setenv("WINDROW_TOKEN", "t")
    with (
        pytest.raises(WindrowError, match=r"no server answers at http://127\.0\.0\.1:1"),
        connect("http://127.0.0.1:1") as c,
    ):
        c.queries()


def test_a_server_by_its_url_needs_the_token_from_the_environment(served, monkeypatch):
    monkeypatch.delenv("WINDROW_TOKEN", raising=False)
    with pytest.raises(WindrowError, match="needs the token in \\$WINDROW_TOKEN"):
        connect(served.address)
    monkeypatch.setenv("WINDROW_TOKEN", "wrong")
    with connect(served.address) as client, pytest.raises(WindrowError, match="this needs the token"):
        client.queries()
    monkeypatch.setenv("WINDROW_TOKEN", served.folder.read_token())
    with connect(served.address) as client:
        assert client.queries() == []


@pytest.mark.parametrize("url", ["http://example.org:8765", "http://0.0.0.0:1", "http://[", "http://"])
def test_the_token_is_not_sent_to_other_machines(url, monkeypatch):
    monkeypatch.setenv("WINDROW_TOKEN", "t")
    with pytest.raises(WindrowError):
        connect(url)


def test_proxies_of_the_environment_are_not_used(served, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with connect(str(served.folder.path)) as client:
        assert client.queries() == []


@contextmanager
def answering(answer):
    """A server of something else."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, args=(0.01,)).start()
        yield Client(f"http://127.0.0.1:{other.server_address[1]}", "t")
        other.shutdown()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "does not answer as a server of Windrow does"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n[]", "answers 404, and not as a server of Windrow does"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{", "the connection to .* broke"),
        (b"", "the connection to .* broke"),
    ],
)
def test_what_is_no_server_of_windrow(answer, words):
    with answering(answer) as client, client, pytest.raises(WindrowError, match=words):
        client.queries()


def test_a_torn_line_is_not_a_result():
    torn = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"a": 1}\n{"\r\n'
    with answering(torn) as client, client:
        lines = client.results("q")
        assert next(lines) == '{"a": 1}'
        with pytest.raises(WindrowError, match="broke"):
            next(lines)


# -- windrow serve -----------------------------------------------------------------------------------------------------
@pytest.fixture
def serve(tmp_path, monkeypatch):
    """The command over a fake session, which stops by itself as soon as it is ready."""
    made = []

    class Brief(FakeSession):
        def start(self):
            super().start()
            self.reason = "the test is over"

    def session_of(folder, streams, **options):
        made.append((folder, sorted(streams), options))
        return Brief()

    @contextmanager
    def spark_session(shards):
        yield None

    monkeypatch.setattr(serve_command, "session_of", session_of)
    monkeypatch.setattr(inputs, "spark_session", spark_session)
    (tmp_path / "p").mkdir()

    def run(*arguments):
        source = ["--source", f"p=parquet:{tmp_path / 'p'}", "--schema", "ts BIGINT", "--progress", "ts"]
        return invoke(app, ["serve", *source, "--folder", str(tmp_path / "session"), "--port", "0", *arguments])

    run.made = made
    return run


def test_serve_says_where_it_is(serve, tmp_path):
    result = serve(
        "--slack", "5", "--shards", "3", "--depth", "2", "--tasks", "1", "--source", f"q=arrow:{tmp_path / 'p'}"
    )
    assert result.stdout.startswith("serving on http://127.0.0.1:")
    assert result.stdout.endswith(f", token in {tmp_path / 'session' / 'token'}\n")
    assert serve.made == [(tmp_path / "session", ["p", "q"], {"shards": 3, "depth": 2, "tasks": 1})]
    refused(result, WindrowError, "the session has stopped: the test is over")
    assert not Folder(tmp_path / "session").served()


def test_serve_refuses_at_once(serve, served, tmp_path, monkeypatch):
    monkeypatch.setattr("windrow.serve.folder.TRIES", 1)
    refused(serve("--host", "0.0.0.0"), WindrowError, "not a loopback address")
    refused(serve("--folder", str(served.folder.path)), WindrowError, "already being served")
    refused(serve("--port", served.address.rpartition(":")[2]), WindrowError, "choose another --port")
    refused(serve("--source", f"p=arrow:{tmp_path / 'p'}"), QueryError, "another source named 'p'")
    assert serve("--port", "70000").exit_code == 2
    assert serve("--depth", "0").exit_code == 2
    assert serve.made == []


@pytest.mark.parametrize("name", ["depth", "sink", "self"])
def test_a_source_cannot_have_the_name_of_an_option(tmp_path, name):
    with pytest.raises(QueryError, match=f"cannot be named {name}"):
        serve_command.session_of(tmp_path, {name: None})


def test_clients_of_a_server_that_was_stopped(tmp_path):
    with serving(tmp_path / "session"):
        pass
    refused(invoke(app, ["list", "--server", str(tmp_path / "session")]), WindrowError, "no server runs over")
