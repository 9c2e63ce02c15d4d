"""The simulated Spark keeps the contracts of the real one, and finds a host that breaks them."""

import random

import polars as pl
import pyarrow as pa
import pytest
from pyspark.errors import PySparkNotImplementedError

import windrow as wr
from windrow.errors import CheckpointError
from windrow.testing import Mismatch
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import Checkpoint, Run, SimulatedSpark
from windrow.testing.state_store import Handle, StateStore

ROWS = pl.DataFrame({"t": range(40), "k": [f"k{i % 5}" for i in range(40)]})
BATCHES = [{"s": [ROWS[i : i + 4], ROWS[i + 4 : i + 10]]} for i in range(0, 40, 10)]


def counted(spark, size=10):
    source = wr.stream(spark.stream(ROWS.schema), progress="t", slack=3, name="s")
    return source.window(size).group_by("k").agg(n=wr.count())


def test_a_micro_batch_that_dies_leaves_nothing_behind():
    spark, checkpoint = SimulatedSpark(), Checkpoint()
    running = spark.start(counted(spark), checkpoint)
    for batch in BATCHES:
        before = checkpoint.stores[0].draft()
        died = running.push(batch, commit=False)
        assert checkpoint.stores[0] == before
        again = running.push(batch)
        assert again.results.sort("k").equals(died.results.sort("k"))
        assert checkpoint.stores[0] != before
    assert again.counts["rows_in"] == 10
    assert again.counts["rows_out"] == 5


def test_a_restart_goes_on_and_another_query_is_refused():
    checkpoint, released = Checkpoint(), []
    for batch in BATCHES:  # a new session, and so new workers, for each
        spark = SimulatedSpark()
        released.append(spark.start(counted(spark), checkpoint).push(batch).results)
    assert sum(frame["n"].sum() for frame in released) == 30
    spark = SimulatedSpark()
    with pytest.raises(CheckpointError, match="another query"):
        spark.start(counted(spark, 20), checkpoint).push(BATCHES[0])
    with pytest.raises(Mismatch, match="1 stateful operators, the query 2"):
        spark.start(counted(spark).window(20).agg(n=wr.sum("n")), checkpoint)


def test_what_runs_again_must_put_out_the_same():
    drifting = wr.aggregate("drifting", lambda x: random.getrandbits(40), max, int, state="BIGINT", result="BIGINT")

    def query(spark):
        return wr.stream(spark.stream(ROWS.schema), progress="t", slack=0, name="s").window(2).agg(d=drifting("t"))

    with pytest.raises(Mismatch, match="run again"):
        disturbed(query, [{"s": ROWS[i : i + 5]} for i in range(0, 40, 5)])


def test_every_seed_gives_what_the_process_gives():
    expected = wr.stream(ROWS, progress="t", slack=3, name="s").window(10).group_by("k").agg(n=wr.count()).collect()
    for seed in range(5):
        found = pl.concat([batch.results for batch in disturbed(counted, BATCHES, seed)])
        closed = expected.filter(pl.col("window_end") <= 36)
        assert found.sort("window_end", "k").equals(closed.sort("window_end", "k"))


def test_functions_must_give_the_columns_they_declare():
    spark = SimulatedSpark()
    wrong = spark.frame(ROWS).mapInArrow(lambda batches: iter([pa.RecordBatch.from_pydict({"a": ["x"]})]), "a INT")
    with pytest.raises(Mismatch, match="gave the columns"):
        Run(spark).rows(wrong)


def test_functions_are_pickled_when_the_query_is_made_and_see_no_later_change():
    spark, given = SimulatedSpark(), [1]
    frame = spark.frame(ROWS[:1]).mapInArrow(Constant(given), "a INT")
    given[0] = 2
    assert Run(spark).rows(frame).rows() == [(1,)]


class Constant:
    """Gives a number."""

    def __init__(self, values):
        self.values = values

    def __call__(self, batches):
        yield pa.RecordBatch.from_arrays([pa.array(self.values, pa.int32())], ["a"])


def test_what_is_not_simulated_says_so():
    frame = SimulatedSpark().frame(ROWS)
    with pytest.raises(PySparkNotImplementedError, match="crossJoin"):
        frame.crossJoin(frame)
    with pytest.raises(AttributeError, match="x is not simulated"):
        _ = frame.x


def test_state_is_typed_and_belongs_to_a_group():
    handle = Handle(StateStore())
    value = handle.getValueState("v", "token STRING")
    entries = handle.getMapState("m", "name STRING", "blob BINARY")
    with pytest.raises(Mismatch, match="outside handleInputRows"):
        value.get()
    handle.key = (0,)
    for odd in ((1,), ("a", "b"), ()):
        with pytest.raises(Mismatch, match="cannot hold"):
            value.update(odd)
    value.update(("a",))
    entries.updateValue(("x",), (b"1",))
    with pytest.raises(Mismatch, match="cannot hold"):
        entries.updateValue(("x",), ("text",))
    with pytest.raises(Mismatch, match="outside init"):
        handle.getValueState("w", "token STRING")
    handle.key = (1,)
    assert value.get() is None
    assert not value.exists()
    assert list(entries.iterator()) == []
    handle.key = (0,)
    assert list(entries.keys()) == [("x",)]
    assert list(entries.values()) == [entries.getValue(("x",))] == [(b"1",)]
    assert entries.containsKey(("x",))
    entries.removeKey(("x",))
    assert not entries.exists()
    entries.clear()
    value.clear()
    assert not value.exists()
