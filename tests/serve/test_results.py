"""Results over HTTP: JSON lines and server-sent events, resumed, followed, by many clients and by slow ones."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import polars as pl
import pytest
from fake_session import SQL, FakeSession, serving

from windrow.serve.results import Tail

EVENTS = {"Accept": "text/event-stream"}


@contextmanager
def following(http, name="q", after=-1):
    """The lines of a response that waits for more."""
    with http.stream("GET", f"/queries/{name}/results", params={"after": after, "follow": 1}) as response:
        assert response.status_code == 200
        yield (json.loads(line) for line in response.iter_lines())


def batches(lines, count):
    return [next(lines)["batch"] for _ in range(count)]


# -- what exists now ---------------------------------------------------------------------------------------------------
def test_lines_of_json_have_a_micro_batch_each(served):
    served.add()
    for _ in range(3):
        served.session.finish()
    response = served.http.get("/queries/q/results")
    assert response.headers["content-type"] == "application/x-ndjson"
    assert response.text == "".join(f'{{"batch": {n}, "rows": [{{"n": {n}}}]}}\n' for n in range(3))
    assert served.http.get("/queries/q/results?after=1").text == '{"batch": 2, "rows": [{"n": 2}]}\n'
    assert served.http.get("/queries/q/results?after=2&follow=0").text == ""


def test_events_have_the_micro_batch_as_their_id_and_resume_after_it(served):
    served.add()
    for _ in range(3):
        served.session.finish()
    first = served.http.get("/queries/q/results?follow=0", headers=EVENTS)
    assert first.headers["content-type"].startswith("text/event-stream")
    assert first.text == "".join(f'id: {n}\ndata: [{{"n": {n}}}]\n\n' for n in range(3))
    again = served.http.get("/queries/q/results?follow=0&after=-1", headers={**EVENTS, "Last-Event-ID": "1"})
    assert again.text == 'id: 2\ndata: [{"n": 2}]\n\n'
    assert served.http.get("/queries/q/results", headers={**EVENTS, "Last-Event-ID": "x"}).status_code == 400


def test_a_large_micro_batch_is_one_line(served):
    served.add()
    served.session.finish(pl.DataFrame({"n": range(25_000), "s": ["a\nb\u2028"] * 25_000}))
    [line] = served.http.get("/queries/q/results").text.split("\n")[:-1]
    assert json.loads(line)["rows"] == [{"n": n, "s": "a\nb\u2028"} for n in range(25_000)]


# -- what is to come ---------------------------------------------------------------------------------------------------
def test_a_follower_gets_what_comes_until_the_query_is_dropped(served):
    served.add()
    served.session.finish()
    with following(served.http) as lines, served.client() as other:
        assert batches(lines, 1) == [0]
        served.session.finish()
        assert batches(lines, 1) == [1]
        other.post("/queries/q/pause")
        served.session.finish()
        other.post("/queries/q/resume")
        served.session.finish()
        assert batches(lines, 1) == [3]
        other.delete("/queries/q")
        assert list(lines) == [{"end": "dropped"}]


def test_events_are_followed_unless_told_otherwise_and_say_why_they_end(served):
    served.add()
    served.session.finish()
    with served.http.stream("GET", "/queries/q/results", headers=EVENTS) as response:
        text = response.iter_lines()
        assert [next(text) for _ in range(3)] == ["id: 0", 'data: [{"n": 0}]', ""]
        served.session.fail("q", "sum beyond 64 bits")
        assert list(text) == ["event: end", 'data: {"end": "failed", "error": "sum beyond 64 bits"}', ""]


def test_what_a_query_gave_before_it_failed_comes_first(served):
    served.add()
    served.session.finish()
    served.session.fail("q", "boom")
    with following(served.http) as lines:
        assert list(lines) == [{"batch": 0, "rows": [{"n": 0}]}, {"end": "failed", "error": "boom"}]


def test_the_end_of_the_session_ends_what_follows(served):
    served.add()
    with following(served.http) as lines:
        served.session.reason = "the disk is full"
        assert list(lines) == [{"end": "stopped", "error": "the disk is full"}]


def test_the_end_of_the_server_ends_what_follows(tmp_path):
    with serving(tmp_path / "session") as served:
        served.add()
        with following(served.http) as lines:
            served.session.finish()
            assert batches(lines, 1) == [0]
            served.server.should_exit = True
            assert list(lines) == [{"end": "stopping"}]


def test_another_query_of_the_same_name_is_not_taken_for_the_first():
    session = FakeSession()
    session.add("q", SQL)
    tail = Tail(session, "q", -1)
    assert tail.next() == ([], None)
    session.finish()
    session.drop("q")
    session.add("q", SQL)
    assert tail.next() == ([], {"end": "dropped"})


def test_a_query_that_is_dropped_between_two_looks_has_ended():
    class Fleeting(FakeSession):
        def results(self, name, after=-1):
            self.drop(name)
            return super().results(name, after)

    session = Fleeting()
    session.add("q", SQL)
    assert Tail(session, "q", -1).next() == ([], {"end": "dropped"})


# -- many clients, and bad ones ----------------------------------------------------------------------------------------
CLIENTS, ROUNDS = 10, 20


def test_ten_clients_follow_while_queries_come_and_go(served):
    served.add()

    def follow(_):
        with served.client() as http, following(http) as lines:
            return batches(lines, ROUNDS)

    def change(number):
        with served.client() as http:
            body = {"name": f"other{number}", "query": SQL}
            return http.post("/queries", json=body).status_code, http.delete(f"/queries/other{number}").status_code

    with ThreadPoolExecutor(2 * CLIENTS) as pool:
        followers = [pool.submit(follow, i) for i in range(CLIENTS)]
        changes = []
        for number in range(ROUNDS):
            changes.append(pool.submit(change, number))
            served.session.finish()
        assert [c.result() for c in changes] == [(201, 200)] * ROUNDS
        assert [f.result() for f in followers] == [list(range(ROUNDS))] * CLIENTS
    assert list(served.session.infos) == ["q"]


def request(served, path):
    """A connection that has asked, and reads nothing."""
    host, port = served.address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.folder.read_token()}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def test_a_client_that_reads_nothing_or_vanishes_disturbs_nobody(tmp_path):
    large = pl.DataFrame({"n": range(50_000), "s": ["x" * 100] * 50_000})
    with serving(tmp_path / "session", patience=0) as served:
        served.add()
        served.session.finish(large)
        with request(served, "/queries/q/results?follow=1") as slow:
            assert slow.recv(8) == b"HTTP/1.1"
            for _ in range(20):
                with request(served, "/queries/q/results?follow=1"):
                    pass
            with following(served.http) as lines:
                assert len(next(lines)["rows"]) == 50_000
                served.session.finish()
                assert next(lines)["batch"] == 1
            assert served.add("p").status_code == 201


def test_a_broken_stream_breaks_its_own_connection_alone(served):
    served.add()
    served.session.finish(pl.DataFrame({"n": [object()]}, schema={"n": pl.Object}))
    with pytest.raises(Exception, match="incomplete"):
        served.http.get("/queries/q/results")
    assert served.http.get("/queries").status_code == 200
