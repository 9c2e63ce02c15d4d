"""What `import windrow` brings in: nothing that only Spark, the command line or a benchmark needs. Issues 11 and 12."""

import subprocess
import sys

import polars as pl
import pytest

import windrow
from windrow.api.query import Query, Source

HEAVY = ("pyspark", "pandas", "typer", "rich", "matplotlib", "grpc", "numba", "datasketches")
LOADED = f"print([name for name in {HEAVY} if name in sys.modules])"
BUILT = """
s = windrow.stream([{"t": 1, "k": "a"}], progress="t", slack=1)
s.window(4, 2).group_by("k").agg(n=windrow.count(), about=windrow.approx_count_distinct("t")).explain()
windrow.sql("SELECT k, median(t) AS m FROM s [RANGE 4, SLIDE 2, WA t] GROUP BY k", s=s).explain()
"""
NO_JVM = """
import pyspark.java_gateway
def refused(*args, **named):
    raise AssertionError("a JVM was started")
pyspark.java_gateway.launch_gateway = pyspark.core.context.launch_gateway = refused
from windrow.cli import app
app(["explain", *sys.argv[1:]])
"""


def python(text, *arguments, **environment):
    command = [sys.executable, "-c", f"import sys\n{text}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment or None).stdout


@pytest.mark.parametrize("after", ["", BUILT], ids=["imported", "explained"])
def test_no_spark_is_loaded_by_an_import_nor_by_a_query_in_process(after):
    assert python(f"import windrow\n{after}\n{LOADED}").strip() == "[]"


def test_explain_over_files_starts_no_jvm(tmp_path, monkeypatch):
    (tmp_path / "p").mkdir()
    pl.DataFrame({"ts": [1, 2], "k": ["a", "b"]}).write_parquet(tmp_path / "p" / "0.parquet")
    query = tmp_path / "q.sql"
    query.write_text("SELECT k, count(*) AS n FROM p [RANGE 10, SLIDE 10, WA ts] GROUP BY k")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    common = (str(query), "--source", f"p=parquet:{tmp_path / 'p'}", "--progress", "ts", "--slack", "5")
    first = python(NO_JVM, *common)
    assert "exchange by hash of k" in first
    kept = tmp_path / "state" / "windrow" / "plan.json"  # what a checkpoint has kept is read without a JVM, too
    kept.parent.mkdir(parents=True)
    kept.write_text("{")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        python(NO_JVM, *common, "--checkpoint", str(tmp_path / "state"))
    assert "plan.json is torn" in failed.value.stderr


def test_collect_on_spark_plans_once(monkeypatch):
    class Frame:
        isStreaming, rows = False, pl.DataFrame({"t": [1]})  # noqa: N815

        def toArrow(self):  # noqa: N802
            return self.rows.to_arrow()

    planned = []
    monkeypatch.setattr("windrow.hosts.spark.compile.to_spark", lambda *given: Frame())
    monkeypatch.setattr(
        "windrow.api.query.plan",
        lambda *given, plan=windrow.api.query.plan: planned.append(plan(*given)) or planned[-1],
    )
    node = windrow.stream([{"t": 1}], progress="t", name="s").node
    assert Query(node, {"s": Source(Frame(), True, pl.DataFrame())}).collect().rows() == [(1,)]
    assert len(planned) == 1


def test_every_public_name_is_there():
    assert [name for name in windrow.__all__ if not hasattr(windrow, name)] == []
    assert not hasattr(windrow, "nothing_of_this_name")
