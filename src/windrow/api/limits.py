"""The limits of a join as users give them: ``max_rate``, ``max_state``, ``share`` and ``seed``."""

from __future__ import annotations

from typing import Any

from windrow.api import given
from windrow.errors import QueryError
from windrow.spec.allocation import checked_limits
from windrow.spec.joining import Limits

NAMES = ("max_rate", "max_state", "share", "seed")


def limits(max_rate: Any = None, max_state: Any = None, share: Any = None, seed: Any = None) -> Limits | None:
    """Checked limits; None if there are none.

    >>> limits(max_rate=100, share="equal")
    Limits(max_rate=100.0, max_state=None, policy='equal', seed=0)
    """
    rate = None if max_rate is None else given.number(max_rate, "max_rate")
    state = None if max_state is None else given.whole(max_state, "max_state")
    policy = None if share is None else given.text(share, "share")
    chosen = 0 if seed is None else given.whole(seed, "seed")
    checked_limits(rate, state, policy)
    if rate is None and state is None:
        if seed is not None:
            raise QueryError(f"seed={seed} chooses the rows that are shed, and none are: give max_rate or max_state")
        return None
    return Limits(rate, state, policy, chosen)
