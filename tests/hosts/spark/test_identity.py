"""What a checkpoint says about the query that wrote it, and how a difference is told."""

import json

import polars as pl

import windrow as wr
from windrow.hosts.spark.identity import FORMAT, difference, identity
from windrow.planner.levels import Levels

LAST = "Run the old query again, or start the new one with a new checkpoint folder."


def stream(name="s", **types):
    schema = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64(), **types}
    return wr.stream(pl.DataFrame(schema=schema), "t", slack=5, name=name)


def counted(size=10, source=None, **options):
    return (source or stream()).window(size, **options).group_by("k").agg(n=wr.count())


def of(query, shards=2, level=0):
    """The identity of a level, as it is in a checkpoint."""
    plan = query.plan()
    return json.loads(json.dumps(identity(plan, Levels(plan, shards).stages(level), shards)))


def told(before, now):
    return difference(before, now).split("\n")


def test_what_identity_holds():
    found = of(counted())
    assert found["format"] == FORMAT == 2
    assert found["shards"] == 2
    stage = found["stages"]["0"]
    assert set(stage) == {"query", "algorithm", "source columns", "result columns"}
    assert stage["source columns"] == {"s": {"t": "Int64", "k": "Int64"}}
    assert stage["result columns"] == {"k": "Int64", "window_start": "Int64", "window_end": "Int64", "n": "Int64"}


def test_what_follows_the_last_state_is_not_part_of_it():
    query = counted()
    assert of(query) == of(query.where("n > 1")) == of(query.select("k", m="n + 1"))
    assert of(query) != of(counted(source=stream("other")))


def test_each_level_has_the_identity_of_its_own_stages():
    inner = counted()
    query = inner.window(60).agg(total=wr.sum("n"))
    assert list(of(query)["stages"]) == ["0"]
    assert list(of(query, level=1)["stages"]) == ["1"]
    assert of(query) == of(inner)
    assert sorted(of(query, shards=1)["stages"]) == ["0", "1"]


def test_another_format_is_refused_with_the_reason_and_nothing_else():
    text = difference({"format": 1, "query": "whatever there was"}, of(counted()))
    assert text == (
        "this checkpoint has format 1, and this version of Windrow writes format 2: its state cannot be read. Continue "
        "with the version that wrote it, or start with a new checkpoint folder"
    )
    assert "has format None" in difference({}, of(counted()))


def test_another_number_of_shards():
    assert told(of(counted(), 2), of(counted(), 3)) == [
        "this checkpoint was written by another query. What differs:",
        "  shards:",
        "    checkpoint: 2",
        "    now:        3",
        LAST,
    ]


def test_another_window_of_the_only_stage_is_told_without_its_number():
    lines = told(of(counted(10)), of(counted(20)))
    assert lines[1] == "  query:"
    assert lines[-1] == LAST
    assert not any(line.startswith("  stage") for line in lines)
    assert sum(line.startswith("    checkpoint:") for line in lines) == 1


def test_another_algorithm_comes_with_advice():
    lines = told(of(counted(60, slide=10, using="paned")), of(counted(60, slide=10, using="wid")))
    assert lines[1:4] == ["  algorithm:", "    checkpoint: paned", "    now:        wid"]
    assert any("give using='paned' or the hint USING(..)" in line for line in lines)


def test_another_type_of_a_column_comes_with_advice():
    lines = told(of(counted()), of(counted(source=stream(k=pl.String()))))
    assert "    checkpoint: {'s': {'t': 'Int64', 'k': 'Int64'}}" in lines
    assert "    now:        {'s': {'t': 'Int64', 'k': 'String'}}" in lines
    assert "Over files, schema=.. declares the columns, whichever files are there." in lines


def both(first, second):
    return counted(first, stream("a")).union(counted(second, stream("b")))


def test_of_several_stages_only_those_that_differ_are_told_by_number():
    lines = told(of(both(10, 10)), of(both(10, 20)))
    assert [line for line in lines if line.startswith("  stage")] == ["  stage 1:"]
    assert sum(line == "  query:" for line in lines) == 1
    assert [line for line in told(of(both(10, 10)), of(both(20, 20))) if line.startswith("  stage")] == [
        "  stage 0:",
        "  stage 1:",
    ]


def test_a_stage_that_is_new_and_one_that_is_gone():
    one, two = of(counted(10, stream("a"))), of(both(10, 10))
    new, gone = told(one, two), told(two, one)
    for lines, column in ((new, "checkpoint"), (gone, "now")):
        assert [line for line in lines if line.startswith("  stage")] == ["  stage 1:"]
        assert f"    {column + ':':<11} None" in lines
        assert lines[-1] == LAST


def test_stages_are_told_in_the_order_of_their_numbers():
    def of_stages(size):
        return {
            "format": 2,
            "shards": 1,
            "stages": {str(n): {"query": size, "algorithm": "a", "source columns": {}} for n in range(12)},
        }

    found = [line for line in told(of_stages(1), of_stages(2)) if line.startswith("  stage")]
    assert found == [f"  stage {n}:" for n in range(12)]
