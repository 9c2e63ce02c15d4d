"""Every endpoint of a served session, and what it answers to requests that are wrong."""

import http.client
import json
from contextlib import closing
from dataclasses import asdict

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx
import pytest
from fake_session import SQL, FakeSession, serving

from windrow.hosts.figures import figures_of
from windrow.hosts.report import FORMAT
from windrow.hosts.tally import Aside, Tally
from windrow.serve.app import application
from windrow.serve.gate import LONGEST

PATHS = [
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/report"),
    ("GET", "/queries"),
    ("POST", "/queries"),
    ("GET", "/queries/q"),
    ("DELETE", "/queries/q"),
    ("POST", "/queries/q/pause"),
    ("POST", "/queries/q/resume"),
    ("GET", "/queries/q/explain"),
    ("GET", "/queries/q/results"),
    ("GET", "/nothing"),
]


def error_of(response):
    found = response.json()
    assert set(found) == {"error"}
    return response.status_code, found["error"]


# -- endpoints ---------------------------------------------------------------------------------------------------------
def test_the_life_of_a_query(served):
    http, shown = (
        served.http,
        {"name": "q", "query": SQL, "error": None, "first_batch": 0, "rows_late": 0, "rows_bad": 0},
    )
    assert http.get("/health").json() == {"status": "running", "error": None}
    assert http.get("/queries").json() == {"queries": []}
    added = served.add()
    assert (added.status_code, added.headers["location"]) == (201, "/queries/q")
    assert added.json() == {**shown, "status": "running", "rows_out": 0}
    served.session.finish()
    assert http.get("/queries/q").json() == {**shown, "status": "running", "rows_out": 1}
    assert http.post("/queries/q/pause").json()["status"] == "paused"
    served.session.finish()
    assert http.post("/queries/q/resume").json()["status"] == "running"
    assert http.get("/queries/q/explain").json() == {"name": "q", "explain": f"plan of {SQL}"}
    assert served.add("p").status_code == 201
    assert [q["name"] for q in http.get("/queries").json()["queries"]] == ["p", "q"]
    assert http.delete("/queries/q").json() == {"dropped": "q"}
    assert [q["name"] for q in http.get("/queries").json()["queries"]] == ["p"]


def written():
    """What a micro-batch leaves."""
    tally = {**Tally(4, {"s": 7}).to_json(), "late": {"stage0/1-paned": {**asdict(Aside(2)), "examples": ["secret"]}}}
    part = {"format": FORMAT, "tally": tally, "waits": [], "state": {}, "outline": None}
    took = {"triggerExecution": 250}
    return {"format": FORMAT, "batch": 4, "began": "now", "milliseconds": took, "parts": [part]}


def test_figures_of_the_last_micro_batch(served):
    assert error_of(served.http.get("/metrics")) == (503, "no micro-batch has ended yet")
    assert error_of(served.http.get("/report")) == (503, "no micro-batch has ended yet")
    served.session.written = written()
    served.add()
    served.session.finish()
    text = served.http.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain")
    lines = text.text.splitlines()
    assert {"windrow_micro_batch 4", "windrow_micro_batch_seconds 0.25"} < set(lines)
    assert {'windrow_rows_late_total{at="stage0/1-paned"} 2', 'windrow_query_results_total{query="q"} 1'} < set(lines)
    report = served.http.get("/report").json()
    assert (report["batch"], report["queries"]) == (4, {"q": 1})
    assert "secret" not in json.dumps(report)
    assert figures_of(report).late == {"stage0/1-paned": 2}


def test_a_query_that_fails_is_shown_and_the_others_go_on(served):
    served.add("good")
    served.add("ill")
    served.session.fail("ill", "sum beyond 64 bits")
    served.session.finish()
    found = {q["name"]: (q["status"], q["error"], q["rows_out"]) for q in served.http.get("/queries").json()["queries"]}
    assert found == {"good": ("running", None, 1), "ill": ("failed", "sum beyond 64 bits", 0)}


def test_a_session_that_has_stopped_is_not_healthy(served):
    served.session.reason = "the disk is full"
    response = served.http.get("/health")
    assert (response.status_code, response.json()) == (503, {"status": "stopped", "error": "the disk is full"})


# -- who may ask -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic {}", "{}", "Bearer {}x", "é"])
def test_without_the_token_nothing_is_answered(served, method, path, header):
    headers = {} if header is None else {"Authorization": header.format(served.folder.read_token()).encode("latin-1")}
    del served.http.headers["Authorization"]
    response = served.http.request(method, path, headers=headers)
    assert error_of(response) == (401, "this needs the token of the server: Authorization: Bearer TOKEN")
    assert response.headers["www-authenticate"] == "Bearer"
    assert served.session.infos == {}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "192.168.0.1", "[::1"])
def test_a_host_that_is_not_loopback_is_refused(served, host):
    status, message = error_of(served.http.get("/queries", headers={"Host": host}))
    assert status == 400
    assert "Host" in message


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "[::1]:8765", "127.0.0.1"])
def test_every_name_of_loopback_is_a_host(served, host):
    assert served.http.get("/queries", headers={"Host": host}).status_code == 200


# -- bodies ------------------------------------------------------------------------------------------------------------
MEGABYTES = 100
FOLLOW = ("GET", "/queries/q/results?follow=1")
LENGTHS = pytest.mark.parametrize("declared", [True, False], ids=["with its length", "in chunks"])


def asked(method, path, headers=(), receive=None, session=None):
    """Ask the application itself, without a server; returns the status. By default none of the body may be read."""
    answers = []

    async def send(message):
        answers.append(message)

    at, _, query = path.partition("?")
    named = [(b"host", b"localhost"), *headers]
    scope = {"type": "http", "method": method, "path": at, "query_string": query.encode(), "headers": named}
    anyio.run(application(session or FakeSession(), "t"), scope, receive, send)
    return answers[0]["status"]


def with_q():
    session = FakeSession()
    session.add("q", SQL)
    return session


@LENGTHS
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/queries"), ("POST", "/queries/q/pause"), ("DELETE", "/queries/q"), FOLLOW]
)
def test_a_body_of_100_mb_is_refused_and_nothing_else_is_disturbed(served, method, path, declared):
    served.add()
    headers = {"Content-Length": str(MEGABYTES << 20)} if declared else {}
    body = (b"x" * (1 << 20) for _ in range(MEGABYTES))
    response = served.http.request(method, path, content=body, headers=headers)
    assert error_of(response) == (413, "the body has more than 1,048,576 bytes")
    assert [(q.name, q.status) for q in served.session.infos.values()] == [("q", "running")]
    assert served.http.get("/queries").status_code == 200


@pytest.mark.parametrize(("method", "path"), [*PATHS[:-1], FOLLOW])
@pytest.mark.parametrize(("headers", "most"), [([(b"content-length", b"104857600")], 0), ([], LONGEST + 1000)])
def test_a_long_body_is_never_in_memory_and_its_request_does_nothing(method, path, headers, most):
    taken, session = [], with_q()
    before = session.queries()

    async def receive():
        taken.append(1000)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    assert asked(method, path, [(b"authorization", b"Bearer t"), *headers], receive, session) == 413
    assert sum(taken) <= most
    assert session.queries() == before


@LENGTHS
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_the_token_nothing_of_a_body_is_read(served, method, path, declared):
    framing = ("Content-Length", str(MEGABYTES << 20)) if declared else ("Transfer-Encoding", "chunked")
    assert asked(method, path, [tuple(part.lower().encode() for part in framing)]) == 401
    url = httpx.URL(served.address)
    with closing(http.client.HTTPConnection(url.host, url.port, timeout=60)) as connection:
        connection.putrequest(method, path)
        connection.putheader(*framing)
        connection.endheaders()
        assert connection.getresponse().status == 401  # the body has not been sent, and never will be


@pytest.mark.parametrize(("method", "path"), PATHS[:-1])
def test_a_request_whose_body_breaks_off_does_nothing(caplog, method, path):
    messages = [
        {"type": "http.request", "body": b'{"name": "p", "query": "SELECT 1"}', "more_body": True},
        {"type": "http.disconnect"},
    ]
    session = with_q()
    before = session.queries()

    async def receive():
        return messages.pop(0)

    assert asked(method, path, [(b"authorization", b"Bearer t")], receive, session) == 400
    assert session.queries() == before
    assert not caplog.records  # it is nobody's bug


def test_a_short_body_is_no_obstacle_where_none_is_needed(served):
    served.add()
    assert served.http.post("/queries/q/pause", json={}).json()["status"] == "paused"
    assert served.http.request("GET", "/queries/q/results", content=b"x" * LONGEST).status_code == 200


@pytest.mark.parametrize("length", [b"9" * 5000, b"x", b"-1"])
def test_a_length_that_is_none_is_refused(length):
    headers = [(b"authorization", b"Bearer t"), (b"content-length", length)]
    assert asked("POST", "/queries", headers) in (400, 413)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 200_000, 400, "not JSON"),
        (b"[]", 422, "the body must be"),
        (b"null", 422, "the body must be"),
        (b'{"name": "q"}', 422, "the body must be"),
        (b'{"name": 1, "query": "SELECT 1"}', 422, "the body must be"),
        (b'{"name": "q", "query": null}', 422, "the body must be"),
        (b'{"name": "q", "query": ["SELECT 1"]}', 422, "the body must be"),
        (b'{"name": "q", "query": "SELECT 1", "shards": 3}', 422, "the body must be"),
        (b'{"name": "", "query": "SELECT 1"}', 422, "is not a name for a query"),
        (b'{"name": "a/b", "query": "SELECT 1"}', 422, "is not a name for a query"),
        (b'{"name": "q\\n", "query": "SELECT 1"}', 422, "is not a name for a query"),
        (b'{"name": "..", "query": "SELECT 1"}', 422, "is not a name for a query"),
        (b'{"name": "q", "query": " "}', 422, "empty"),
        (b'{"name": "q", "query": "SELECT \\ud800"}', 422, "Unicode"),
        (b'{"name": "q", "query": "SELECT bad"}', 422, "unknown column bad; available: n"),
    ],
)
def test_a_query_that_cannot_be_added(served, body, status, message):
    found, text = error_of(served.http.post("/queries", content=body))
    assert (found, message in text) == (status, True), text
    assert served.session.infos == {}


# -- names, parameters, bugs -------------------------------------------------------------------------------------------
def test_a_name_that_is_taken_is_a_conflict(served):
    served.add()
    assert error_of(served.add()) == (409, "there is a query 'q' already: drop it first, or use another name")
    assert error_of(served.add(query="SELECT bad")) == error_of(served.add())


@pytest.mark.parametrize(("method", "path"), [p for p in PATHS if "/q" in p[1].removeprefix("/queries")])
def test_an_unknown_query_is_not_found(served, method, path):
    served.add("other")
    assert error_of(served.http.request(method, path)) == (404, "there is no query 'q'")
    assert list(served.session.infos) == ["other"]


def test_what_does_not_fit_the_state_of_a_query_is_a_conflict(served):
    served.add()
    assert error_of(served.http.post("/queries/q/resume")) == (409, "query 'q' is running")
    served.http.post("/queries/q/pause")
    assert error_of(served.http.post("/queries/q/pause")) == (409, "query 'q' is paused")


@pytest.mark.parametrize("given", ["after=x", "after=-2", "after=1.5", "after=" + "9" * 30, "follow=2", "follow=yes"])
@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_wrong_parameters_are_refused(served, given, accept):
    served.add()
    assert error_of(served.http.get(f"/queries/q/results?{given}", headers={"Accept": accept}))[0] == 400


@pytest.mark.parametrize(("method", "path"), PATHS[:-1])
@pytest.mark.parametrize("given", ["limit=3", "after=1&after=2"])
def test_parameters_that_mean_nothing_are_refused(served, method, path, given):
    served.add()
    body = {"json": {"name": "p", "query": SQL}} if path == "/queries" and method == "POST" else {}
    assert error_of(served.http.request(method, f"{path}?{given}", **body))[0] == 400
    assert list(served.session.infos) == ["q"]


def test_other_paths_and_methods_are_errors_in_json_too(served):
    assert error_of(served.http.get("/nothing")) == (404, "Not Found")
    assert error_of(served.http.put("/queries")) == (405, "Method Not Allowed")


@pytest.mark.parametrize("path", sorted({path for _, path in PATHS[:-1]}))
def test_a_wrong_method_is_told_all_that_the_path_has(served, path):
    there = {method for method, known in PATHS if known == path}
    response = served.http.patch(path)
    assert error_of(response) == (405, "Method Not Allowed")
    assert set(response.headers["allow"].split(", ")) == there | ({"HEAD"} if "GET" in there else set())


def test_head_is_get_without_the_body(served):
    served.add()
    served.session.written = written()
    for path in (path for method, path in PATHS[:-1] if method == "GET"):
        response = served.http.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_a_bug_is_reported_without_details_and_the_server_goes_on(served):
    status, message = error_of(served.add(query="SELECT bug"))
    assert status == 500
    assert "ZeroDivisionError" in message
    assert "secret" not in message
    assert served.add().status_code == 201


def test_changes_that_wait_keep_no_reader_waiting(tmp_path):
    with serving(tmp_path / "session") as served:
        served.add()
        served.session.finish()
        served.session.free.clear()
        with anyio.from_thread.start_blocking_portal() as portal, served.client() as other:
            changes = [
                portal.start_task_soon(anyio.to_thread.run_sync, served.add, f"q{i}") for i in range(8)
            ]  # each waits for a micro-batch to end
            for _ in range(1 + 8):
                served.session.waiting.acquire()
            assert other.get("/queries").status_code == 200
            assert other.get("/queries/q/results").text == '{"batch": 0, "rows": [{"n": 0}]}\n'
            served.session.free.set()
            assert [change.result().status_code for change in changes] == [201] * 8
