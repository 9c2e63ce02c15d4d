"""Sessions that somebody else made work too, and shards are spread over as many tasks."""

import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.session import BY_FILE_SYSTEM, FILE_MANAGER, NO_LIMIT, ROCKSDB, STATE_STORE

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@pytest.fixture
def foreign(spark):
    """A session with Spark's own defaults."""
    session = spark.newSession()
    session.conf.set(STATE_STORE, HDFS)
    session.conf.set("spark.sql.shuffle.partitions", 200)
    return session


@pytest.mark.spark
def test_a_session_with_sparks_defaults_gets_what_a_query_needs(foreign, tmp_path):
    (tmp_path / "in").mkdir()
    pl.DataFrame({"t": range(100), "k": [str(i % 7) for i in range(100)]}).write_parquet(tmp_path / "in" / "0.parquet")
    source = foreign.readStream.schema("t BIGINT, k STRING").parquet(str(tmp_path / "in"))
    query = wr.stream(source, progress="t", slack=0).window(range=10).group_by("k").agg(n=wr.count()).to_spark(shards=3)
    assert foreign.conf.get(STATE_STORE) == ROCKSDB
    assert foreign.conf.get("spark.sql.shuffle.partitions") == "200"  # other queries keep what they had
    writer = query.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    running = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    running.awaitTermination()
    [operator] = running.recentProgress[-1].stateOperators
    assert operator.numShufflePartitions == 3
    assert foreign.read.parquet(str(tmp_path / "out")).groupBy().sum("n").collect()[0][0] == 90
    partitions = [p for p in (tmp_path / "state" / "state" / "0").iterdir() if p.name.isdigit()]
    holding = [p for p in partitions if sum(f.stat().st_size for f in p.glob("*.changelog")) > 200]
    assert len(holding) == len(partitions) == 3  # every shard in a partition, and so a task, of its own


@pytest.mark.spark
def test_the_number_of_shards_must_make_sense(spark):
    source = spark.readStream.format("rate").load()
    query = wr.stream(source, progress="timestamp", slack=0).window(range="1 minute").agg(n=wr.count())
    with pytest.raises(wr.PlanError, match="at least 1, not 0"):
        query.to_spark(shards=0)


@pytest.mark.spark
def test_what_makes_batches_and_checkpoints_cheap_is_in_force(spark):
    assert spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == str(NO_LIMIT)
    assert spark.conf.get(FILE_MANAGER) == BY_FILE_SYSTEM
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    path = spark._jvm.org.apache.hadoop.fs.Path("file:///tmp")
    package = spark._jvm.org.apache.spark.sql.execution.streaming.checkpointing
    manager = package.CheckpointFileManager.create(path, configuration)
    assert manager.getClass().getName() == BY_FILE_SYSTEM  # Spark finds the class, and takes it
