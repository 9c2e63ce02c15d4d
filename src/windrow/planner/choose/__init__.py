"""Which physical algorithm runs a logical operator: the papers' cost models, fed by measured or declared statistics."""

from windrow.logical.nodes import Statistics
from windrow.planner.choose.choose import Choice, Option, choose
from windrow.planner.choose.statistics import (
    Workload,
    assumed,
    declared,
    measured,
)

__all__ = ["Choice", "Option", "Statistics", "Workload", "assumed", "choose", "declared", "measured"]
