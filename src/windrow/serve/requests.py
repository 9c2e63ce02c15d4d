"""What requests say: bodies and parameters, checked. Whatever is not understood is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from starlette.exceptions import HTTPException
from starlette.requests import Request

FIELDS = ("name", "query")


async def new_query(request: Request) -> tuple[str, str]:
    """The name and the SQL of a query to add."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(body, dict) or set(body) != set(FIELDS) or not all(isinstance(v, str) for v in body.values()):
        raise HTTPException(422, 'the body must be {"name": "..", "query": ".."}, both text')
    name, query = body["name"], body["query"]
    if not query.strip():
        raise HTTPException(422, "the query is empty")
    if not query.isprintable() and any("\ud800" <= c <= "\udfff" for c in query):
        raise HTTPException(422, "the query is not Unicode text: it has half of a pair of surrogates")
    return name, query


def no_parameters(request: Request) -> None:
    """Refuse parameters where there are none."""
    _only(request, ())


def after(request: Request) -> int:
    """The last micro-batch that a client has seen. An event source that reconnects says so in a header, which wins."""
    _only(request, ("after", "follow"))
    given = request.headers.get("last-event-id") or request.query_params.get("after", "-1")
    if not re.fullmatch(r"-1|\d{1,18}", given, re.ASCII):
        raise HTTPException(400, f"after: {given[:50]!r} is not the number of a micro-batch")
    return int(given)


def follow(request: Request, default: bool) -> bool:
    """Whether to wait for more."""
    given = request.query_params.get("follow", str(int(default)))
    if given not in ("0", "1"):
        raise HTTPException(400, f"follow: {given[:50]!r} is neither 0 nor 1")
    return given == "1"


def _only(request: Request, known: Collection[str]) -> None:
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    if odd := [name for name in names if name not in known or names.count(name) > 1]:
        raise HTTPException(400, f"parameter {odd[0][:50]!r} is unknown here, or given twice")
