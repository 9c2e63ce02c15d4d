"""The figures of one query over HTTP, without a session: what ``windrow run --metrics`` serves.

Only figures are shown, and names of sources and operators, never rows. So there is no token, and whoever reaches the
address may read them; it is this machine alone unless another address is given.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from windrow.errors import WindrowError
from windrow.hosts.figures import figures_of, prometheus

Written = Mapping[str, Any]
TEXT = "text/plain; version=0.0.4; charset=utf-8"
NOTHING = "no micro-batch has ended yet\n"


def public(written: Written) -> dict[str, Any]:
    """Without examples of late and bad rows."""
    parts = []
    for part in written["parts"]:
        tally = dict(part["tally"])
        for name in ("late", "bad"):
            tally[name] = {key: {**aside, "examples": []} for key, aside in tally[name].items()}
        parts.append({**part, "tally": tally})
    return {**written, "parts": parts}


class MetricsServer:
    """Answers ``GET /metrics`` with Prometheus text, and ``GET /report`` with what ``windrow top`` reads."""

    def __init__(self, host: str, port: int, latest: Callable[[], Written | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, text = answer(self.path, latest())
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        try:
            self.server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise WindrowError(f"cannot listen on {host}, port {port}: {error.strerror}; choose another port") from None
        self.thread = threading.Thread(target=self.server.serve_forever, name="windrow-metrics", daemon=True)

    @property
    def address(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> MetricsServer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def answer(path: str, written: Written | None) -> tuple[int, str, str]:
    """Status, type and body of the answer to a request."""
    match path:
        case "/metrics" | "/report" if written is None:
            return 503, TEXT, NOTHING
        case "/metrics":
            assert written is not None
            return 200, TEXT, prometheus(figures_of(written))
        case "/report":
            assert written is not None
            return 200, "application/json", json.dumps(public(written))
    return 404, TEXT, "there are /metrics and /report\n"


def write_text(file: Path, written: Written) -> None:
    """The figures as a file, whole or not at all, as the node exporter of Prometheus reads it."""
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(prometheus(figures_of(written)))
    draft.replace(file)
