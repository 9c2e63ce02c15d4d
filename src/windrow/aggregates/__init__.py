"""Aggregates as lift / combine / lower over shared, mergeable parts; ``recalc`` is the oracle."""

from windrow.aggregates.functions import FUNCTIONS, Aggregate, Algebra, make
from windrow.aggregates.partials import Partials
from windrow.aggregates.parts import ROWS
from windrow.aggregates.recalc import recalc

__all__ = ["FUNCTIONS", "ROWS", "Aggregate", "Algebra", "Partials", "make", "recalc"]
