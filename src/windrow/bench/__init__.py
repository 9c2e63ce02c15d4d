"""Benchmarks and the papers' experiments, one file each. EXPERIMENTS lists them by name."""

from windrow.bench.adaptwid import ADAPTWID
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.panes import PANES
from windrow.bench.spark_sliding import SPARK_SLIDING
from windrow.bench.wid_vs_buffering import WID_VS_BUFFERING
from windrow.bench.window_types import WINDOW_TYPES

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (SPARK_SLIDING, WINDOW_TYPES, WID_VS_BUFFERING, PANES, ADAPTWID)
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome"]
