"""Windrow: continuous window queries over out-of-order streams, on Apache Spark."""

from windrow._threads import limit_in_workers

limit_in_workers()

from windrow.errors import (  # noqa: E402
    CheckpointError,
    DataError,
    InternalError,
    PlanError,
    QueryError,
    ResultError,
    WindrowError,
)
from windrow.hosts.spark.checkpoint import check as check_checkpoint  # noqa: E402
from windrow.hosts.spark.session import session  # noqa: E402
from windrow.language.builder import Stream, stream  # noqa: E402
from windrow.language.functions import (  # noqa: E402
    avg,
    count,
    max,
    min,
    stddev,
    stddev_pop,
    sum,
    var,
    var_pop,
)
from windrow.language.sql import sql  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "DataError",
    "InternalError",
    "PlanError",
    "QueryError",
    "ResultError",
    "Stream",
    "WindrowError",
    "avg",
    "check_checkpoint",
    "count",
    "max",
    "min",
    "session",
    "sql",
    "stddev",
    "stddev_pop",
    "stream",
    "sum",
    "var",
    "var_pop",
]
