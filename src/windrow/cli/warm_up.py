"""Small queries of each kind, so that Spark loads the classes it needs: what ``windrow doctor --warm`` runs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.api.functions import count, max
from windrow.api.sources import read_parquet, stream
from windrow.api.stream import Stream
from windrow.errors import PlanError
from windrow.hosts.spark.archive import OPTIONS
from windrow.hosts.spark.session import session
from windrow.hosts.spark.start import start
from windrow.sinks.parquet import ParquetBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = pl.DataFrame({"t": range(100), "k": [f"k{i % 7}" for i in range(100)]})


def in_another_process(java_options: str) -> None:
    """Run them in a process of their own: only a JVM that ends writes an archive."""
    command = [sys.executable, "-m", "windrow.cli.warm_up", java_options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise PlanError(f"Spark failed while it warmed up: {(done.stdout + done.stderr)[-2000:]}")


def main(java_options: str) -> None:
    """Run them under a Java with these options, and wait until that has ended."""
    spark = session("windrow-warm-up", **{OPTIONS: java_options})
    gateway: Any = spark.sparkContext._gateway
    with tempfile.TemporaryDirectory() as folder:
        _run(spark, Path(folder))
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the sign for the JVM to end
    gateway.proc.wait()


def _run(spark: SparkSession, folder: Path) -> None:
    (folder / "in").mkdir()
    ROWS.write_parquet(folder / "in" / "0.parquet")
    path = str(folder / "in")
    reader = spark.readStream.schema("t BIGINT, k STRING").parquet(path)
    frames = {
        "frame": _windows(stream(reader, progress="t", slack=0, name="s")),
        "files": _windows(read_parquet(path, progress="t", slack=0, streaming=True, name="s")),
    }
    for name, frame in frames.items():
        writer = frame.writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"{name}-state"))
        start(writer.format("parquet").option("path", str(folder / name))).awaitTermination()
        start(writer.foreachBatch(ParquetBatches(str(folder / f"{name}-batches")))).awaitTermination()
    _windows(stream(spark.read.parquet(path), progress="t", name="s")).collect()


def _windows(source: Stream) -> DataFrame:
    return source.window(20, 10).group_by("k").agg(n=count(), top=max("t")).to_spark()


if __name__ == "__main__":
    main(sys.argv[1])
