"""Estimates of whole plans: rows against those of real runs, and an estimate for any query that can be written."""

import math
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_plans import QUERIES

import random_joins
import random_sequences
import windrow as wr
from test_random_queries import queries as random_queries
from windrow.planner import Given, plan
from windrow.planner.choose.estimates import estimated
from windrow.planner.choose.flow import Flow, occupied, together
from windrow.planner.choose.flows import Flows

SPAN, KEYS = 50_000, 50


def rows(count=10_000, keys=KEYS, late=0, seed=0, skewed=False):
    """Rows in the order of arrival, each up to ``late`` behind."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, SPAN, count))
    order = np.argsort(at + rng.integers(0, late + 1, count), kind="stable")
    k = rng.zipf(1.5, count) % keys if skewed else rng.integers(0, keys, count)
    columns = {"t": at[order], "k": k, "x": rng.integers(0, 9, count), "part": 0, "number": np.arange(count)}
    return pl.DataFrame(columns)


def source(name="s", slack=0, row_num=None, statistics=None, **options):
    data = rows(**options)
    return wr.stream(data, "t", slack=slack, name=name, row_num=row_num, statistics=statistics)


def counted(s, *window, **options):
    return s.window(*window, **options).group_by("k").agg(n=wr.count())


def pair(how="inner", within=(0, 200), **options):
    return source("a", **options).join(source("b", seed=1, **options), on="k", within=within, how=how)


def limited(**limits):
    return source("a").join(source("b", seed=1, count=20_000), on="k", within=(-1000, 1000), **limits)


def beside():
    s = source()
    return wr.together(a=counted(s, 100), b=counted(s, 1000, 500))


def by_group(s):
    return s.group_by("k").agg(n=wr.count())


TOP = "SELECT k, count(*) AS n FROM s [TUMBLING 1000, WA t] GROUP BY k ORDER BY n DESC LIMIT 3"
# Each with the factor by which the rows out of any stage may differ from what is estimated.
MEASURED = {
    "filter": (lambda: source().where("x > 2").select("t", "k", y="x + 1"), 1.01),
    "window": (lambda: counted(source(), 1000, 100), 1.05),
    "window of late rows": (lambda: counted(source(late=500, slack=500), 1000, 100), 1.05),
    "window of skewed keys": (lambda: counted(source(keys=2000, skewed=True), 1000, 100), 1.05),
    "window of few rows": (lambda: counted(source().where("x > 5"), 50), 1.1),
    "window of a union": (lambda: counted(source().union(source("r", seed=1, count=3000)), 1000, 100), 1.05),
    "window in order": (lambda: counted(source("a", late=300, slack=300).union(source("b")), 1000, using="iop"), 1.1),
    "window of windows": (lambda: counted(source(), 100).window(1000, 500).agg(m=wr.max("n")), 1.05),
    "window of some windows": (lambda: counted(source(), 100).where("n > 1").window(1000).agg(m=wr.max("n")), 1.1),
    "landmark": (lambda: by_group(source().landmark(1000)), 1.05),
    "session": (lambda: by_group(source().session(200)), 1.05),
    "each row": (lambda: source(row_num="number").each_row(100, 5).agg(n=wr.count()), 1.05),
    "rows of partitions": (lambda: by_group(source(row_num=("part", "number")).rows(10, 5, partition_by="k")), 1.1),
    "distinct": (lambda: source().select("t", "k").distinct(), 1.01),
    "order": (lambda: source(late=500, slack=500).order_by("t"), 1.01),
    "top": (lambda: wr.sql(TOP, s=source()), 1.1),
    "together": (beside, 1.05),
    "join": (lambda: pair(within=(0, 500)), 1.05),
    "join of late rows": (lambda: pair(late=300, slack=300, within=(-200, 500)), 1.05),
    "join of skewed keys": (lambda: pair(skewed=True, count=4000), 1.1),
    "left join": (lambda: pair("left"), 1.05),
    "right join": (lambda: pair("right"), 1.05),
    "full join": (lambda: pair("full"), 1.05),
    "semi join": (lambda: pair("semi"), 1.05),
    "anti join": (lambda: pair("anti"), 1.05),
    "left join of skewed keys": (lambda: pair("left", skewed=True, count=4000), 1.3),
    "join with a limit of its rate": (lambda: limited(max_rate=0.2), 1.1),
    "join with a limit of its state": (lambda: limited(max_state=150), 1.1),
    "join with both limits": (lambda: limited(max_rate=0.3, max_state=150), 1.15),
    "join of windows": (
        lambda: counted(source("a"), 100).join(counted(source("b", seed=1), 100), on="k", within=(0, 0)),
        1.1,
    ),
    "window of a join": (lambda: by_group(pair(within=(0, 500)).window(1000)), 1.2),
    "join with a condition": (
        lambda: source("a").join(source("b", seed=1), on="k", within=(0, 500), where="x < x_right"),
        1.5,
    ),
    "as of": (lambda: source("a").join_asof(source("b", seed=1), by="k", tolerance=100, how="inner"), 1.05),
    "as of, all": (lambda: source("a").join_asof(source("b", seed=1), by="k", max_keys=100), 1.01),
    "recent": (lambda: source("a").following(source("b", seed=1), on="k", within=100, how="inner"), 1.05),
    "chronicle": (
        lambda: source("a").following(source("b", seed=1), on="k", matching="chronicle", within=100, how="inner"),
        1.2,
    ),
    "sequence": (lambda: wr.seq({"a": source("a"), "b": source("b", seed=1)}, on="k", within=100), 1.1),
    "sequence without": (
        lambda: wr.seq(
            {"a": source("a"), "b": wr.no(source("b", seed=1)), "c": source("c", seed=2)}, on="k", within=100
        ),
        1.1,
    ),
}


@pytest.mark.parametrize("name", MEASURED)
def test_as_many_rows_are_estimated_out_of_every_part_as_come(name):
    made, factor = MEASURED[name]
    found = made().analysis()
    assert found.estimates.basis == "measured"
    parts = [line for line in found.lines if line.estimated_out is not None]
    assert len(parts) > 2
    for line in parts:
        assert line.rows_out / factor <= line.estimated_out <= line.rows_out * factor, line
        assert line.rows_in / factor <= line.estimated_in <= line.rows_in * factor, line
        assert math.isfinite(line.estimated_bytes)


LIMITED = "join with both limits"
HELD = (
    "window",
    "window of late rows",
    "window of skewed keys",
    "window of a union",
    "join",
    "join of late rows",
    LIMITED,
)


@pytest.mark.parametrize("name", HELD)
def test_state_is_estimated_within_a_factor_of_two(name):
    total = MEASURED[name][0]().analysis().lines[-1]
    assert 1 / 2 <= total.bytes / total.estimated_bytes <= 2


# -- the sum -----------------------------------------------------------------------------------------------------------
def test_the_cost_of_a_plan_is_the_sum_over_its_parts_and_each_is_shown():
    query = pair().window(1000).group_by("k").agg(n=wr.count())
    samples = {name: s.data for name, s in query.sources.items()}
    found = estimated(query.plan(), samples)
    assert [part.scope for part in found.parts] == ["read0", "read1", "stage0", "stage1", "result"]
    assert found.micros == pytest.approx(sum(part.micros for part in found.parts))
    text = query.explain()
    assert text.count("\n    cost: ") == 2
    assert f"cost of the plan: {found.micros:,.1f} us per unit of progress (measured)" in text


def test_what_crosses_an_exchange_has_its_cost():
    query = counted(source(), 1000, 100)
    plan, samples = query.plan(), {"s": query.sources["s"].data}
    here, there = (estimated(plan, samples, exchanged).of("stage0").micros for exchanged in (False, True))
    partials = 10_000 / SPAN * 0.3  # microseconds for each row, which is nearly always a partial of its own
    assert there - here == pytest.approx(partials, rel=0.3)
    rows = counted(source(), 1000, 100, using="wid").plan()
    here, there = (estimated(rows, samples, exchanged).of("stage0").micros for exchanged in (False, True))
    assert there - here == pytest.approx(10_000 / SPAN * 0.3, rel=0.01)


def test_costs_are_for_a_second_a_day_a_unit_or_a_row():
    stamps = rows().with_columns(pl.from_epoch("t", time_unit="s"))
    days = rows().with_columns(pl.col("t").cast(pl.Int32).cast(pl.Date))
    given = {"second": stamps, "day": days, "unit": rows()}
    costs = {}
    for unit, data in given.items():
        query = wr.stream(data, "t", slack=0, name="s").where("x > 2")
        found = estimated(query.plan(), {"s": query.sources["s"].data})
        assert found.unit == unit
        costs[unit] = found.micros
    assert costs["second"] == pytest.approx(costs["unit"], rel=1e-3)
    assert costs["day"] == pytest.approx(costs["unit"], rel=1e-3)
    by_rows = source(row_num="number").rows(5, 1).agg(n=wr.count())
    assert estimated(by_rows.plan()).unit == "row"


# -- what is known -----------------------------------------------------------------------------------------------------
def flow_of(stream, samples=None):
    query = stream.where("x > 2")
    plan = query.plan()
    flows = Flows(samples if samples is not None else {n: s.data for n, s in query.sources.items()})
    return flows.from_source(plan.reads()[0]), flows.of(plan.outputs[0])


def test_a_source_is_measured_declared_or_assumed():
    read, out = flow_of(source(late=300, slack=1000))
    assert (read.basis, read.wait) == ("measured", 1000.0)
    assert read.rate == pytest.approx(10_000 / SPAN, rel=1e-3)
    assert 250 < read.disorder <= 300
    assert out.rate == pytest.approx(read.rate * 6 / 9, rel=0.05)
    told = wr.Statistics(rate=7, groups=30)
    read, out = flow_of(source(count=10, slack=5, statistics=told))
    assert (read.basis, read.rate, read.groups, read.wait, read.disorder) == ("declared", 7.0, 30, 5.0, 5.0)
    assert out.rate == pytest.approx(7 / 3)
    read, _ = flow_of(source(count=10))
    assert (read.basis, read.rate) == ("assumed", 1000.0)
    assert flow_of(source(count=10, slack=None))[0].wait == math.inf


def test_a_few_wrong_clocks_do_not_change_a_rate():
    right = rows()
    wrong = right.with_columns(t=pl.when(pl.int_range(pl.len()) % 500 == 7).then(2**61).otherwise("t"))
    wrong = wrong.with_columns(t=pl.when(pl.int_range(pl.len()) % 500 == 9).then(-(2**61)).otherwise("t"))
    read, _ = flow_of(wr.stream(wrong, "t", slack=0, name="s"))
    assert read.rate == pytest.approx(10_000 / SPAN, rel=0.05)
    assert read.disorder == 0
    halves = pl.concat([right, right.with_columns(pl.col("t") + 2**60)])  # half of them are not a few
    read, _ = flow_of(wr.stream(halves, "t", slack=0, name="s"))
    assert 0 < read.rate < 1e-10


def test_a_function_of_the_user_is_not_run_on_a_sample():
    called = []

    def doubled(x):
        called.append(x)
        return 2 * x

    query = source().apply(y=wr.udf(doubled, "BIGINT", "x"))
    found = estimated(query.plan(), {"s": query.sources["s"].data})
    assert not called
    assert found.parts[-1].rows_out == pytest.approx(10_000 / SPAN, rel=1e-3)


def test_what_is_not_known_of_one_stream_is_not_known_of_all():
    known, unknown = Flow(1.0, basis="measured"), Flow(2.0, basis="assumed")
    assert together([known, known]).basis == "measured"
    assert together([known, unknown, Flow(1.0, basis="declared")]).basis == "assumed"


@given(keys=st.integers(1, 10_000), count=st.integers(0, 10**6))
def test_no_more_keys_are_occupied_than_there_are_keys_or_rows(keys, count):
    found = occupied(keys, count)
    assert 0 <= found <= min(keys, count) + 1e-6


# -- any query ---------------------------------------------------------------------------------------------------------
CHECK = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(query, samples):
    """Rates and costs are finite; state is, or it is there until the end."""
    for exchanged in (False, True):
        for kept in (samples, {}):
            found = estimated(plan(query.node, Given(kept, exchanged)), kept, exchanged)
            for part in found.parts:
                numbers = [part.rows_in, part.rows_out, part.micros]
                assert all(math.isfinite(each) and each >= 0 for each in numbers), part
                assert part.bytes >= 0, part  # which NaN is not
                assert "nan" not in part.says
            assert found.says


def many(frame, seed):
    """So many rows like these that they are a sample."""
    if not frame.height:
        return frame
    rng = np.random.default_rng(seed)
    return frame[rng.integers(0, frame.height, 1500)]


@pytest.mark.parametrize("name", QUERIES)
def test_each_plan_that_is_shown_has_a_cost(name):
    query = QUERIES[name]()
    check(query, {n: many(s.data, 0) for n, s in query.sources.items()})


@CHECK
@given(query=random_queries(), seed=st.integers(0, 99))
def test_any_query_has_a_cost(query, seed):
    check(query, {n: many(s.data, seed) for n, s in query.sources.items()})
    assert "cost of the plan" in query.explain()


@pytest.mark.parametrize("drawn", [random_joins.drawn, random_sequences.drawn_as_of, random_sequences.drawn_sequence])
@pytest.mark.parametrize("seed", random.Random(7).sample(range(10_000), 25))
def test_any_join_or_sequence_has_a_cost(drawn, seed):
    query = drawn(seed)
    check(query, {n: many(s.data, seed) for n, s in query.sources.items()})


STRANGE = {
    "no rows are left": lambda: counted(source().where("x > 100"), 1000),
    "one time": lambda: counted(wr.stream(rows().with_columns(t=7), "t", slack=0, name="s"), 1000),
    "the whole range": lambda: counted(
        wr.stream(rows().with_columns(t=pl.Series([-(2**62), 2**62] * 5000)), "t", slack=0, name="s"), 1000
    ),
    "a long window": lambda: counted(source(), 2**40, 2**39),
    "a huge slack": lambda: counted(source(slack=2**40), 1000, 10),
    "declared, and huge": lambda: counted(source(count=5, statistics=wr.Statistics(1e18, 1e17)), 1000),
    "declared, and tiny": lambda: counted(source(count=5, statistics=wr.Statistics(1e-9, 1)), 1000),
    "no promises": lambda: counted(source(slack=None), 1000),
    "no partners": lambda: source("a").where("x > 100").join(source("b"), on="k", within=(0, 10), how="full"),
    "a join without promises": lambda: source("a", slack=None).join(source("b"), on="k", within=(0, 10)),
    "NULL keys": lambda: by_group(wr.stream(rows().with_columns(k=None), "t", slack=0, name="s").session(5)),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_values_have_a_cost_too(name):
    query = STRANGE[name]()
    check(query, {n: s.data for n, s in query.sources.items()})
    assert "cost of the plan" in query.explain()


def test_state_without_promises_stays_until_the_end():
    assert "state until the end" in STRANGE["no promises"]().explain()
