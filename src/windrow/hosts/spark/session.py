"""Spark sessions set up for Windrow."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.errors import PlanError
from windrow.hosts.spark import java, shims
from windrow.hosts.spark.archive import OPTIONS, Archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
STATE_PARTITIONS = "spark.sql.streaming.internal.stateStore.partitions"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
NO_LIMIT = 2**31 - 1  # how Spark writes it
SHUFFLE_PARTITIONS, SPARKS_DEFAULT = "spark.sql.shuffle.partitions", "200"
# What every stateful query of ours needs or is much faster with; applies to sessions we did not make, too.
NEEDED = {
    STATE_STORE: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Spark's usual manager of checkpoint files starts a process (readlink) for each look at a local file: some fifty in
# every micro-batch, a third of its time. This one, its own for file systems without that interface, starts none.
ON_ONE_MACHINE = {FILE_MANAGER: BY_FILE_SYSTEM}


def session(
    app: str = "windrow", master: str | None = None, log: str | Path | None = None, **conf: Any
) -> SparkSession:
    """A Spark session with good defaults for Windrow: ``local[*]`` unless ``master`` or SPARK_MASTER says otherwise.

    Any session will do; this one has one shard per core, the RocksDB state store, and settings that make rows cheap to
    move to Python and checkpoint files cheap to write.
    ``log`` is a file for what Spark and its workers print; without it they print to stderr.
    """
    command = java.ensure()
    from pyspark.sql import SparkSession

    master = master or os.environ.get("SPARK_MASTER", "local[*]")
    # Workers must be this very Python, with Windrow and its libraries, not the first one on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", shims.python() if master.startswith("local") else sys.executable)
    cores = os.cpu_count() or 1
    settings: dict[str, object] = {
        SHUFFLE_PARTITIONS: cores,
        # With a limit in bytes Spark adds up the size of the batch after every row, which takes longer than to move it.
        # Its limit of 10,000 rows stays.
        "spark.sql.execution.arrow.maxBytesPerBatch": NO_LIMIT,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # not the 96-bit type others have given up
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        **NEEDED,
        **(ON_ONE_MACHINE if master.startswith("local") else {}),
        **conf,
    }
    if options := _java_options(str(conf.get(OPTIONS, "")), command):
        settings[OPTIONS] = options
    builder = SparkSession.builder.appName(app).master(master)
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    if log is None:
        return builder.getOrCreate()
    with _stderr_to(log):  # the JVM keeps the stderr that it was started with
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _java_options(given: str, command: str) -> str:
    """The options of the JVM, with its archive of classes, if there is one."""
    return given if "Archive" in given else f"{given} {Archive(command).options()}".strip()


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


def prepare(spark: SparkSession, shards: int) -> None:
    """Give a session that was created elsewhere what a stateful query needs, where it still has Spark's defaults.

    The state store must be RocksDB. One state partition per shard: Spark's 200 shuffle partitions would mean 200 tasks
    in every micro-batch, of which all but a few have nothing to do. Only stateful streaming queries see this setting.
    """
    if spark.conf.get(STATE_STORE).endswith("HDFSBackedStateStoreProvider"):
        for key, value in NEEDED.items():
            spark.conf.set(key, value)
    if spark.conf.get(SHUFFLE_PARTITIONS) == SPARKS_DEFAULT:
        spark.conf.set(STATE_PARTITIONS, shards)


def shard_count(spark: SparkSession, shards: int | None) -> int:
    """How many shards: as asked, else as many as Spark has shuffle partitions; if those are not set, one per core."""
    if shards is None:
        partitions = spark.conf.get(SHUFFLE_PARTITIONS)
        shards = int(spark.sparkContext.defaultParallelism if partitions == SPARKS_DEFAULT else partitions)
    check_shards(shards)
    return shards


def check_shards(shards: int) -> None:
    """State has at least one part."""
    if shards < 1:
        raise PlanError(f"shards must be at least 1, not {shards}")
