"""The costs of multi-way joins against counted work, and the choice that follows from them."""

import random
from contextlib import contextmanager
from itertools import combinations
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.errors import PlanError
from windrow.hosts.local import LocalRun
from windrow.logical.explain import text
from windrow.operators.state.join_side import JoinSide
from windrow.planner import Given, explain, plan, ways
from windrow.planner.choose.costs.multiway import PAIR, PROBE, ROW, Streams, costs, orders, pipeline_cost, uniform
from windrow.planner.ways import named

# Of each input: rows per unit of progress, how long they are held, and how many keys they have.
STREAMS = {
    "alike": [(2, 40, 20), (2, 40, 20), (2, 40, 20)],
    "one is slow": [(4, 40, 30), (4, 40, 30), (0.2, 40, 30)],
    "one has keys of its own": [(2, 40, 5), (2, 40, 5), (2, 40, 300)],
    "held for different times": [(2, 200, 40), (2, 20, 40), (2, 4, 40)],
    "many results": [(2, 60, 3), (1, 30, 3), (1, 10, 3)],
    "four": [(2, 30, 20), (1, 30, 20), (1, 10, 60), (0.3, 60, 20)],
}
SPAN = 600


def frames(inputs, seed=1):
    rng = random.Random(seed)
    for rate, _, keys in inputs:
        times = sorted(rng.randrange(SPAN) for _ in range(round(rate * SPAN)))
        yield pl.DataFrame({"t": times, "k": [rng.randrange(keys) for _ in times]})


def joined(inputs, **options):
    streams = [
        wr.stream(rows, "t", slack=0, name=f"s{n}", statistics=wr.Statistics(rate, keys))
        for n, (rows, (rate, _, keys)) in enumerate(zip(frames(inputs), inputs, strict=True))
    ]
    within = {f"s{n}": held for n, (_, held, _) in enumerate(inputs)}
    return wr.multi_join(*streams, on="k", within=within, **options)


@contextmanager
def counting():
    """Counts the rows that joins keep, those that probe, and those that are found."""
    found = {"kept": 0, "probing": 0, "pairs": 0}
    push, partners = JoinSide.push, JoinSide.partners

    def counted_push(self, rows, matched):
        found["kept"] += rows.height
        push(self, rows, matched)

    def counted_partners(self, rows, least, greatest):
        found["probing"] += rows.height
        for number, mine, places in partners(self, rows, least, greatest):
            found["pairs"] += len(mine)
            yield number, mine, places

    with patch.multiple(JoinSide, push=counted_push, partners=counted_partners):
        yield found


def work(inputs, order):
    """What a way takes, counted, in the microseconds of the model."""
    query = joined(inputs)
    with counting() as found:
        run = LocalRun(plan(query.node, Given(kept={text(query.node): named(order)})))
        rows = {name: source.data for name, source in query.sources.items()}
        for t in range(0, SPAN, 20):
            for name, data in rows.items():
                run.push(name, data.filter(pl.col("t").is_between(t, t + 19)))
        run.end()
    return ROW * found["kept"] + PROBE * found["probing"] + PAIR * found["pairs"]


def modelled(inputs):
    rates, lengths, keys = zip(*inputs, strict=True)
    return costs(Streams(rates, lengths, uniform(keys), "declared"))


@pytest.mark.parametrize("name", STREAMS)
def test_the_model_orders_the_ways_as_counted_work_does(name):
    inputs = STREAMS[name]
    model = modelled(inputs)
    counted = {order: work(inputs, order) for order in model}
    for one, other in combinations(model, 2):
        if counted[one] * 1.25 < counted[other]:
            assert model[one] < model[other], (one, other)
    best = min(model, key=model.__getitem__)
    assert counted[best] <= 1.2 * min(counted.values())


@pytest.mark.parametrize("name", STREAMS)
def test_the_number_of_results_is_about_right(name):
    inputs = STREAMS[name]
    rates, lengths, keys = zip(*inputs, strict=True)
    expected = Streams(rates, lengths, uniform(keys), "declared").results(range(len(inputs))) * SPAN
    assert 0.6 * expected - 40 < joined(inputs).collect().height < 1.2 * expected + 40
