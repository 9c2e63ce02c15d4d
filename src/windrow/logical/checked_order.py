"""Checked joins in order: which pairs can be put in order, and what has an effect on how that is done."""

from __future__ import annotations

from windrow.errors import PlanError
from windrow.logical.join import Join
from windrow.logical.multi_join import MultiJoin
from windrow.spec.in_order import MODES, bad_alpha, bad_cost


def check_order(node: Join) -> None:
    """Refuse an order that this join cannot have, and options that have no effect on it."""
    if node.using in MODES:
        _check_mode(node)
    check_adaptive(node)


def check_adaptive(node: Join | MultiJoin) -> None:
    """Refuse what does not say when a join changes, or says it of one that never does."""
    for name, value, bad in (("alpha", node.alpha, bad_alpha), ("cost", node.cost, bad_cost)):
        if value is None:
            continue
        if (why := bad(value)) is not None:
            raise PlanError(why)
        if node.using != "adaptive":
            why = "says when an adaptive join changes, and this one never does"
            raise PlanError(f"{name}= {why}: choose using='adaptive', or leave it out")
    if node.using == "adaptive" and node.cost is None and timeless(node):
        raise PlanError(
            "using='adaptive' compares how long rows take with how often they come, and a unit of "
            f"{node.inputs[0].progress} is no time: give cost=, what it takes to compare two rows, in such units, or "
            "choose 'sync-filter' or 'filter-order'"
        )


def _check_mode(node: Join) -> None:
    if node.by_rows:
        raise PlanError(
            f"using={node.using!r} puts pairs in the order of their times, and pairs of a join over ROWS have none: "
            "leave it out"
        )
    if node.how != "inner":
        raise PlanError(
            f"using={node.using!r} makes inner joins only: choose using='opob', or no using= and ORDER BY the time"
        )


def timeless(node: Join | MultiJoin) -> bool:
    """Whether its progress is no time: integers."""
    first = node.inputs[0]
    return first.schema[first.progress or ""].is_integer()
