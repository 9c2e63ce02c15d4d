"""Limits of a join, checked: something must be left, and results must be right without the rows that are shed."""

from __future__ import annotations

from windrow.errors import PlanError
from windrow.logical.nodes import Join
from windrow.spec.allocation import checked_limits


def check_limits(node: Join) -> None:
    """Refuse limits that leave nothing, or that a join cannot keep and give right results."""
    limits = node.limits
    if limits is None:
        return
    checked_limits(limits.max_rate, limits.max_state, limits.policy)
    if node.how not in ("inner", "semi"):
        raise PlanError(
            f"{node.how} joins with limits would be wrong: a row whose partner was shed would come out as one that "
            "has none. max_rate and max_state are for inner joins, max_rate for semi joins, too"
        )
    if node.how == "semi" and limits.max_state is not None:
        raise PlanError(
            "max_state is for inner joins: a row of a semi join leaves with its first partner. Give max_rate alone"
        )
    if node.by_rows:
        raise PlanError("limits are per unit of time, and this join is over row numbers: join by times")
    if node.using is not None:
        raise PlanError(
            f"a join with limits has an algorithm of its own, and using={node.using!r} names another: leave out one"
        )
