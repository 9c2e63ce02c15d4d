"""Joins of several streams end to end: in process and as Spark drives them, in one operator or as any pipeline."""

import random
from contextlib import contextmanager
from itertools import count
from unittest.mock import patch

import polars as pl
import pytest

from how_many import EXAMPLES
from random_multi_joins import drawn
from test_joins import check_among, micro_batches, with_sources
from windrow.planner import ways
from windrow.planner.choose.costs.multiway import orders
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
