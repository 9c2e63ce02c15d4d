"""Aggregates as lift / combine / lower over shared, mergeable parts."""

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.partials import Partials
from windrow.aggregates.parts import ROWS
from windrow.aggregates.registry import FUNCTIONS, make
from windrow.aggregates.user import Failed, UserAggregate

__all__ = ["FUNCTIONS", "ROWS", "Aggregate", "Failed", "Partials", "UserAggregate", "make"]
