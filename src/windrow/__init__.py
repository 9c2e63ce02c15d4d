"""Windrow: continuous window queries over out-of-order streams, on Apache Spark."""

from windrow._threads import limit_in_workers

limit_in_workers()

from windrow.errors import (  # noqa: E402
    CheckpointError,
    DataError,
    InternalError,
    LateError,
    PlanError,
    QueryError,
    ResultError,
    WindrowError,
)
from windrow.hosts.spark.checkpoint import check as check_checkpoint  # noqa: E402
from windrow.hosts.spark.compile import late_rows, results  # noqa: E402
from windrow.hosts.spark.session import session  # noqa: E402
from windrow.hosts.spark.start import start  # noqa: E402
from windrow.language import promise  # noqa: E402
from windrow.language.builder import Stream, read_arrow, read_parquet, stream, together  # noqa: E402
from windrow.language.functions import (  # noqa: E402
    aggregate,
    approx_count_distinct,
    approx_heavy_hitters,
    approx_quantile,
    avg,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    heavy_hitters,
    last,
    max,
    median,
    min,
    mode,
    quantile,
    stddev,
    stddev_pop,
    sum,
    top_k,
    udf,
    var,
    var_pop,
)
from windrow.language.sql import sql  # noqa: E402
from windrow.logical.nodes import Statistics  # noqa: E402

__version__ = "0.3.0"

__all__ = [
    "CheckpointError",
    "DataError",
    "InternalError",
    "LateError",
    "PlanError",
    "QueryError",
    "ResultError",
    "Statistics",
    "Stream",
    "WindrowError",
    "aggregate",
    "approx_count_distinct",
    "approx_heavy_hitters",
    "approx_quantile",
    "avg",
    "check_checkpoint",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "first",
    "heavy_hitters",
    "last",
    "late_rows",
    "max",
    "median",
    "min",
    "mode",
    "promise",
    "quantile",
    "read_arrow",
    "read_parquet",
    "results",
    "session",
    "sql",
    "start",
    "stddev",
    "stddev_pop",
    "stream",
    "sum",
    "together",
    "top_k",
    "udf",
    "var",
    "var_pop",
]
