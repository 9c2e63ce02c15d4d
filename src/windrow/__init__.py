"""Windrow: continuous window queries over out-of-order streams, on Apache Spark."""

import importlib
from typing import TYPE_CHECKING, Any

from windrow._threads import limit_in_workers

limit_in_workers()

from windrow.api import promise  # noqa: E402
from windrow.api.functions import (  # noqa: E402
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
from windrow.api.kafka import read_kafka  # noqa: E402
from windrow.api.multi_join import multi_join  # noqa: E402
from windrow.api.sequences import no, seq, some  # noqa: E402
from windrow.api.sources import (  # noqa: E402
    read_arrow,
    read_parquet,
    stream,
)
from windrow.api.stream import Stream  # noqa: E402
from windrow.api.tables import table  # noqa: E402
from windrow.api.together import together  # noqa: E402
from windrow.errors import (  # noqa: E402
    CheckpointError,
    DataError,
    InternalError,
    LateError,
    PlanError,
    QueryError,
    ResultError,
    WindrowError,
    WindrowWarning,
)
from windrow.logical.nodes import Statistics  # noqa: E402
from windrow.sessions import Session  # noqa: E402
from windrow.spec.spread import RingOptions  # noqa: E402
from windrow.sql.select import sql  # noqa: E402

if TYPE_CHECKING:
    from windrow.hosts.spark.checkpoint import check as check_checkpoint
    from windrow.hosts.spark.compile import bad_rows, late_rows, results
    from windrow.hosts.spark.session import session
    from windrow.hosts.spark.start import start

# What only Spark needs is imported on first use: PySpark takes a quarter of the time of everything else.
_ON_SPARK = {
    "bad_rows": ("compile", "bad_rows"),
    "check_checkpoint": ("checkpoint", "check"),
    "late_rows": ("compile", "late_rows"),
    "results": ("compile", "results"),
    "session": ("session", "session"),
    "start": ("start", "start"),
}


def __getattr__(name: str) -> Any:
    if name not in _ON_SPARK:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    module, attribute = _ON_SPARK[name]
    found = globals()[name] = getattr(importlib.import_module(f"windrow.hosts.spark.{module}"), attribute)
    return found


__version__ = "0.3.0"

__all__ = [
    "CheckpointError",
    "DataError",
    "InternalError",
    "LateError",
    "PlanError",
    "QueryError",
    "ResultError",
    "RingOptions",
    "Session",
    "Statistics",
    "Stream",
    "WindrowError",
    "WindrowWarning",
    "aggregate",
    "approx_count_distinct",
    "approx_heavy_hitters",
    "approx_quantile",
    "avg",
    "bad_rows",
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
    "multi_join",
    "no",
    "promise",
    "quantile",
    "read_arrow",
    "read_kafka",
    "read_parquet",
    "results",
    "seq",
    "session",
    "some",
    "sql",
    "start",
    "stddev",
    "stddev_pop",
    "stream",
    "sum",
    "table",
    "together",
    "top_k",
    "udf",
    "var",
    "var_pop",
]
