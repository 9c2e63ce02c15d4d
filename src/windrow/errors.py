"""The errors that Windrow raises: one class per stage; each message says what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class WindrowError(Exception):
    """The base class: catch this to catch every error of Windrow."""


class WindrowWarning(UserWarning):
    """A query is probably not meant like this; the message says why, and what to change. Filter it as any warning."""


class QueryError(WindrowError):
    """The query is invalid: unknown names, wrong types, bad window parameters."""


class PlanError(WindrowError):
    """The query is valid, but cannot run, or would never produce a result."""


class GraphError(WindrowError):
    """A query graph cannot be changed, or fed, in this way."""


class CheckpointError(WindrowError):
    """Stored state does not belong to this query, or is damaged."""


class DataError(WindrowError):
    """The rows cannot be read as the declared stream."""


class LateError(DataError):
    """A row came after its window was released, and the query's late policy is "error"."""


class ResultError(WindrowError):
    """A result does not fit its type, such as an integer sum beyond 64 bits."""


class InternalError(WindrowError):
    """A bug in Windrow: please report it with the message."""


def listing(names: Iterable[str]) -> str:
    """Names for the end of a message: what is available.

    >>> listing(["ts", "len"])
    'len, ts'
    """
    found = sorted(names)
    return ", ".join(found) if found else "(none)"


def underline(text: str, start: int, end: int) -> str:
    """The line of ``text`` that holds [start, end], with a row of carets below it.

    >>> print(underline("SELECT x FROM t", 7, 7))
      SELECT x FROM t
             ^
    """
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    width = max(1, min(end, line_start + len(line) - 1) - start + 1)
    return f"  {line}\n  {' ' * (start - line_start)}{'^' * width}"
