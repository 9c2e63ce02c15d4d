"""A session without Spark, whose micro-batches the test finishes, and a real server over it."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import httpx
import polars as pl

from windrow.errors import QueryError
from windrow.hosts.standing import Registry
from windrow.serve.folder import Folder
from windrow.serve.server import address_of, listening, server

SQL = "SELECT count(*) AS n FROM packets [RANGE 10, WA ts]"


@dataclass(frozen=True)
class Info:
    name: str
    text: str
    status: str = "running"
    error: str | None = None
    first_batch: int | None = None
    rows_out: int = 0
    rows_late: int = 0
    rows_bad: int = 0


@dataclass
class FakeSession:
    """What the server asks of a session. Queries whose text has ``bad`` are refused, and ``bug`` is a bug."""

    batch: int = 0
    reason: str | None = None
    running: bool = False
    written: dict | None = None  # by the last micro-batch
    infos: dict[str, Info] = field(default_factory=dict)
    kept: dict[str, list[tuple[int, pl.DataFrame]]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    free: threading.Event = field(default_factory=threading.Event)  # changes wait for it
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))  # one for each that waits

    def __post_init__(self):
        self.free.set()

    def add(self, name, query):
        self._end_of_a_batch()
        with self.lock:
            if "bad" in query:
                raise QueryError("unknown column bad; available: n")
            if "bug" in query:
                raise ZeroDivisionError("secret details")
            Registry().check_new([name])
            if name in self.infos:
                raise QueryError(f"there is a query {name!r} already")
            self.infos[name] = Info(name, query, first_batch=self.batch)
            self.kept[name] = []

    def drop(self, name):
        self._end_of_a_batch()
        with self.lock:
            self._known(name)
            del self.infos[name], self.kept[name]

    def pause(self, name):
        self._turn(name, "running", "paused")

    def resume(self, name):
        self._turn(name, "paused", "running")

    def queries(self):
        with self.lock:
            return dict(self.infos)

    def explain(self, name):
        return f"plan of {self._known(name).text}"

    def results(self, name, after=-1):
        with self.lock:
            self._known(name)
            return [(number, frame) for number, frame in self.kept[name] if number > after]

    def start(self):
        self.running = True

    def stop(self):
        self.running = False

    def latest(self):
        return self.written

    def error(self):
        return self.reason

    # -- what the test does ------------------------------------------------------------------------------------------
    def finish(self, frame=None):
        """A micro-batch ends, with these results for each running query."""
        with self.lock:
            for name, info in self.infos.items():
                if info.status == "running":
                    found = pl.DataFrame({"n": [self.batch]}) if frame is None else frame
                    self.kept[name].append((self.batch, found))
                    self.infos[name] = replace(info, rows_out=info.rows_out + found.height)
            self.batch += 1

    def fail(self, name, error):
        with self.lock:
            self.infos[name] = replace(self.infos[name], status="failed", error=error)

    def _end_of_a_batch(self):
        self.waiting.release()
        self.free.wait()

    def _turn(self, name, before, after):
        with self.lock:
            info = self._known(name)
            if info.status != before:
                raise QueryError(f"query {name!r} is {info.status}")
            self.infos[name] = replace(info, status=after)

    def _known(self, name):
        if name not in self.infos:
            raise QueryError(f"unknown query {name!r}")
        return self.infos[name]


@dataclass
class Served:
    """A running server: its session, folder, address and a client with the token."""

    session: FakeSession
    folder: Folder
    address: str
    http: httpx.Client
    server: object

    def client(self, token=None, **named):
        headers = {"Authorization": f"Bearer {token or self.folder.read_token()}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False, **named)

    def add(self, name="q", query=SQL):
        return self.http.post("/queries", json={"name": name, "query": query})


@contextmanager
def serving(path, session=None, patience=3):
    """Serve a fake session on a free port of loopback, in a thread."""
    session, folder = session or FakeSession(), Folder(path)
    with folder.claimed(), listening("127.0.0.1", 0) as listener:
        running = server(session, folder.token(), pause=0.01, patience=patience)
        address = address_of(listener)
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        folder.publish(address)
        served = Served(session, folder, address, None, running)
        try:
            with served.client() as served.http:
                yield served
        finally:
            session.free.set()
            running.should_exit = True
            thread.join()
            folder.withdraw()
