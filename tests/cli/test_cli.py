"""The command line, without Spark: usage, errors and exit codes; with Spark: one run of each command."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from windrow.cli import app, doctor
from windrow.cli.run import reason
from windrow.cli.sources import Options, parts
from windrow.errors import QueryError, WindrowError

run = CliRunner().invoke


def test_help_shows_an_example():
    assert "windrow run top.sql --source packets=parquet:" in run(app, ["run", "--help"]).output.replace("\n", " ")


def test_doctor_finds_everything_here():
    result = run(app, ["doctor", "--json"])
    found = json.loads(result.output)
    assert result.exit_code == 0
    assert found["ok"]
    assert {"Python", "Java", "pyspark", "pyarrow", "memory", "disk"} <= {f["what"] for f in found["findings"]}


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    monkeypatch.setattr(doctor.java, "find", lambda: None)
    result = run(app, ["doctor", "--json"])
    assert result.exit_code == 1
    missing = {f["what"]: f["advice"] for f in json.loads(result.output)["findings"] if not f["ok"]}
    assert "pip install no-such-package" in missing["no-such-package"]
    assert "missing" in run(app, ["doctor"]).output


@pytest.mark.parametrize("given", ["packets", "packets=parquet", "=parquet:x", "packets=xml:x"])
def test_a_source_that_is_not_name_format_path_is_refused(given):
    with pytest.raises(QueryError, match="--source"):
        parts(given)


def test_options_for_one_source_win_over_those_for_all():
    options = Options(["ts", "b=t"], slack=["3 seconds", "a=1 hour"])
    rest = {"punctuation": None, "parse": None, "row_num": None, "row_slack": 0}
    assert options.of("a") == {"progress": "ts", "slack": "1 hour", **rest}
    assert options.of("b")["progress"] == "t"


def test_a_missing_query_file_is_an_error_with_exit_code_one():
    result = run(app, ["explain", "nope.sql", "--source", "p=parquet:x", "--progress", "ts"])
    assert isinstance(result.exception, WindrowError)
    assert "nope.sql" in str(result.exception)


def test_bench_lists_and_refuses():
    assert "spark-sliding" in run(app, ["bench", "--list"]).output
    assert isinstance(run(app, ["bench", "nope"]).exception, QueryError)


def test_our_reason_is_found_in_what_spark_wraps_around_it():
    wrapped = Exception("[STREAM_FAILED] x\n  File y\nwindrow.errors.CheckpointError: shards:\n  now: 3\n SQLSTATE: 1")
    assert reason(wrapped) == "shards:\n  now: 3"
    assert reason(Exception("other")) == "other"


@pytest.mark.spark
def test_explain_and_run_over_files(spark, tmp_path):
    (tmp_path / "p").mkdir()
    rows = {"ts": [1, 2, 11, None, 30], "k": ["a", "b", "a", "a", "b"]}
    pl.DataFrame(rows).write_parquet(tmp_path / "p" / "0.parquet")
    (tmp_path / "q.sql").write_text("SELECT k, count(*) AS n FROM p [RANGE 10, SLIDE 10, WA ts] GROUP BY k")
    common = [str(tmp_path / "q.sql"), "--source", f"p=parquet:{tmp_path / 'p'}", "--progress", "ts", "--slack", "5"]
    explained = run(app, ["explain", *common])
    assert explained.exit_code == 0, explained.output
    for words in ("map side", "exchange by hash of k", "shard (transformWithState"):
        assert words in explained.output
    out, state, bad = tmp_path / "out.jsonl", tmp_path / "state", tmp_path / "bad.jsonl"
    where = ["--sink", f"jsonl:{out}", "--checkpoint", str(state), "--bad-rows", f"jsonl:{bad}", "--once", "--json"]
    result = run(app, ["run", *common, *where])
    assert result.exit_code == 0, result.output
    totals = json.loads(result.stdout.strip().split("\n")[-1])
    assert (totals["rows_in"], totals["rows_bad"], totals["rows_late"], totals["rows_out"]) == (5, 1, 0, 3)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted((r["k"], r["window_end"], r["n"]) for r in rows) == [("a", 10, 1), ("a", 20, 1), ("b", 10, 1)]
    assert json.loads(bad.read_text())["reason"] == "the progress value is NULL"
