"""Checkpoints of version 0.2.0 are refused, with the reason."""

import re
import zipfile
from pathlib import Path

import polars as pl
import pytest
from pyspark.errors import StreamingQueryException

import windrow as wr
from windrow.cli.run import reason
from windrow.hosts.spark.place import move

pytestmark = pytest.mark.spark
DATA = Path(__file__).parents[2] / "data"
ROWS = pl.DataFrame({"t": [(i * 7) % 50 + i // 50 * 50 for i in range(200)], "k": ["abc"[i % 3] for i in range(200)]})


def queries(source):
    s = wr.stream(source, progress="t", slack=60, name="s")
    return {
        "sliding": s.window(20, 10).group_by("k").agg(n=wr.count(), top=wr.max("t")),
    }


def ran(spark, folder, name, rows, file):
    (folder / "in").mkdir(parents=True)
    rows.write_parquet(folder / "in" / file)
    source = spark.readStream.schema("t BIGINT, k STRING").parquet(str(folder / "in"))
    writer = queries(source)[name].to_spark(2).writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "state")).trigger(availableNow=True)
    writer.start().awaitTermination()


def write(spark, folder):
    """What made the files in tests/data."""
    ran(spark, folder / "sliding", "sliding", ROWS[:100], "first.parquet")


def restored(tmp_path, name):
    """The checkpoint at another place than the one it was written at, as on any other machine."""
    with zipfile.ZipFile(DATA / f"{name}-0.2.0.zip") as archive:
        archive.extractall(tmp_path)
    move(f"/tmp/mkc/{name}/state", tmp_path / "state")
    for log in (tmp_path / "state" / "sources" / "0").glob("[0-9]*"):  # Spark keeps the paths of the files it has read
        log.write_text(re.sub(r"file:///.*?/in/", f"file://{tmp_path}/in/", log.read_text()))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    return tmp_path


def test_a_checkpoint_of_another_format_is_refused_with_the_reason(spark, tmp_path):
    with pytest.raises(StreamingQueryException) as error:
        ran(spark, restored(tmp_path, "sliding"), "sliding", ROWS[100:], "second.parquet")
    message = reason(error.value)
    assert "this checkpoint has format 1, and this version of Windrow writes format 2" in message
    assert "new checkpoint folder" in message
