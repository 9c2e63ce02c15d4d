"""What every request must pass before anything else looks at it: its host, its token and the size of its body."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow.serve.loopback import is_loopback, without_port

LONGEST = 1 << 20  # bytes of a body
DIGITS = 18  # of a length that is read as a number at all
TOO_LONG = f"the body has more than {LONGEST:,} bytes"


class Gate:
    """Lets requests through that name this server as their host, show the token, and have a body of bearable size.

    A page in a browser can send requests to loopback under a name of its own (DNS rebinding); the host shows it.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what may not pass; hand on everything else, with a body that cannot grow beyond the limit."""
        if scope["type"] != "http":
            raise RuntimeError(f"requests of type {scope['type']!r} are not served")
        if (refused := self._refused(Headers(scope=scope))) is not None:
            await refused(scope, receive, send)
            return
        await self.app(scope, Limited(receive), send)

    def _refused(self, headers: Headers) -> JSONResponse | None:
        if not is_loopback(without_port(headers.get("host", ""))):
            return _answer(400, "the Host header does not name this machine's loopback address")
        if not hmac.compare_digest(headers.get("authorization", "").encode("latin-1"), self.expected):
            return _answer(401, "this needs the token of the server: Authorization: Bearer TOKEN", authenticate=True)
        declared = headers.get("content-length", "0")
        if not declared.isdecimal():
            return _answer(400, "Content-Length is not a number")
        return _answer(413, TOO_LONG) if len(declared) > DIGITS or int(declared) > LONGEST else None


class Limited:
    """The body of a request, which ends with an error where it is too long: it may not have told its length."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.length = 0

    async def __call__(self) -> Message:
        """The next message of the request."""
        message = await self.receive()
        self.length += len(message.get("body", b""))
        if self.length > LONGEST:
            raise HTTPException(413, TOO_LONG)
        return message


def _answer(status: int, message: str, authenticate: bool = False) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if authenticate else None
    return JSONResponse({"error": message}, status, headers)
