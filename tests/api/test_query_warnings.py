"""Warnings of the Python API: at the line of the caller, filterable, and hints only in explain."""

import warnings
from datetime import datetime, timedelta

import polars as pl
import pytest

import windrow as wr
from windrow.api.warned import warnings as warnings_of
from windrow.hosts.spark import compile
from windrow.hosts.spark.kept import Kept
from windrow.hosts.warnings import Watching

SECONDS = [{"t": 1_704_103_200 + n} for n in range(100)]


def misread(length=60_000):
    return wr.stream(SECONDS, "t", slack=0, name="s").window(length).agg(n=wr.count())


@pytest.mark.parametrize("run", [lambda q: q.collect(), lambda q: q.run()], ids=["collect", "run"])
def test_whoever_runs_a_query_is_warned_where_he_does_it(run):
    with pytest.warns(wr.WindrowWarning, match="looks like seconds since 1970, and a window of 60000 is 16.7") as found:
        run(misread())
    assert [w.filename for w in found] == [__file__]


def test_whoever_runs_it_on_spark_is_warned_as_well(tmp_path, monkeypatch):
    pl.DataFrame(SECONDS).write_parquet(tmp_path / "0.parquet")
    query = wr.read_parquet(tmp_path, "t", name="s").window(60_000).agg(n=wr.count())
    monkeypatch.setattr(compile, "to_spark", lambda *_: "a DataFrame")
    with pytest.warns(wr.WindrowWarning, match="write 60") as found:
        assert query.to_spark() == "a DataFrame"
    assert [w.filename for w in found] == [__file__]


def test_warnings_can_be_filtered():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=wr.WindrowWarning)
        assert misread().collect().height > 0


def test_explain_shows_them_and_warns_nobody():
    shown = misread().explain()
    assert shown.splitlines()[-2] == "Warnings"
    assert shown.splitlines()[-1].startswith("  warning: Column t of source `s` looks like seconds since 1970")
    assert "Warnings" not in misread(60).explain()


def test_a_hint_is_shown_and_not_warned_of(tmp_path):
    pl.DataFrame({"ts": [datetime(2024, 1, 1) + timedelta(seconds=n) for n in range(9)]}).write_parquet(
        tmp_path / "0.parquet"
    )
    endless = wr.read_parquet(tmp_path, "ts", slack=0, name="s", streaming=True).window("5 seconds").agg(n=wr.count())
    assert "  hint: Source `s` has a slack of zero" in endless.explain()
    now = wr.read_parquet(tmp_path, "ts", slack=0, name="s").window("5 seconds").agg(n=wr.count())
    assert "hint" not in now.explain()
    assert now.collect().height == 2


def test_files_are_sampled_for_warnings_too(tmp_path):
    frame = pl.DataFrame({"ts": [datetime(1970, 1, 20, 17, 20) + timedelta(milliseconds=n) for n in range(99)]})
    frame.write_parquet(tmp_path / "0.parquet")
    query = wr.read_parquet(tmp_path, "ts", name="s").window("5 seconds").agg(n=wr.count())
    with pytest.warns(wr.WindrowWarning, match="is from 1970-01-20 17:20:00 .* seconds since 1970 read as milli"):
        query.collect()


def test_text_is_sampled_as_it_is_parsed():
    rows = [{"at": f"1970-01-20T17:20:0{n}Z"} for n in range(9)]
    query = wr.stream(rows, "at", parse="iso8601", name="s").window("5 seconds").agg(n=wr.count())
    with pytest.warns(wr.WindrowWarning, match="1970-01-20 17:20:08Z"):
        query.collect()


def test_what_was_said_is_kept_in_the_checkpoint(tmp_path):
    """Where it can be written only through Spark, reading needs none."""
    (tmp_path / "windrow").mkdir()
    kept = Kept(None, str(tmp_path), "the query")
    assert kept.said() == set()
    (tmp_path / "windrow" / "warned.json").write_text('{"query": "the query", "keys": ["slack_of_zero s:ts"]}')
    assert kept.said() == {"slack_of_zero s:ts"}
    assert Kept(None, str(tmp_path), "another").said() == set()
    (tmp_path / "windrow" / "warned.json").write_text("{")
    assert kept.said() == set()


def test_nothing_that_was_said_is_said_again():
    query = misread()
    found = Watching().fresh(warnings_of(*query._measured(False, None), frozenset()))
    assert len(found) == 1
    assert Watching(said={each.key for each in found}).fresh(found) == []
