"""The sessions that spark-sliding compares: those that are not ours have nothing of ours."""

import pytest

from windrow.bench.spark_sliding import VARIANTS, sessions
from windrow.hosts.spark.session import FILE_MANAGER, SHUFFLE_PARTITIONS, STATE_STORE

pytestmark = pytest.mark.spark
OURS = (
    STATE_STORE,
    FILE_MANAGER,
    "spark.sql.execution.arrow.maxBytesPerBatch",
    "spark.sql.parquet.outputTimestampType",
)


def test_a_foreign_session_and_spark_as_it_comes_have_sparks_defaults(spark):
    made = sessions(spark)
    assert set(made) == set(VARIANTS)
    assert all(made[way] is spark for way in ("windrow", "source", "spark_rocksdb"))
    for way in ("foreign", "spark_default"):
        other = made[way]
        assert other is not spark
        assert not set(OURS) & set(other.conf.getAll)
        assert other.conf.get(STATE_STORE).endswith("HDFSBackedStateStoreProvider")
    assert made["foreign"].conf.get(SHUFFLE_PARTITIONS) == "200"
    assert made["spark_default"].conf.get(SHUFFLE_PARTITIONS) == spark.conf.get(SHUFFLE_PARTITIONS)
    assert set(OURS) <= set(spark.conf.getAll)
    assert spark.conf.get(STATE_STORE).endswith("RocksDBStateStoreProvider")
