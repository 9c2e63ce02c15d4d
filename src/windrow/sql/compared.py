"""Conditions between steps in SQL: comparisons with one step on each side, or the distance of two times."""

from __future__ import annotations

from sqlglot import exp

from windrow.logical.compared import COMPARISONS, Place, compared
from windrow.logical.nodes import Compared
from windrow.sql.band import Bands, as_condition


def comparisons(condition: exp.Expr, bands: Bands, place: Place, text: str) -> list[Compared]:
    """A condition as comparisons of a step with a later one; whatever else it is, it is refused."""
    condition = condition.unnest()
    if (distances := bands.of(condition)) and not _apart(condition, place):
        moved = [as_condition(each, bands.times[each.earlier]) for each in distances]
        return [each for tree in moved for each in compared(tree, place, text)]
    return compared(condition, place, text)


def _apart(condition: exp.Expr, place: Place) -> bool:
    """Whether each part of a comparison is about one step: ``b.ts > a.ts``, not ``b.ts - a.ts > 0``."""
    parts = [condition.this, condition.args.get("low"), condition.args.get("high")]
    parts = [condition.this, condition.expression] if type(condition) in COMPARISONS else parts
    return all(len({place(c)[0] for c in part.find_all(exp.Column)}) == 1 for part in parts if part is not None)
