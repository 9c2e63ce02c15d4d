"""Benchmarks and the papers' experiments, one file each. EXPERIMENTS lists them by name."""

from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.slide_by_tuple import SLIDE_BY_TUPLE
from windrow.bench.spark_sliding import SPARK_SLIDING
from windrow.bench.window_types import WINDOW_TYPES

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (SLIDE_BY_TUPLE, SPARK_SLIDING, WINDOW_TYPES)}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome"]
