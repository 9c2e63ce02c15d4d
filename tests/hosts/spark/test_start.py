"""A query is started again when a Python worker of Spark was too slow, and only then. Issue 11."""

import os
import subprocess
import sys

import polars as pl
import pyspark
import pytest
from pyspark.errors import StreamingQueryException

import windrow as wr
from windrow.hosts.spark import shims
from windrow.hosts.spark.start import AGAIN, Restarted
from windrow.sinks.parquet import read_committed

SLOW = StreamingQueryException("[STREAM_FAILED] .. Python worker failed to connect back. SQLSTATE: XXKST")
OTHER = StreamingQueryException("[STREAM_FAILED] .. the checkpoint is torn")


class Query:
    """A query that ends with an error, or well, after some micro-batches."""

    def __init__(self, error, batches=0):
        self.error, self.recentProgress = error, list(range(batches))
        self.isActive = False

    def exception(self):
        return self.error

    def awaitTermination(self, timeout=None):  # noqa: N802
        if self.error is not None:
            raise self.error
        return None if timeout is None else True

    def processAllAvailable(self):  # noqa: N802
        self.awaitTermination()


def started(*queries):
    begun, said = iter(queries), []
    return Restarted(lambda: next(begun), said.append), said


WAITS = [
    lambda query: query.awaitTermination(),
    lambda query: query.processAllAvailable(),
    lambda query: query.isActive,
    lambda query: query.exception(),
]


@pytest.mark.parametrize("wait", WAITS)
def test_a_worker_that_was_too_slow_is_given_another_start_and_a_line_says_so(wait):
    query, said = started(Query(SLOW), Query(None, batches=3))
    wait(query)
    assert query.awaitTermination(5) is True
    assert query.exception() is None
    assert len(query.recentProgress) == 3
    assert ["starting the query again (1 of 4)" in line for line in said] == [True]


@pytest.mark.parametrize("failed", [Query(OTHER), Query(SLOW, batches=1)])
@pytest.mark.parametrize("wait", WAITS[:2])
def test_any_other_error_and_one_after_a_commit_are_told(failed, wait):
    query, said = started(failed, Query(None))
    with pytest.raises(StreamingQueryException):
        wait(query)
    assert query.exception() is failed.error
    assert not query.isActive
    assert said == []


def test_it_gives_up_after_a_few_starts():
    query, said = started(*(Query(SLOW) for _ in range(AGAIN + 1)), Query(None))
    with pytest.raises(StreamingQueryException, match="failed to connect back"):
        query.awaitTermination()
    assert len(said) == AGAIN


@pytest.mark.spark
def test_spark_fails_so_and_the_second_start_makes_the_results(spark, tmp_path, monkeypatch, capsys):
    """The first process for the stateful operator never connects. Every start of a test is one of ``wr.start``.

    The workers are those that a user has, who has none of tests/ready_workers.py: each imports what it needs.
    """
    slow = tmp_path / "slow-python"
    slow.write_text(
        f"#!/bin/sh\ncase \"$*\" in *driver_worker*) mkdir '{tmp_path}/tried' 2>/dev/null && exit 1;; esac\n"
        f'exec "{shims.python()}" "$@"\n'
    )
    slow.chmod(0o755)
    (tmp_path / "in").mkdir()
    pl.DataFrame({"t": range(100)}).write_parquet(tmp_path / "in" / "0.parquet")
    source = spark.readStream.schema("t BIGINT").parquet(str(tmp_path / "in"))
    with monkeypatch.context() as patched:
        patched.setattr(spark.sparkContext, "pythonExec", str(slow))
        counted = wr.stream(source, progress="t", slack=0).window(10).agg(n=wr.count()).to_spark(shards=1)
    writer = counted.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert capsys.readouterr().err.count("starting the query again") == 1
    assert read_committed(tmp_path / "out")["n"].sum() == 90


def test_workers_have_pyspark_with_its_bytecode_and_not_the_zip():
    """Spark's zip has no bytecode: each process would compile PySpark anew, within the 10 s."""
    home = os.path.dirname(pyspark.__file__)
    lib = f"{home}/python/lib"
    zips = [f"{lib}/{name}" for name in sorted(os.listdir(lib))]
    given = os.pathsep.join([*zips, "/one of two", f"{home}/jars/spark-core.jar", "/two*"])
    show = "import sys, pyspark; print(pyspark.__file__, sys.executable, sys.path[1:3], sep='\\n')"
    env = {**os.environ, "PYTHONPATH": given}
    found = subprocess.run([shims.python(), "-c", show], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == [pyspark.__file__, sys.executable, "['/one of two', '/two*']"]


def test_another_spark_than_the_installed_one_keeps_its_own_pyspark(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert shims.python() == sys.executable


def test_a_script_is_never_put_where_somebody_else_can_write(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"windrow-x-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    script = shims.write("x", "run", "#!/bin/sh\necho ran\n")
    assert script.parent.parent.parent == tmp_path
    assert not any((tmp_path / "elsewhere").iterdir())
    assert script.parents[1].stat().st_mode & 0o777 == 0o700
    assert subprocess.run([script], capture_output=True, text=True, check=True).stdout == "ran\n"
