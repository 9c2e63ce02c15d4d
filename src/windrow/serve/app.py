"""The HTTP API over a session. ``docs/reference/http.md`` describes it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from windrow.errors import InternalError, WindrowError
from windrow.hosts.figures import figures_of, prometheus
from windrow.serve import requests
from windrow.serve.gate import Gate
from windrow.serve.metrics import TEXT, public
from windrow.serve.results import Events, Format, JsonLines, Tail, written
from windrow.serve.session import QueryInfo, Session

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
LOG = logging.getLogger("windrow.serve")
PAUSE = 0.2  # seconds between two looks for new results
READERS, CHANGES = 16, 16  # threads; changes wait for micro-batches, and must not keep readers waiting


def application(
    session: Session, token: str, stopping: Callable[[], bool] = lambda: False, pause: float = PAUSE
) -> ASGIApp:
    """The API as an ASGI application. Once ``stopping`` says so, responses that follow a query come to their end."""
    api = Api(session, stopping, pause)
    paths: dict[str, dict[str, Endpoint]] = {
        "/health": {"GET": api.health},
        "/metrics": {"GET": api.metrics},
        "/report": {"GET": api.report},
        "/queries": {"GET": api.list, "POST": api.add},
        "/queries/{name}": {"GET": api.show, "DELETE": api.drop},
        "/queries/{name}/pause": {"POST": api.pause},
        "/queries/{name}/resume": {"POST": api.resume},
        "/queries/{name}/explain": {"GET": api.explain},
        "/queries/{name}/results": {"GET": api.results},
    }
    routes = [Route(path, _guarded(endpoints), methods=list(endpoints)) for path, endpoints in paths.items()]
    handlers: Any = {HTTPException: _refused, WindrowError: _invalid}
    return Gate(Starlette(routes=routes, exception_handlers=handlers), token)


class Api:
    """A method for each endpoint."""

    def __init__(self, session: Session, stopping: Callable[[], bool], pause: float) -> None:
        self.session = session
        self.stopping = stopping
        self.interval = pause
        self._readers = Threads(READERS)
        self._changes = Threads(CHANGES)

    async def health(self, request: Request) -> Response:
        """Whether the session runs."""
        requests.no_parameters(request)
        error = await self._readers(self.session.error)
        if error is not None:
            return JSONResponse({"status": "stopped", "error": error}, 503)
        return JSONResponse({"status": "running", "error": None})

    async def metrics(self, request: Request) -> Response:
        """The figures of the last micro-batch, for Prometheus."""
        requests.no_parameters(request)
        return PlainTextResponse(prometheus(figures_of(await self._latest())), media_type=TEXT)

    async def report(self, request: Request) -> Response:
        """What the last micro-batch has left, for ``windrow top``."""
        requests.no_parameters(request)
        return JSONResponse(await self._latest())

    async def _latest(self) -> dict[str, Any]:
        found = await self._readers(self.session.latest)
        if found is None:
            raise HTTPException(503, "no micro-batch has ended yet")
        queries = await self._readers(self.session.queries)
        return {**public(found), "queries": {name: queries[name].rows_out for name in sorted(queries)}}

    async def list(self, request: Request) -> Response:
        """All queries."""
        requests.no_parameters(request)
        found = await self._readers(self.session.queries)
        return JSONResponse({"queries": [described(found[name]) for name in sorted(found)]})

    async def show(self, request: Request) -> Response:
        """One query."""
        requests.no_parameters(request)
        return JSONResponse(described(await self._known(request)))

    async def add(self, request: Request) -> Response:
        """A new query. A name that is taken is a conflict, also if it was taken a moment ago."""
        requests.no_parameters(request)
        name, query = await requests.new_query(request)
        try:
            await self._changes(partial(self.session.add, name, query))
        except WindrowError as error:
            if isinstance(error, InternalError) or name not in await self._readers(self.session.queries):
                raise
            raise HTTPException(409, f"there is a query {name!r} already: drop it first, or use another name") from None
        found = (await self._readers(self.session.queries)).get(name)
        answer = {"name": name, "query": query} if found is None else described(found)  # dropped again already
        return JSONResponse(answer, 201, {"Location": f"/queries/{name}"})

    async def drop(self, request: Request) -> Response:
        """End a query."""
        await self._change(request, self.session.drop)
        return JSONResponse({"dropped": request.path_params["name"]})

    async def pause(self, request: Request) -> Response:
        """Stop a query for now."""
        await self._change(request, self.session.pause)
        return JSONResponse(described(await self._known(request)))

    async def resume(self, request: Request) -> Response:
        """Let a paused query go on."""
        await self._change(request, self.session.resume)
        return JSONResponse(described(await self._known(request)))

    async def explain(self, request: Request) -> Response:
        """How a query runs."""
        requests.no_parameters(request)
        name = (await self._known(request)).name
        return JSONResponse({"name": name, "explain": await self._readers(partial(self.session.explain, name))})

    async def results(self, request: Request) -> Response:
        """Finished micro-batches, and with follow those to come."""
        events = "text/event-stream" in request.headers.get("accept", "")
        form: Format = Events() if events else JsonLines()
        after, follow = requests.after(request), requests.follow(request, default=events)
        query = await self._known(request)
        tail = Tail(self.session, query.name, after, query)
        text = written(tail, form, follow, self._readers, self.stopping, self.interval)
        return StreamingResponse(text, media_type=form.media_type, headers={"Cache-Control": "no-store"})

    async def _known(self, request: Request) -> QueryInfo:
        name = request.path_params["name"]
        found = await self._readers(self.session.queries)
        if name not in found:
            raise HTTPException(404, f"there is no query {name!r}")
        return found[name]

    async def _change(self, request: Request, change: Callable[[str], None]) -> None:
        """Change a query that exists. What the session refuses then is at odds with the state of the query."""
        requests.no_parameters(request)
        name = (await self._known(request)).name
        try:
            await self._changes(partial(change, name))
        except InternalError:
            raise
        except WindrowError as error:
            await self._known(request)  # someone else may have dropped it
            raise HTTPException(409, str(error)) from None


class Threads:
    """Runs blocking calls in threads, so many at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._limiter: anyio.CapacityLimiter | None = None

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """What the call returns."""
        if self._limiter is None:  # it belongs to the event loop, which runs by now
            self._limiter = anyio.CapacityLimiter(self.most)
        return anyio.to_thread.run_sync(call, limiter=self._limiter)


def described(query: QueryInfo) -> dict[str, Any]:
    """A query as clients see it."""
    return {
        "name": query.name,
        "query": query.text,
        "status": query.status,
        "error": query.error,
        "first_batch": query.first_batch,
        "rows_out": query.rows_out,
        "rows_late": query.rows_late,
        "rows_bad": query.rows_bad,
    }


async def _refused(_request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _invalid(_request: Request, error: WindrowError) -> Response:
    return JSONResponse({"error": str(error)}, 500 if isinstance(error, InternalError) else 422)


def _guarded(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """The endpoints of a path by method. A body that is too long is refused before any of them does something.

    Errors that nobody expected are answered, too. Left to the server they would break the connection of the client.
    """

    async def called(request: Request) -> Response:
        try:
            await request.body()  # also where none is needed: it may be long, and not have told its length
            return await endpoints["GET" if request.method == "HEAD" else request.method](request)
        except (HTTPException, WindrowError):
            raise
        except ClientDisconnect:
            raise HTTPException(400, "the body is not complete") from None
        except Exception as error:
            LOG.exception("%s %s", request.method, request.url.path)
            message = f"unexpected {type(error).__name__}; the server's messages have the rest"
            return JSONResponse({"error": message}, 500)

    return called
