"""A shard that would hold more state than allowed stops with an error that says what holds it. No Spark needed."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import ResultError
from windrow.hosts.spark.exchange import DATA, PROMISE, STATE_BYTES, encode
from windrow.hosts.spark.map_side import Route
from windrow.hosts.spark.shard import Fragment
from windrow.planner.graphs import pipeline_graph


def shard(limit):
    s = wr.stream(pl.DataFrame({"t": [0], "k": [""]}).clear(), progress="t", slack=0, name="s")
    [stage] = s.window(100, 10).group_by("k").agg(n=wr.count(), top=wr.max("t")).plan().stages()
    return pipeline_graph(stage.inputs[0]), Fragment(1, stage.steps, Route(), (), limit)


def rows(low, keys):
    """What the map side sends for a row per key."""
    data = pl.DataFrame({"t": [5] * keys, "k": [str(i) for i in range(keys)]})
    [partials] = [i for i in low.on_batch(0, data) if isinstance(i, pl.DataFrame)]
    return [(0, 0, DATA, 1, partials.height, encode(partials)), (0, 0, PROMISE, 2, 0, None)]


def test_less_than_the_limit_is_reported_and_more_stops_the_query():
    low, fragment = shard(limit=10_000)
    out = list(fragment.run(fragment.graph(), 0, rows(low, 50)))
    [held] = [row[4] for row in out if row[2] == STATE_BYTES]
    assert 0 < held <= 10_000
    with pytest.raises(ResultError, match=r"shard 0 holds .* more than the 10,000 allowed \(.*paned") as error:
        list(fragment.run(fragment.graph(), 0, rows(low, 5000)))
    assert "state_limit" in str(error.value)


def test_without_a_limit_nothing_stops():
    low, fragment = shard(limit=None)
    assert list(fragment.run(fragment.graph(), 0, rows(low, 5000)))
