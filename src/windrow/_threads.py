"""One Polars thread per Spark task: Spark already runs a task per core. Must be imported before Polars."""

import os
import sys


def limit_in_workers() -> None:
    """Set Polars' thread count where this process is a PySpark worker, and leave it alone everywhere else."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name in ("pyspark.daemon", "pyspark.worker"):
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
