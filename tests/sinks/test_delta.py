"""The Delta sink without Spark: a micro-batch is in the table once, however often and however far it was written."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

from windrow.cli.run import Both, batch_sink
from windrow.errors import CheckpointError, DataError, QueryError
from windrow.sinks.delta import Delta

KINDS = {"n": "long", "k": "string", "at": "timestamp_ntz"}


class Written:
    """What Spark's writer leaves in a folder: two files, one of them empty, and marks; or nothing but running."""

    def __init__(self, rows, ran):
        self.rows, self.ran = rows, ran

    def parquet(self, path):
        folder = Path(path)
        folder.mkdir(parents=True)
        self.rows.write_parquet(folder / "part-00000.snappy.parquet")
        self.rows.clear().write_parquet(folder / "part-00001.snappy.parquet")
        (folder / "_SUCCESS").touch()
        (folder / ".part-00000.snappy.parquet.crc").touch()
        self.ran.append("written")

    def format(self, name):
        assert name == "noop"
        return self

    def mode(self, _):
        return self

    def save(self):
        self.ran.append("run")


class Frame:
    """As much of a DataFrame as the sink uses."""

    def __init__(self, rows, query=None):
        self.rows, self.ran = rows, []
        fields = [{"name": c, "type": KINDS[c], "nullable": True, "metadata": {}} for c in rows.columns]
        self.text = json.dumps({"type": "struct", "fields": fields})
        self.write = Written(rows, self.ran)
        self.schema = self.sparkSession = self.sparkContext = self.conf = self
        self.query = query

    def json(self):
        return self.text

    def set(self, *_): ...

    def getLocalProperty(self, name):  # noqa: N802
        return self.query


def frame(*values, query="q"):
    at = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 1), eager=True)[0]
    rows = {"n": list(values), "k": [str(v) for v in values], "at": [at] * len(values)}
    return Frame(pl.DataFrame(rows, schema={"n": pl.Int64, "k": pl.String, "at": pl.Datetime("us")}), query)


def held(path):
    return sorted(pl.read_delta(str(path))["n"].to_list())


def test_batches_are_appended_and_empty_ones_leave_nothing(tmp_path):
    sink = Delta(tmp_path / "deep" / "t")
    sink(frame(), 0)
    assert held(sink.path) == []
    sink(frame(1, 2), 1)
    sink(frame(), 2)
    sink(frame(3), 3)
    assert held(sink.path) == [1, 2, 3]
    assert pl.read_delta(str(sink.path)).schema == {"n": pl.Int64, "k": pl.String, "at": pl.Datetime("us")}
    table = DeltaTable(sink.path)
    assert (table.version(), table.transaction_version("q")) == (2, 3)
    added = table.get_add_actions(flatten=True)
    assert sorted(pl.DataFrame(added)["num_records"].to_list()) == [1, 2]
    assert {p.suffix for p in sink.path.rglob("*") if p.is_file()} == {".parquet", ".json"}


def test_a_repeated_batch_runs_and_changes_nothing(tmp_path):
    Delta(tmp_path)(frame(1, 2), 0)
    again = frame(1, 2)
    Delta(tmp_path)(again, 0)
    assert again.ran == ["run"]  # or its state would not be committed
    assert held(tmp_path) == [1, 2]
    assert DeltaTable(tmp_path).version() == 1


def test_what_was_written_but_not_committed_is_not_in_the_table(tmp_path):
    sink = Delta(tmp_path)
    sink(frame(1), 0)
    killed = frame(2, 3)
    killed.write.parquet(sink.attempt(1))  # and then SIGKILL
    assert held(tmp_path) == [1]
    Delta(tmp_path)(frame(2, 3), 1)
    assert held(tmp_path) == [1, 2, 3]


def test_a_table_created_before_the_first_commit_is_used(tmp_path):
    Delta(tmp_path).table(frame().text)
    Delta(tmp_path)(frame(1), 0)
    assert held(tmp_path) == [1]


def test_two_attempts_at_once_commit_once(tmp_path):
    """A driver that was taken for dead: both looked before either committed."""
    sink = Delta(tmp_path)
    schema = frame().text
    tables, attempts = [sink.table(schema) for _ in range(2)], [sink.attempt(0) for _ in range(2)]
    for attempt in attempts:
        frame(1, 2).write.parquet(attempt)
    sink.commit(tables[0], "q", 0, attempts[0])
    with pytest.raises(CommitFailedError, match="Concurrent transaction"):
        sink.commit(tables[1], "q", 0, attempts[1])
    assert held(tmp_path) == [1, 2]


def test_several_queries_append_to_one_table(tmp_path):
    """Each has its own numbers, also where they commit at the same time."""
    sink = Delta(tmp_path)
    sink(frame(1), 7)
    old = sink.table(frame().text)
    Delta(tmp_path, app="b")(frame(2), 0)
    attempt = sink.attempt(8)
    frame(3).write.parquet(attempt)
    sink.commit(old, "q", 8, attempt)
    assert held(tmp_path) == [1, 2, 3]
    assert [DeltaTable(tmp_path).transaction_version(app) for app in ("q", "b")] == [8, 0]


def test_a_checkpoint_older_than_the_table_is_refused(tmp_path):
    Delta(tmp_path)(frame(1), 5)
    with pytest.raises(CheckpointError, match="already holds micro-batch 5 of this query and the query is at 4"):
        Delta(tmp_path)(frame(1), 4)


def test_the_record_outlives_the_log_of_single_commits(tmp_path):
    sink = Delta(tmp_path)
    for batch in range(3):
        sink(frame(batch), batch)
    table = DeltaTable(tmp_path)
    table.optimize.compact()
    table.create_checkpoint()
    again = frame(2)
    Delta(tmp_path)(again, 2)
    assert again.ran == ["run"]
    assert held(tmp_path) == [0, 1, 2]


def test_a_table_with_other_columns_is_refused(tmp_path):
    Delta(tmp_path)(frame(1), 0)
    with pytest.raises(DataError, match="at timestamp_ntz there, and n long, k string here; select and CAST"):
        Delta(tmp_path)(Frame(frame(1).rows.drop("at"), "q"), 1)


def test_a_table_whose_rules_would_be_broken_is_refused(tmp_path):
    schema = Schema.from_json(frame().text)
    DeltaTable.create(tmp_path / "parts", schema, partition_by=["k"])
    with pytest.raises(DataError, match="is partitioned by k"):
        Delta(tmp_path / "parts")(frame(1), 0)
    DeltaTable.create(tmp_path / "checked", schema).alter.add_constraint({"positive": "n > 0"})
    with pytest.raises(DataError, match=r"delta\.constraints\.positive; use another folder"):
        Delta(tmp_path / "checked")(frame(1), 0)


def test_columns_may_be_null_whatever_spark_knows_of_the_first_query(tmp_path):
    strict = json.loads(frame().text)
    items = {"type": "array", "elementType": "long", "containsNull": False}
    strict["fields"].append({"name": "l", "type": items, "nullable": False, "metadata": {"comment": "x"}})
    made = json.loads(Delta(tmp_path / "t").table(json.dumps(strict)).schema().to_json())["fields"][-1]
    assert made == {
        "name": "l",
        "type": {**items, "containsNull": True},
        "nullable": True,
        "metadata": {"comment": "x"},
    }
    DeltaTable.create(tmp_path / "strict", Schema([Field("n", PrimitiveType("long"), nullable=False)]))
    with pytest.raises(DataError, match="rules that this sink does not know how to keep: NOT NULL of n"):
        Delta(tmp_path / "strict")(Frame(frame(1).rows.select("n"), "q"), 0)


def test_computed_columns_are_refused(tmp_path):
    columns = [Field("n", PrimitiveType("long"), metadata={"delta.generationExpression": "1"})]
    DeltaTable.create(tmp_path, Schema(columns))
    with pytest.raises(DataError, match=r"delta\.generationExpression of n"):
        Delta(tmp_path)(Frame(frame(1).rows.select("n"), "q"), 0)


def test_what_cannot_work_is_refused_before_anything_runs(tmp_path, monkeypatch):
    with pytest.raises(QueryError, match="is not a folder"):
        batch_sink("delta:s3://bucket/table")
    with pytest.raises(QueryError, match="needs app="):
        Delta(tmp_path)(frame(1, query=None), 0)
    monkeypatch.setitem(KINDS, "count(n)", "long")
    with pytest.raises(QueryError, match=r"column 'count\(n\)' .* give it another with AS"):
        Delta(tmp_path)(Frame(frame(1).rows.select(pl.col("n").alias("count(n)")), "q"), 0)
    with pytest.raises(QueryError, match="both the results and the late rows"):
        Both(f"delta:{tmp_path}", f"delta:{tmp_path}")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(QueryError, match=r"pip install 'windrow\[delta\]'"):
        Delta(tmp_path)
