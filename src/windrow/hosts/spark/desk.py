"""Where tasks of a ring meet: a desk at the driver, which also knows where the checkpoint of their query is.

``BarrierTaskContext.allGather`` looks for its answer once a second, so a micro-batch that called it would take a second
longer; the desk answers at once. Spark tells a task which query it belongs to, but not where that has its checkpoint,
which is only known once the query has started: the driver can ask.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from typing import TYPE_CHECKING, Any

from windrow.errors import CheckpointError
from windrow.hosts.ring.links import CONNECT, Address, LostError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHERE, MEET, FOLLOW = "where", "meet", "follow"
LONGEST = 1 << 20  # bytes of a question


@dataclass(frozen=True)
class DeskAddress:
    """What a task needs to ask the desk."""

    host: str
    port: int
    secret: bytes = field(repr=False)

    def checkpoint(self, query: str) -> str:
        """The checkpoint folder of a running query, by its id."""
        found = self._asked({"what": WHERE, "query": query}, CONNECT)
        if not found:
            raise CheckpointError(f"the driver knows no running query {query}")
        return str(found)

    def meet(self, key: str, task: int, node: int, nodes: int, own: Address) -> tuple[list[Address], bytes]:
        """The addresses of all nodes of a ring, and the secret of this ring, once all of them are here.

        ``key``: of the stage; ``task``: the number of this attempt at a task of it.
        """
        question = {"what": MEET, "key": key, "task": task, "node": node, "nodes": nodes, "at": [own.host, own.port]}
        found = self._asked(question, CONNECT)
        if found is None:
            raise LostError(
                f"not all {nodes} nodes of the ring have come within {CONNECT:g} s: node {node} waited at {own}"
            )
        return [Address(host, port) for host, port in found["at"]], bytes.fromhex(found["secret"])

    def follow(self, run: str) -> Any:
        """A connection to whoever has started a run, to be closed when it ends."""
        try:
            connection = Client((self.host, self.port), authkey=self.secret)
            connection.send_bytes(json.dumps({"what": FOLLOW, "run": run}).encode())
        except (OSError, EOFError, AuthenticationError) as error:
            raise self._unreachable(error) from None
        return connection

    def _unreachable(self, error: Exception) -> LostError:
        return LostError(
            f"a task cannot ask the driver at {self.host}:{self.port} ({error}): see that executors can reach the "
            "driver at that port"
        )

    def _asked(self, question: dict[str, Any], patience: float) -> Any:
        try:
            with Client((self.host, self.port), authkey=self.secret) as connection:
                connection.send_bytes(json.dumps(question).encode())
                return json.loads(connection.recv_bytes()) if connection.poll(patience) else None
        except (OSError, EOFError, AuthenticationError) as error:
            raise self._unreachable(error) from None


@dataclass(frozen=True)
class _Came:
    """A node that waits for the others: its task, where it listens, and the connection on which it waits."""

    task: int
    at: Sequence[Any]
    connection: Any


class Desk:
    """Answers tasks, as long as the driver lives. ``known`` gives the folder of a query, or nothing. ``followers``: by
    run, what listens to its head.
    """

    def __init__(self, host: str, known: Callable[[str], str]) -> None:
        self.known = known
        self.followers: dict[str, Callable[[Any], None]] = {}
        secret = secrets.token_bytes(32)
        self._listener = Listener((host, 0), backlog=128, authkey=secret)
        port: Any = self._listener.address[1]
        self.address = DeskAddress(host, int(port), secret)
        self._meetings: dict[str, dict[int, _Came]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):  # whoever it was
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Any) -> None:
        try:
            question = json.loads(connection.recv_bytes(LONGEST))
            if question["what"] == MEET:
                self._meet(question, connection)
            elif question["what"] == FOLLOW:
                self.followers[question["run"]](connection)
            else:
                connection.send_bytes(json.dumps(self.known(question["query"])).encode())
                connection.close()
        except (OSError, EOFError, ValueError, KeyError):
            connection.close()

    def _meet(self, question: dict[str, Any], connection: Any) -> None:
        """Whoever comes last makes all of them go on.

        The tasks of a barrier stage are launched together and have numbers in a row, those of its next attempt greater
        ones: whoever is too far behind the last number is of an attempt that has failed.
        """
        key, nodes = question["key"], int(question["nodes"])
        with self._lock:
            came = self._meetings.setdefault(key, {})
            came[question["node"]] = _Came(question["task"], question["at"], connection)
            newest = max(each.task for each in came.values())
            for node in [n for n, each in came.items() if each.task <= newest - nodes]:
                came.pop(node).connection.close()
            if len(came) < nodes:
                return
            del self._meetings[key]
        answer = json.dumps({"at": [came[n].at for n in range(nodes)], "secret": secrets.token_hex(32)}).encode()
        for each in came.values():
            try:
                each.connection.send_bytes(answer)
            except OSError:  # it has died since: the others will see that
                continue
            finally:
                each.connection.close()


_desks: dict[int, Desk] = {}


def desk(spark: SparkSession) -> DeskAddress:
    """The address of the desk of a session."""
    return desk_of(spark).address


def desk_of(spark: SparkSession) -> Desk:
    """The desk of a session."""
    key = id(spark._jsparkSession)
    if key not in _desks:
        host = spark.sparkContext.getConf().get("spark.driver.host") or "127.0.0.1"
        _desks[key] = Desk(_possible(host), lambda query: _checkpoint(spark, query))
    return _desks[key]


def _possible(host: str) -> str:
    """The driver's own name for itself, if it can listen there."""
    try:
        socket.create_server((host, 0)).close()
    except OSError:
        return "127.0.0.1"
    return host


def _checkpoint(spark: SparkSession, query: str) -> str:
    found = spark._jsparkSession.streams().get(query)
    return "" if found is None else str(found.streamingQuery().resolvedCheckpointRoot())
