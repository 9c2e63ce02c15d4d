"""Rings on a real Spark: streaming with a restart that changes their length, batch, Python, SQL, late and bad rows."""

import os
import random
import socket
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from py4j.protocol import Py4JJavaError

import windrow as wr
from windrow.errors import PlanError
from windrow.hosts.ring.links import Address, Listener, TcpLinks
from windrow.hosts.spark.compile import BAD_ROWS, LATE_ROWS, RESULTS
from windrow.hosts.spark.reports import checkpoint_report
from windrow.hosts.spark.ring import slots
from windrow.operators.ring.messages import Kind, Message
from windrow.testing import compare, oracle

pytestmark = pytest.mark.spark
AT, FILES, ROWS, SLACK = datetime(2024, 1, 1, tzinfo=UTC), 3, 16, timedelta(seconds=2)
RAISES, TWICE, LATE = 99, 77, 55  # values of x in stream a: the condition raises, gives too much, is not asked
STRANGE = {(0, 7): RAISES, (1, 9): RAISES, (1, 5): TWICE}  # by file and row
SCHEMA = {"t": pl.Datetime("us", "UTC"), "x": pl.Int64()}
TIMES = ("t", "t_b", "t_c")


def frame(name, number, late=True):
    """Eight seconds of a stream, with rows up to two seconds late; in the last file of a, one is too late."""
    rng = random.Random(f"{name} {number}")
    rows = [(AT, LATE)] if late and (name, number) == ("a", FILES - 1) else []
    for n in range(ROWS):
        behind = rng.random() * 1.9 if number else 0.0
        x = rng.randrange(9)
        if name == "a":
            x = STRANGE.get((number, n), x)
        rows.append((AT + timedelta(seconds=8 * number + n / 2 - behind), x))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def conditions():
    """Functions that workers, which cannot import this module, get by value."""

    def alike(a, b):
        if a.x == RAISES:
            raise ValueError("no picture")
        return (a.x + b.x) % 3 == 0

    def at_once(x, y):
        """Gives one value too many where a strange one is among those that it is called with."""
        found = x.to_numpy() != y.to_numpy()
        return np.append(found, True) if (x == TWICE).any() else found

    return [alike, wr.udf(at_once, "BOOLEAN", "x", "x_c", vectorized=True), "x_b < x_c"]


def in_python(source, nodes, **given):
    streams = [wr.stream(source(name), "t", slack="2 seconds", name=name) for name in "abc"]
    within = {"a": "5 seconds", "b": "3 seconds", "c": "7 rows"}
    return wr.multi_join(*streams, within=within, where=conditions(), nodes=nodes, **given)


def in_sql(source, nodes):
    near = wr.udf(lambda x, y: abs(x - y) < 2, "BOOLEAN", "x", "y")
    text = f"""
        SELECT /*+ NODES({nodes}) */ a.t AS t, b.t AS t_b, c.t AS t_c, a.x AS x
        FROM a [RANGE 4 seconds], b [RANGE 2 seconds], c [RANGE 3 seconds]
        WHERE near(a.x, b.x) AND near(b.x, c.x)"""
    return wr.sql(text, near=near, **{n: wr.stream(source(n), "t", slack="2 seconds", name=n) for n in "abc"})


QUERIES = {"python": lambda *given: in_python(*given, late="side"), "sql": in_sql}


@pytest.fixture(scope="module")
def out(spark, tmp_path_factory):
    """Two micro-batches of both queries with two nodes, then one with one node."""
    folder = tmp_path_factory.mktemp("rings")

    def source(name):
        files = spark.readStream.schema("t TIMESTAMP, x BIGINT").option("maxFilesPerTrigger", 1)
        return files.parquet(str(folder / "in" / name))

    def sink(name, nodes):
        def write(found, number):
            found.write.parquet(str(folder / "out" / name / f"{nodes}-{number}"))

        return write

    for nodes, numbers in ((2, range(FILES - 1)), (1, [FILES - 1])):
        put(folder / "in", numbers)
        started = []
        for name, query in QUERIES.items():
            built = query(source, nodes).to_spark(shards=2, with_late=True)
            writer = built.writeStream.foreachBatch(sink(name, nodes)).trigger(availableNow=True)
            started.append(writer.option("checkpointLocation", str(folder / "state" / name)).start())
        for each in started:
            each.awaitTermination()
    return folder


def put(folder, numbers):
    for name in "abc":
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            frame(name, number).write_parquet(folder / name / f"{number}.parquet")
            os.utime(folder / name / f"{number}.parquet", (100 + number, 100 + number))


def whole(name):
    """All rows that are on time."""
    return pl.concat([frame(name, number, late=False) for number in range(FILES)])


def of(out, name, column):
    """The rows of a struct column of all micro-batches."""
    found = pl.read_parquet(out / "out" / name / "*" / "*.parquet").filter(pl.col(column).is_not_null())
    return found.select(column).unnest(column)


@pytest.mark.parametrize("name", QUERIES)
def test_results_equal_the_oracle_with_other_nodes_after_a_restart(out, name):
    expected = oracle(QUERIES[name](whole, 1))
    promised = min(whole(each)["t"].max() for each in "abc") - SLACK
    closed = expected.filter(pl.max_horizontal(*TIMES) < promised)
    assert 20 < closed.height < expected.height
    compare(of(out, name, RESULTS).cast(expected.schema), closed, name)


@pytest.mark.parametrize("name", QUERIES)
def test_the_checkpoint_knows_what_came_and_what_waits(out, name):
    report = checkpoint_report(out / "state" / name)
    rows = {each: sum(frame(each, number).height for number in range(FILES)) for each in "abc"}
    assert {source.name: source.read for source in report.sources} == rows  # over both starts
    assert {held.operator for held in report.held} == {"join"}
    assert report.shards == 2


@pytest.mark.parametrize("name", QUERIES)
def test_late_rows_have_a_record(out, name):
    """The whole row where it is set aside; that there was one where it is dropped."""
    late = of(out, name, LATE_ROWS)
    assert late.height == 1
    assert (str(LATE) in str(late.rows())) == (name == "python")


def test_a_condition_that_fails_makes_bad_rows_and_no_others(out):
    bad = of(out, "python", BAD_ROWS)
    reasons = {
        "alike failed: ValueError: no picture": RAISES,
        "at_once failed: ValueError: gave 2 values for 1 rows": TWICE,
    }
    assert set(bad["reason"].str.replace(r"^.*\.", "")) == set(reasons)
    for reason, row in bad.select(pl.col("reason").str.replace(r"^.*\.", ""), "row").rows():
        assert f'"x":{reasons[reason]}' in row.replace(" ", "")
    assert of(out, "sql", BAD_ROWS).height == 0


def test_a_finite_query_has_all_results(spark, tmp_path):
    for name in "abc":
        whole(name).write_parquet(tmp_path / f"{name}.parquet")
    query = in_python(lambda name: spark.read.parquet(str(tmp_path / f"{name}.parquet")), "auto")
    expected = oracle(in_python(whole, 1))
    compare(pl.DataFrame(query.to_spark(shards=2).toArrow()).cast(expected.schema), expected, "batch")


def test_more_nodes_than_slots_are_refused_before_anything_starts(spark):
    here = slots(spark)
    source = spark.readStream.format("rate").load().selectExpr("timestamp AS t", "value AS x")
    with pytest.raises(PlanError, match=f"nodes={here + 1} needs {here + 1} tasks .* this Spark has {here} slot"):
        in_python(lambda _: source, here + 1).to_spark()
    with pytest.raises(PlanError, match=rf"the join asks for {here} nodes, and shards=1 gives the query 1 task"):
        in_python(lambda _: source, here).to_spark(shards=1)


def test_a_node_that_cannot_be_reached_fails_its_task_with_the_address(spark):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = Address("127.0.0.1", nobody.getsockname()[1])

    def node(batches):
        yield from batches
        listener = Listener()
        links = TcpLinks(0, listener, [listener.address, address], bytes(32), patience=0.2)
        try:
            links.send(1, Message(Kind.DONE))
        finally:
            links.close(goodbye=False)

    alone = spark.range(1, numPartitions=1).mapInArrow(node, "id BIGINT", barrier=True)
    with pytest.raises(Py4JJavaError, match=f"LostError: node 0 has not reached node 1 at {address} within 0.2 s"):
        alone.collect()
