"""The parts of agg-limit and growth that measure nothing: what they run gives the right results."""

import polars as pl

from windrow.bench import agg_limit, growth


def test_all_ways_of_agg_limit_see_the_same_data():
    batches = agg_limit.generate(2, 2000)
    assert agg_limit.bare(batches) == agg_limit.panes(batches)
    rows = pl.concat([pl.DataFrame(b) for b in batches])
    pane = rows["ts"].to_physical() // agg_limit.PANE
    held = {(k, w) for k, p in zip(rows["k"], pane, strict=True) for w in range(p, p + agg_limit.RATIO)}
    assert agg_limit.windows(batches) == len(held)


def test_growth_feeds_everything_and_nothing_is_late():
    data = growth.generate(3000, 50, 60)
    seconds, results, state = growth.fed(growth.query(data, 60), data)
    wids = growth.RANGE // growth.SLIDE
    held = {(k, w) for k, t in data.select("k", "t").rows() for w in range(t // 60, t // 60 + wids)}
    assert results == len(held)
    assert seconds > 0
    assert state > 0
    run = growth.query(data, 60).run().push("s", data)
    assert run.counts["rows_late"] == 0


def test_a_cliff_is_a_step_that_costs_three_times_as_much():
    flat = {f"us_each_groups_{g}": 1.0 for g in growth.GROUPS}
    flat |= {f"us_each_disorder_{d}": 1.0 for d in growth.DISORDER}
    flat |= {f"us_each_shards_{s}": 1.0 for s in growth.SHARDS}
    assert all(growth.claims(flat).values())
    cliff = growth.claims({**flat, f"us_each_groups_{growth.GROUPS[-1]}": 3.1})
    assert [holds for claim, holds in cliff.items() if "groups" in claim] == [False]
    assert sum(cliff.values()) == 2
