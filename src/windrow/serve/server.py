"""A session as a long-lived process: from the first request to a clean stop."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from windrow.errors import WindrowError
from windrow.serve.app import PAUSE, application
from windrow.serve.folder import Folder
from windrow.serve.loopback import is_loopback
from windrow.serve.session import Session

PATIENCE = 3  # seconds that a response may take to end after the server was asked to stop
LOOK = 0.5  # seconds between two looks whether the session still runs


def listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections from this machine. Anything else is refused: the API has no encryption."""
    if not is_loopback(host):
        raise WindrowError(f"{host} is not a loopback address: the server is for this machine alone, as on 127.0.0.1")
    bare = host.removeprefix("[").removesuffix("]")
    address = "127.0.0.1" if bare.lower() == "localhost" else bare
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise WindrowError(f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port") from None


def address_of(listener: socket.socket) -> str:
    """The URL of a server on a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server(session: Session, token: str, pause: float = PAUSE, patience: int = PATIENCE) -> uvicorn.Server:
    """A server of a session that has been started. Set its ``should_exit`` to end it."""
    app = application(session, token, stopping=lambda: made.should_exit, pause=pause)
    made = uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=patience,
        )
    )
    return made


def serve(session: Session, folder: Folder, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Start a session and serve it until SIGINT or SIGTERM. Raises if the session stops by itself.

    The folder is claimed by the caller, before anything is built that costs time.
    """
    token, address = folder.token(), address_of(listener)
    with stopped_by_signals() as interrupted:
        try:
            session.start()
            # The socket has been listening all along: who connects now is answered as soon as the loop runs.
            folder.publish(address)
            ready(address)
            _run(server(session, token), session, listener, interrupted)
        finally:
            folder.withdraw()
            reason = session.error()
            session.stop()
    if reason is not None and not interrupted.is_set():
        raise WindrowError(f"the session has stopped: {reason}")


def _run(running: uvicorn.Server, session: Session, listener: socket.socket, interrupted: threading.Event) -> None:
    """Serve until asked to stop, or until the session has stopped.

    A signal that came before uvicorn handles them is only noted: uvicorn does not know of it.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            if interrupted.is_set() or session.error() is not None:
                running.should_exit = True
                return

    watcher = threading.Thread(target=watch, name="windrow-serve-watch", daemon=True)
    watcher.start()
    try:
        running.run(sockets=[listener])
    finally:
        over.set()
        watcher.join()


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Note the first SIGINT or SIGTERM instead of dying of it; the second interrupts whatever takes so long.

    uvicorn handles both while it serves, and raises them again after its own clean end. Python would then die of
    SIGTERM, and PySpark's handler of SIGINT would cancel the running micro-batch, before the session is stopped.
    """
    noted = threading.Event()

    def note(_number: int, _frame: Any) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
