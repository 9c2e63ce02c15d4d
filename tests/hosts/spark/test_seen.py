"""What the first micro-batch shows of Spark DataFrames: kept for estimates, and no algorithm depends on it."""

import json
from types import SimpleNamespace

import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.kept import Kept
from windrow.hosts.spark.seen import FirstBatch, keys_of, seen_in
from windrow.planner import Given, plan
from windrow.planner.choose.estimates import estimated
from windrow.planner.choose.statistics import Seen
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"ts": pl.Datetime("us", "UTC"), "k": pl.Int64(), "x": pl.Int64()}


def streams(*names):
    spark = SimulatedSpark()
    return [wr.stream(spark.stream(SCHEMA), "ts", slack="1 second", name=name) for name in names]


def counted(s):
    return s.window("1 minute", "10 seconds").group_by("k").agg(n=wr.count())


def tumbling(s):
    return s.window("1 minute").group_by("k").agg(n=wr.count())


def test_too_few_rows_or_no_progress_show_nothing():
    good = {"rows": 5000, "length": 10.0, "groups": 70}
    assert seen_in(good) == Seen(500.0, 70.0, 5000)
    assert seen_in({**good, "rows": 999}) is None
    assert seen_in({**good, "length": 0.0}) is None
    assert seen_in({"rows": 0, "length": None, "groups": None}) is None


def test_groups_are_those_of_the_first_stage_over_a_source():
    a, b = streams("a", "b")
    joined = a.select("ts", "x", key="k").join(b, left_on="key", right_on="k", within=("0 seconds", "5 seconds"))
    by_scan = {scan.name: keys_of(joined.plan(), scan) for scan in joined.plan().scans()}
    assert by_scan == {"a": ["k"], "b": ["k"]}
    computed = a.window("1 minute").group_by(odd="k % 2").agg(n=wr.count()).plan()
    assert keys_of(computed, computed.scans()[0]) == []


def test_what_was_seen_is_for_estimates_and_a_restart_takes_the_same_algorithm():
    [s] = streams("s")
    node = tumbling(s).node
    first = plan(node, Given({}, True))
    sparse = {"s": Seen(50_000.0, 1e9, 20_000)}  # by which another one would be chosen
    told = wr.stream(s.sources["s"].data, "ts", slack=0, name="s", statistics=wr.Statistics(50_000.0, 1e9))
    [other] = plan(tumbling(told).node, Given({}, True)).stages()
    assert other.algorithm != first.stages()[0].algorithm
    again = plan(node, Given({}, True, first.choices(), sparse))
    [stage] = again.stages()
    assert stage.algorithm == first.stages()[0].algorithm
    assert stage.choice.reason == "as at the first start: the checkpoint keeps it"
    assert (stage.choice.workload.basis, stage.choice.workload.sample) == ("measured", 20_000)
    assert "measured on 20,000 rows" in stage.choice.workload.says
    without = plan(node, Given({}, True, {}, sparse))  # nor where nothing is kept
    assert without.stages()[0].algorithm == first.stages()[0].algorithm
    known, unknown = estimated(again, {}, True, sparse), estimated(first, {}, True)
    assert (known.basis, unknown.basis) == ("measured", "assumed")
    assert known.parts[0].rows_out == pytest.approx(50_000)


def test_a_union_is_seen_if_all_of_it_is():
    a, b = streams("a", "b")
    node, both = counted(a.union(b)).node, {"a": Seen(10.0, 3.0, 1000), "b": Seen(20.0, 9.0, 4000)}
    kept = plan(node, Given({}, True)).choices()
    workload = plan(node, Given({}, True, kept, both)).stages()[0].choice.workload
    assert (workload.basis, workload.sample, workload.tuples) == ("measured", 5000, 300.0)
    one = plan(node, Given({}, True, kept, {"a": both["a"]})).stages()[0].choice.workload
    assert one.basis == "assumed"


def test_what_cannot_be_read_has_not_been_seen(tmp_path):
    file = tmp_path / "windrow" / "statistics.json"
    file.parent.mkdir()
    kept = Kept(None, str(tmp_path), "this query")
    assert kept.seen() == {}
    whole = {"query": "this query", "of": {"s": {"rate": 2, "groups": 3, "rows": 1000}}}
    file.write_text(json.dumps(whole))
    assert kept.seen() == {"s": Seen(2.0, 3.0, 1000)}
    assert Kept(None, str(tmp_path), "another query").seen() == {}
    for torn in (json.dumps(whole)[:-9], "[]", '{"query": "this query", "of": {"s": 5}}', ""):
        file.write_text(torn)
        assert kept.seen() == {}


class Streams(list):
    """The listeners of a session."""

    addListener, removeListener = list.append, list.remove  # noqa: N815


def told(first, run, **metrics):
    """A micro-batch ends."""
    observed = {f"windrow-{first.token}-{name}": given for name, given in metrics.items()}
    first.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(observedMetrics=observed, runId=run)))


def watching(tmp_path, *names):
    """A listener that is registered, and what it has remembered so far."""
    found = []
    kept = SimpleNamespace(spark=SimpleNamespace(streams=Streams()), remember=found.append, checkpoint=str(tmp_path))
    first = FirstBatch(kept, names=list(names))
    kept.spark.streams.addListener(first)
    return first, found


def test_each_source_is_remembered_once_and_then_nobody_listens(tmp_path):
    few, many = {"rows": 5, "length": 1.0, "groups": 1}, {"rows": 1000, "length": 10.0, "groups": 3}
    first, found = watching(tmp_path, "a", "b")
    told(first, 1, a=few, b=many)
    told(first, 1, a=few, b=few)
    first.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(observedMetrics={"windrow": many}, runId=2)))
    assert found == [{"b": Seen(100.0, 3.0, 1000)}]
    assert first.kept.spark.streams == [first]
    first.onQueryTerminated(SimpleNamespace(runId=2))  # another query
    assert first.kept.spark.streams == [first]
    told(first, 1, a=many, b=few)
    assert found[1:] == [{"a": Seen(100.0, 3.0, 1000)}]
    assert first.kept.spark.streams == []
    first.onQueryTerminated(SimpleNamespace(runId=1))


def test_a_query_that_ends_before_is_not_watched_any_more(tmp_path):
    first, found = watching(tmp_path, "a")
    told(first, 7, a={"rows": 5, "length": 1.0, "groups": 1})
    first.onQueryTerminated(SimpleNamespace(runId=7))
    assert (found, first.kept.spark.streams) == ([], [])


def test_a_checkpoint_that_cannot_be_written_does_not_stop_a_query(tmp_path, caplog):
    first, _ = watching(tmp_path, "a")

    def full(_seen):
        raise OSError("no space left")

    first.kept.remember = full
    told(first, 1, a={"rows": 1000, "length": 10.0, "groups": 3})
    assert "cannot keep what the first micro-batch has shown" in caplog.text
    assert first.kept.spark.streams == []


# -- on Spark ----------------------------------------------------------------------------------------------------------
@pytest.mark.spark
def test_on_spark_the_first_micro_batch_is_measured_and_remembered(spark, tmp_path):
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()

    def put(number, count, keys):
        at = pl.Series("ts", [(number * 100 + i / count * 100) * 1e6 for i in range(count)]).cast(pl.Int64)
        rows = pl.DataFrame({"ts": at.cast(pl.Datetime("us", "UTC")), "k": [i % keys for i in range(count)], "x": 1})
        rows.write_parquet(folder / f"{number}.parquet")

    def query():
        source = spark.readStream.schema("ts TIMESTAMP, k BIGINT, x BIGINT").parquet(str(folder))
        return counted(wr.stream(source, "ts", slack="1 second", name="s"))

    def run():
        writer = query().to_spark(checkpoint=state).writeStream.option("checkpointLocation", str(state))
        writer = writer.trigger(availableNow=True).format("parquet").option("path", str(tmp_path / "out"))
        writer.start().awaitTermination()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    assert "assumed" in query().explain(checkpoint=state)
    put(0, 4000, 40)
    run()
    file = state / "windrow" / "statistics.json"
    content = file.read_text()
    seen = json.loads(content)["of"]["s"]
    assert seen["rows"] == 4000
    assert seen["rate"] == pytest.approx(40, rel=0.01)
    assert seen["groups"] == pytest.approx(40, rel=0.1)
    text = query().explain(checkpoint=state)
    assert "measured on 4,000 rows" in text
    assert "as at the first start" in text
    assert "per second of progress (measured)" in text
    put(1, 2000, 2000)  # another character
    run()
    assert file.read_text() == content
    algorithm = next(line for line in text.split("\n") if "algorithm" in line)
    assert algorithm in query().explain(checkpoint=state)
