"""A client of a served session, as the commands of ``windrow`` use it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from windrow.errors import QueryError, WindrowError
from windrow.serve.folder import Folder
from windrow.serve.loopback import is_loopback

TOKEN = "WINDROW_TOKEN"
# Changes wait for the end of a micro-batch, and the results of a quiet query for rows: only connecting is bounded.
TIMEOUT = httpx.Timeout(None, connect=5)
OF_THE_QUERY = (404, 409, 422)


class Client:
    """Requests to one server. Closed at the end of a ``with``.

    The environment's proxies are not used: they are not on this machine, and would see the token.
    """

    def __init__(self, address: str, token: str | None) -> None:
        self.address = address
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=TIMEOUT, trust_env=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def add(self, name: str, query: str) -> dict[str, Any]:
        """Add a query, and get what is known about it."""
        return self._ask("POST", "/queries", {"name": name, "query": query})

    def drop(self, name: str) -> None:
        """End a query."""
        self._ask("DELETE", _path(name))

    def pause(self, name: str) -> dict[str, Any]:
        """Stop a query for now."""
        return self._ask("POST", _path(name, "pause"))

    def resume(self, name: str) -> dict[str, Any]:
        """Let a paused query go on."""
        return self._ask("POST", _path(name, "resume"))

    def queries(self) -> list[dict[str, Any]]:
        """All queries by name."""
        found: list[dict[str, Any]] = self._ask("GET", "/queries")["queries"]
        return found

    def report(self) -> dict[str, Any] | None:
        """What the last micro-batch has left; None if there was none yet."""
        with self._reached():
            response = self._http.get("/report")
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return None
        if not response.is_success:
            raise _error(response)
        found: dict[str, Any] = _json(response)
        return found

    def results(self, name: str, after: int = -1, follow: bool = False) -> Iterator[str]:
        """Lines of JSON: one for each micro-batch, and where the results end for good one that says why."""
        parameters = {"after": after, "follow": int(follow)}
        with self._reached(), self._http.stream("GET", _path(name, "results"), params=parameters) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _error(response)
            yield from _lines(response.iter_bytes())

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> dict[str, Any]:
        with self._reached():
            response = self._http.request(method, path, json=body)
        if not response.is_success:
            raise _error(response)
        found: dict[str, Any] = _json(response)
        return found

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError:
            raise WindrowError(f"no server answers at {self.address}") from None
        except httpx.TransportError as error:
            raise WindrowError(f"the connection to {self.address} broke: {error or type(error).__name__}") from None


def connect(server: str) -> Client:
    """A client of the server over a folder, or at a URL with the token in $WINDROW_TOKEN."""
    if not server.startswith(("http://", "https://")):
        folder = Folder(server)
        return Client(folder.read_address(), folder.read_token())
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise WindrowError(f"{server} is not a URL: {error}") from None
    if url.scheme == "http" and not is_loopback(url.host):
        raise WindrowError(f"{url.host} is not this machine: the token would travel there for all to read")
    token = os.environ.get(TOKEN)
    if not token:
        raise WindrowError(f"a server by its URL needs the token in ${TOKEN}; or give its folder, which has the token")
    return Client(server, token)


def report_at(address: str) -> dict[str, Any] | None:
    """What the last micro-batch has left, of a server of a session or of ``windrow run --metrics``, which has no token.

    The token in $WINDROW_TOKEN is sent to this machine, or encrypted, only.
    """
    safe = is_loopback(httpx.URL(address).host) or address.startswith("https://")
    with Client(address, os.environ.get(TOKEN) if safe else None) as client:
        return client.report()


def _path(name: str, what: str = "") -> str:
    return f"/queries/{quote(name, safe='')}" + (f"/{what}" if what else "")


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Whole lines. What a broken connection leaves of the last is not one."""
    rest: list[bytes] = []
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line]).decode()
            rest = []
        rest.append(last)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise WindrowError(f"{response.url} does not answer as a server of Windrow does") from None


def _error(response: httpx.Response) -> WindrowError:
    try:
        message = json.loads(response.text)["error"]
    except (ValueError, KeyError, TypeError):
        return WindrowError(f"{response.url} answers {response.status_code}, and not as a server of Windrow does")
    return (QueryError if response.status_code in OF_THE_QUERY else WindrowError)(message)
