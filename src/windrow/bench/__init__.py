"""Benchmarks and the papers' experiments, one file each. EXPERIMENTS lists them by name."""

from windrow.bench.adaptwid import ADAPTWID
from windrow.bench.agg_limit import AGG_LIMIT
from windrow.bench.agg_skew import AGG_SKEW
from windrow.bench.asof import ASOF
from windrow.bench.asof_idle import ASOF_IDLE
from windrow.bench.asym_crossover import ASYM_CROSSOVER
from windrow.bench.asym_full import ASYM_FULL
from windrow.bench.band_disorder import BAND_DISORDER
from windrow.bench.block_disorder import BLOCK_DISORDER
from windrow.bench.break_nodes import BREAK_NODES
from windrow.bench.burst import BURST
from windrow.bench.eqg import EQG
from windrow.bench.experiment import Experiment, Outcome
from windrow.bench.flush import FLUSH
from windrow.bench.growth import GROWTH
from windrow.bench.inorder_analytic import INORDER_ANALYTIC
from windrow.bench.inorder_concurrency import INORDER_CONCURRENCY
from windrow.bench.inorder_rate import INORDER_RATE
from windrow.bench.join_flips import JOIN_FLIPS
from windrow.bench.join_late import JOIN_LATE
from windrow.bench.join_limit import JOIN_LIMIT
from windrow.bench.join_skew import JOIN_SKEW
from windrow.bench.joint_punctuation import JOINT_PUNCTUATION
from windrow.bench.many_queries import MANY_QUERIES
from windrow.bench.memory_fixed import MEMORY_FIXED
from windrow.bench.memory_variable import MEMORY_VARIABLE
from windrow.bench.oa_join import OA_JOIN
from windrow.bench.one_tuple import ONE_TUPLE
from windrow.bench.optimizer_grid import OPTIMIZER_GRID
from windrow.bench.panes import PANES
from windrow.bench.ring_adapt import RING_ADAPT
from windrow.bench.ring_atr import RING_ATR
from windrow.bench.ring_ctr import RING_CTR
from windrow.bench.ring_length import RING_LENGTH
from windrow.bench.ring_speed import RING_SPEED
from windrow.bench.ring_table import RING_TABLE
from windrow.bench.schedule import SCHEDULE
from windrow.bench.schedule_overhead import SCHEDULE_OVERHEAD
from windrow.bench.shed_rates import SHED_RATES
from windrow.bench.slide_by_tuple import SLIDE_BY_TUPLE
from windrow.bench.spark_join import SPARK_JOIN
from windrow.bench.spark_sliding import SPARK_SLIDING
from windrow.bench.union_skew import UNION_SKEW
from windrow.bench.wid_vs_buffering import WID_VS_BUFFERING
from windrow.bench.window_types import WINDOW_TYPES

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e
    for e in (
        SPARK_SLIDING,
        SPARK_JOIN,
        WINDOW_TYPES,
        AGG_LIMIT,
        ONE_TUPLE,
        JOIN_LIMIT,
        ASOF,
        GROWTH,
        SCHEDULE_OVERHEAD,
        MANY_QUERIES,
        BREAK_NODES,
        RING_SPEED,
        WID_VS_BUFFERING,
        BAND_DISORDER,
        BLOCK_DISORDER,
        PANES,
        ADAPTWID,
        SLIDE_BY_TUPLE,
        FLUSH,
        UNION_SKEW,
        AGG_SKEW,
        OA_JOIN,
        JOIN_SKEW,
        JOIN_LATE,
        JOINT_PUNCTUATION,
        ASYM_CROSSOVER,
        ASYM_FULL,
        JOIN_FLIPS,
        INORDER_ANALYTIC,
        INORDER_CONCURRENCY,
        INORDER_RATE,
        OPTIMIZER_GRID,
        SHED_RATES,
        MEMORY_FIXED,
        MEMORY_VARIABLE,
        ASOF_IDLE,
        RING_LENGTH,
        RING_ADAPT,
        SCHEDULE,
        EQG,
        BURST,
        RING_ATR,
        RING_CTR,
        RING_TABLE,
    )
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome"]
