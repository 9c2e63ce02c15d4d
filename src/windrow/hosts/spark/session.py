"""Spark sessions set up for Windrow."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.hosts.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
# What every stateful query of ours needs or is much faster with; applies to sessions we did not make, too.
NEEDED = {
    STATE_STORE: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(
    app: str = "windrow", master: str | None = None, log: str | Path | None = None, **conf: Any
) -> SparkSession:
    """A Spark session with good defaults for Windrow: ``local[*]`` unless ``master`` or SPARK_MASTER says otherwise.

    Any session will do; this one has one shard per core, the RocksDB state store and large Arrow batches. ``log`` is
    a file for what Spark and its workers print; without it they print to stderr.
    """
    java.ensure()
    # Workers must be this very Python, with Windrow and its libraries, not the first one on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    cores = os.cpu_count() or 1
    settings: dict[str, object] = {
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 200_000,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # not the 96-bit type others have given up
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        **NEEDED,
        **conf,
    }
    builder = SparkSession.builder.appName(app).master(master or os.environ.get("SPARK_MASTER", "local[*]"))
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    if log is None:
        return builder.getOrCreate()
    with _stderr_to(log):  # the JVM keeps the stderr that it was started with
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _stderr_to(path: str | Path) -> Iterator[None]:
    sys.stderr.flush()
    own = os.dup(2)
    with Path(path).open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def prepare(spark: SparkSession) -> None:
    """Give a session the state store that stateful Python operators need, where it still has Spark's default."""
    for key, value in NEEDED.items():
        if key == STATE_STORE and not spark.conf.get(key, "").endswith("HDFSBackedStateStoreProvider"):
            continue  # a provider somebody chose
        spark.conf.set(key, value)
