"""Room for arithmetic in 64 bits, and for the results of one promise in memory."""

from __future__ import annotations

from windrow.errors import ResultError

LIMIT = 13 << 59  # START and END times a window's step leave 64 bits; no value less its origin is beyond this
MOST_AT_ONCE = 20_000_000  # results of one promise where windows need no rows to have one


def clipped(value: int) -> int:
    """The value, or the nearest one that still leaves room for arithmetic in 64 bits."""
    return max(-LIMIT, min(LIMIT, value))


def check_amount(results: int, what: str) -> None:
    """Refuse a promise so far ahead that windows without rows of their own would fill the memory."""
    if results > MOST_AT_ONCE:
        raise ResultError(
            f"{what}: one promise passes {results:,} results, more than {MOST_AT_ONCE:,}. A progress value or marker "
            "is far in the future (to end a stream, do not promise the end of time), or SLIDE is too small"
        )
