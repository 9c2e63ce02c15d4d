"""Joins of several streams end to end: in process and as Spark drives them, in one operator or as any pipeline."""

import random
from contextlib import contextmanager
from functools import cache
from itertools import count
from unittest.mock import patch

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_multi_joins import drawn
from test_joins import check_among, micro_batches, with_sources
from windrow.planner import ways
from windrow.planner.choose.costs.multiway import orders
from windrow.spec.in_order import MODES
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SEEDS = range(int(60 * max(1, EXAMPLES)))


@contextmanager
def in_order(seed):
    """Pipelines in an order that is drawn, whatever they cost."""

    def costs(streams):
        found = list(orders(len(streams.rates)))
        random.Random(seed).shuffle(found)
        return {(): 1.0, **dict(zip(found, map(float, count(1)), strict=False))}

    with patch.object(ways, "costs", costs):
        yield


@pytest.mark.parametrize("seed", SEEDS)
def test_one_operator_equals_the_oracle_under_any_arrival(seed):
    replay(drawn(seed, "multi"), runs=2, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_pipelines_in_any_order_equal_the_oracle_under_any_arrival(seed):
    with in_order(seed):
        replay(drawn(seed, "pipeline"), runs=1, seed=seed)


@pytest.mark.parametrize("seed", SEEDS[::4])
@pytest.mark.parametrize("using", ["multi", "pipeline"])
def test_both_ways_as_spark_drives_them(seed, using):
    """In micro-batches that fail and restart on other workers, and over finite sources; results equal the oracle's."""
    query, rng = drawn(seed, using), random.Random(seed)
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    with in_order(seed):
        out = disturbed(streaming, micro_batches(given, rng), seed, shards=rng.choice([1, 2, 5]))
        assert sum(batch.counts["rows_late"] for batch in out) == 0
        check_among(pl.concat([batch.results for batch in out]), expected, f"streaming, seed {seed}")
        spark = SimulatedSpark(shards=3, seed=seed)
        whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
        compare(whole, expected, f"batch, seed {seed}")


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_in_order_it_equals_the_oracle_and_below_whatever_follows(seed):
    using = MODES[seed % 3]
    query = drawn(seed, using, cost=1e-3 if using == "adaptive" else None)
    replay(query, runs=1, seed=seed)


@cache
def in_time(shards):
    """Three streams, and the results of their join."""
    rng = random.Random(shards)
    data = {name: sorted((rng.randrange(140), rng.randrange(4), n) for n in range(70)) for name in ("a", "b", "c")}
    schema = {"t": pl.Int64(), "k": pl.Int64(), "n": pl.Int64()}
    given = {name: pl.DataFrame(rows, schema=schema, orient="row") for name, rows in data.items()}
    return given, oracle(joined_in_time(given))


def joined_in_time(sources, **options):
    streams = [wr.stream(source, "t", slack=0, name=name) for name, source in sources.items()]
    found = wr.multi_join(*streams, on="k", within=12, **options)
    return found.select("k", "n", "n_b", "n_c", u="greatest(t, t_b, t_c)")


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("using", MODES)
def test_in_order_results_are_so_on_spark_too(shards, using):
    """In order within a shard, and with ORDER BY across shards and micro-batches, some of which die and run again."""
    given, expected = in_time(shards)

    def streaming(spark):
        cost = 1e-3 if using == "adaptive" else None
        frames = {name: spark.stream(frame.schema) for name, frame in given.items()}
        found = joined_in_time(frames, using=using, cost=cost)
        return found if shards == 1 else found.order_by("u")

    out = disturbed(streaming, micro_batches(given, random.Random(7)), 7, shards=shards)
    found = pl.concat([batch.results for batch in out])
    check_among(found, expected, using)
    assert found.height > 50
    assert found["u"].is_sorted()
