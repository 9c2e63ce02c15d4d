"""The costs of multi-way joins against counted work, and the choice that follows from them."""

import random
from contextlib import contextmanager
from itertools import combinations, product
from unittest.mock import patch

import polars as pl
import pytest

import windrow as wr
from windrow.errors import PlanError
from windrow.hosts.local import LocalRun
from windrow.logical.explain import text
from windrow.operators.state.join_side import JoinSide
from windrow.planner import Given, plan
from windrow.planner.choose.costs.multiway import PAIR, PROBE, ROW, Streams, costs, orders, pipeline_cost, uniform
from windrow.planner.choose.estimates import estimated
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
SPAN = 400


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
        for t in range(0, SPAN, 40):
            for name, data in rows.items():
                run.push(name, data.filter(pl.col("t").is_between(t, t + 39)))
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


# -- the choice --------------------------------------------------------------------------------------------------------
SLOW = STREAMS["one is slow"]


def way(query, **given):
    """The way that is chosen."""
    return plan(query.node, Given(**given)).stages()[-1].choice


def test_the_cheapest_way_is_chosen_and_explained():
    query = joined(SLOW)
    chosen = way(query)
    assert (chosen.reason, chosen.says.split(":")[0]) == ("the cheapest by the cost model", "declared")
    model = modelled(SLOW)
    assert chosen.name == named(min(model, key=model.__getitem__))
    lines = list(chosen.lines())
    assert lines[0] == f"join as {chosen.name}: the cheapest by the cost model"
    assert sum("chosen" in line for line in lines) == 1
    assert f"join as {chosen.name}" in query.explain()


def test_a_query_can_ask_for_a_way():
    assert way(joined(SLOW, using="multi")).name == "multi"
    assert way(joined(SLOW, using="pipeline")).name.startswith("pipeline ")
    assert "pipeline is asked for" in "\n".join(way(joined(SLOW, using="pipeline")).lines())
    for mode in ("sync-filter", "filter-order"):
        chosen = way(joined(SLOW, using=mode))
        assert (chosen.name, next(iter(chosen.lines()))) == (mode, f"join as {mode}: as asked for, in order")


def test_samples_are_measured():
    rows = {f"s{n}": each for n, each in enumerate(frames([(3, 50, 20)] * 3))}
    streams = [wr.stream(each, "t", slack=0, name=name) for name, each in rows.items()]
    query = wr.multi_join(*streams, on="k", within=50)
    assert way(query).says.startswith("assumed")
    samples = {name: each.with_columns(pl.col("t").alias("@t")) for name, each in rows.items()}
    assert way(query, samples=samples).says.startswith("measured: 150")


def test_a_query_that_is_restarted_goes_on_as_it_began_whatever_is_measured_now():
    query = joined(SLOW)
    for order in [(), *orders(3)]:
        chosen = way(query, kept={text(query.node): named(order)})
        assert (chosen.order, chosen.reason) == (order, "as at the first start: the checkpoint keeps it")
    with pytest.raises(PlanError, match="no order of these"):
        way(query, kept={text(query.node): "pipeline 0-1-3"})


def test_of_a_pipeline_rows_that_go_to_another_stage_cost_more_on_spark():
    rates, lengths, keys = zip(*SLOW, strict=True)
    here, there = (Streams(rates, lengths, uniform(keys), "declared", exchanged=each) for each in (False, True))
    assert pipeline_cost(there, (0, 1, 2)) > pipeline_cost(here, (0, 1, 2))


@pytest.mark.parametrize(
    ("using", "name"),
    [*product(["multi", "sync-filter"], STREAMS), ("pipeline", "alike"), ("pipeline", "one is slow")],
)
def test_the_cost_of_the_plan_has_that_of_the_join(name, using):
    query = joined(STREAMS[name], using=using)
    found = estimated(plan(query.node))
    last = plan(query.node).stages()[-1]
    part = found.of(f"stage{last.number}")
    results = query.collect().height / SPAN
    assert 0.4 * results - 0.2 < part.rows_out < 2.5 * results + 0.2
    assert part.micros > 0 < part.bytes < float("inf")
