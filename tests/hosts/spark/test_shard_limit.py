"""A shard that would hold more state than allowed stops with an error that says what holds it. No Spark needed."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import ResultError
from windrow.hosts.counters import Counter
from windrow.hosts.spark.exchange import Kind
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.placed import placed_stages


def shard(limit):
    s = wr.stream(pl.DataFrame({"t": [0], "k": [""]}).clear(), progress="t", slack=0, name="s")
    placed = placed_stages(s.window(100, 10).group_by("k").agg(n=wr.count(), top=wr.max("t")).plan(), 1, True)
    return MapSide(placed.reads["s"]), Fragment(tuple(hosted for _, hosted in placed.levels[0]), placed.ids, limit)


def rows(low, keys):
    """What the map side sends for a row per key."""
    data = pl.DataFrame({"t": [5] * keys, "k": [str(i) for i in range(keys)]})
    outboxes = low.outboxes(0)
    return [*(row for part in low.run([data], outboxes) for row in part), *outboxes.last()]


def test_less_than_the_limit_is_reported_and_more_stops_the_query():
    low, fragment = shard(limit=10_000)
    out = list(fragment.run(fragment.wiring(), 0, rows(low, 50)))
    [held] = [r.value for r in out if r.kind == Kind.COUNT and r.port == Counter.STATE_BYTES.number]
    assert 0 < held <= 10_000
    with pytest.raises(ResultError, match=r"shard 0 holds .* more than the 10,000 allowed \(.*paned") as error:
        list(fragment.run(fragment.wiring(), 0, rows(low, 5000)))
    assert "state_limit" in str(error.value)


def test_without_a_limit_nothing_stops():
    low, fragment = shard(limit=None)
    assert list(fragment.run(fragment.wiring(), 0, rows(low, 5000)))
