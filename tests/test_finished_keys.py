"""A key that is finished on one side frees rows of the other side, and gives outer results, before time is up."""

import polars as pl
import pytest

import windrow as wr
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64(), "done": pl.Int64()}


def streams(make, **options):
    marked = wr.promise.markers("done", by="k")
    left = wr.stream(make(), "t", punctuation=marked, name="l")
    right = wr.stream(make(), "t", punctuation=marked, name="r")
    return left.join(right, on="k", within=(0, 1000), **options).select("t", "k", "x", y="x_right")


def rows(*given):
    return pl.DataFrame([(t, k, x, None) for t, k, x in given], schema=SCHEMA, orient="row")


def marker(k, value):
    return pl.DataFrame([(None, k, None, value)], schema=SCHEMA, orient="row")


def waiting(run):
    return sum(
        node.operator.waits_for()[0].count
        for node in run.graph.nodes
        if "join" in node.name and node.operator.waits_for()
    )


def test_rows_of_a_finished_key_leave_and_those_of_others_stay():
    run = streams(lambda: pl.DataFrame(schema=SCHEMA)).run()
    run.push("l", rows((1, 1, 10), (2, 1, 11), (3, 2, 12)))
    assert waiting(run) == 3
    run.push("r", marker(1, 5000))  # no right row of key 1 comes below 5000
    assert waiting(run) == 1
    assert run.counts["rows_freed"] == 2
    run.push("l", rows((4, 1, 13)))  # not kept at all
    assert waiting(run) == 1
    run.push("r", rows((50, 2, 20))).push("r", rows((60, 1, 21)))  # the second breaks the promise
    assert run.results().rows() == [(3, 2, 12, 20)]
    assert run.counts["rows_late"] == 1


@pytest.mark.parametrize("how", ["left", "anti"])
def test_rows_of_a_finished_key_without_a_partner_come_out_early(how):
    run = streams(lambda: pl.DataFrame(schema=SCHEMA), how=how) if how == "left" else None
    if run is None:
        marked = wr.promise.markers("done", by="k")
        left, right = (wr.stream(pl.DataFrame(schema=SCHEMA), "t", punctuation=marked, name=n) for n in "lr")
        run = left.join(right, on="k", within=(0, 1000), how="anti").select("t", "k", "x")
    started = run.run()
    started.push("l", rows((1, 1, 10), (2, 1, 11), (3, 2, 12))).push("r", rows((7, 1, 20), (1, 1, 21)))
    before = started.results().height
    started.push("l", rows((600, 1, 14))).push("r", marker(1, 5000))
    assert started.results()["x"].to_list() == [14]
    assert before == (3 if how == "left" else 0)
    snapshot = started.snapshot()
    again = run.run().restore(snapshot)
    again.push("l", rows((8, 1, 15)))  # key 1 is still finished after a restart
    assert again.results()["x"].to_list() == [15]


def test_the_same_as_spark_drives_it():
    spark = SimulatedSpark(shards=3)
    running = spark.start(streams(lambda: spark.stream(SCHEMA), how="left"))
    running.push({"l": rows((1, 1, 10), (2000, 1, 11), (3, 2, 12)), "r": rows()})
    batch = running.push({"l": rows(), "r": marker(1, 9000)})
    assert sorted(batch.results["x"].to_list()) == [10, 11]
    assert batch.counts["rows_freed"] == 2
