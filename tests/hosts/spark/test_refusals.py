"""What a streaming query cannot do is refused before anything runs, by every way to ask for it. Issue 11."""

import polars as pl
import pytest
from typer.testing import CliRunner

import windrow as wr
from windrow.cli import app

run = CliRunner().invoke
SIDE = "SELECT k, count(*) AS n FROM s [TUMBLING 10, WA t, LATE SIDE] GROUP BY k"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    pl.DataFrame({"t": [1, 2, 15, 3], "k": ["a", "b", "a", "b"]}).write_parquet(tmp_path / "in" / "0.parquet")
    return tmp_path


def endless(folder, **promises):
    return wr.read_parquet(folder / "in", progress="t", streaming=True, name="s", **promises)


WINDOWS = {
    "sliding": lambda s: s.window(10, 5).late("side"),
    "sessions": lambda s: s.session(5).late("side"),
    "landmark": lambda s: s.landmark(5).late("side"),
    "each row": lambda s: s.each_row(5).late("side"),
    "inner": lambda s: s.window(10).late("side").agg(n=wr.count()).window(20),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_late_side_needs_a_place_for_the_rows(folder, name):
    query = WINDOWS[name](endless(folder, slack=0)).agg(m=wr.count())
    with pytest.raises(wr.PlanError, match=r"to_spark\(with_late=True\).*wr.late_rows\(df\).*--late-rows"):
        query.to_spark()


def test_a_finite_source_has_no_late_rows_to_lose(folder):
    for slack in (None, 0):
        s = wr.read_parquet(folder / "in", progress="t", name="s", slack=slack)
        assert wr.sql(SIDE, s=s).collect().rows() == [("a", 0, 10, 1), ("b", 0, 10, 2), ("a", 10, 20, 1)]


@pytest.mark.spark
def test_a_finite_dataframe_has_none_either_and_a_stream_is_refused(spark, folder):
    batch = spark.read.parquet(str(folder / "in"))
    found = wr.sql(SIDE, s=wr.stream(batch, progress="t", slack=0)).collect()
    assert found.rows() == [("a", 0, 10, 1), ("b", 0, 10, 2), ("a", 10, 20, 1)]
    source = spark.readStream.schema(batch.schema).parquet(str(folder / "in"))
    query = wr.sql(SIDE, s=wr.stream(source, progress="t", slack=0))
    with pytest.raises(wr.PlanError, match="LATE SIDE"):
        query.to_spark()
    assert query.to_spark(with_late=True).isStreaming
    with pytest.raises(wr.PlanError, match=r"stream 's' has no end.*spark\.read instead of"):
        query.collect()
    (folder / "q.sql").write_text(SIDE)
    common = [str(folder / "q.sql"), "--source", f"s=parquet:{folder / 'in'}", "--progress", "t", "--slack", "0"]
    refused = run(app, ["run", *common, "--once"]).exception
    assert isinstance(refused, wr.PlanError)
    assert "--late-rows" in str(refused)


def test_a_stream_of_files_has_no_end_to_collect_at(folder):
    s = endless(folder, slack=0)
    both = wr.together(a=s.window(10).agg(n=wr.count()), b=s.window(20).agg(n=wr.count()))
    for query in (s, s.window(10).agg(n=wr.count()), both):
        with pytest.raises(wr.PlanError, match=r"stream 's' has no end.*to_spark\(\)\.writeStream.*streaming=False"):
            query.collect()


def test_explain_refuses_what_would_be_refused_when_it_runs(folder):
    query = endless(folder).window(10).agg(n=wr.count())
    with pytest.raises(wr.PlanError, match="makes no promises") as run_error:
        query.to_spark()
    with pytest.raises(wr.PlanError) as explain_error:
        query.explain()
    assert str(explain_error.value) == str(run_error.value)
    assert "Physical plan" in endless(folder, slack=0).window(10).agg(n=wr.count()).explain()


@pytest.mark.parametrize("shards", [0, -1])
def test_no_shards_at_all_are_refused(folder, shards):
    query = endless(folder, slack=0).window(10).agg(n=wr.count())
    with pytest.raises(wr.PlanError, match=f"at least 1, not {shards}"):
        query.explain(shards=shards)
    (folder / "q.sql").write_text(SIDE)
    common = [str(folder / "q.sql"), "--source", f"s=parquet:{folder / 'in'}", "--progress", "t", "--slack", "0"]
    for command in ("explain", "run"):
        result = run(app, [command, *common, f"--shards={shards}"])
        assert result.exit_code == 2
        assert "--shards" in result.output


def test_no_files_at_all_in_a_micro_batch_are_refused(folder):
    result = run(app, ["run", "q.sql", "--source", "s=json:in", "--progress", "t", "--max-files", "0"])
    assert result.exit_code == 2
    assert "--max-files" in result.output
