"""The parts of agg-limit and growth that measure nothing: what they run gives the right results."""

import polars as pl
import pytest
from matplotlib.figure import Figure

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


@pytest.mark.parametrize("groups", [10, 100, 1000])
def test_live_groups_are_all_in_every_full_window(groups):
    data = growth.live(groups, rows=1200, span=growth.LIVE_SPAN)
    assert data.height == 1200
    assert data["k"].tail(1000).n_unique() == data["k"].head(1000).n_unique() == groups
    held = data.filter(pl.col("t") < growth.RANGE)["k"].n_unique()
    assert held >= 0.95 * groups  # as many as come in RANGE, but for chance


def test_the_most_live_groups_are_a_million_and_each_has_a_row_in_range():
    """Issue 11: of a million keys to draw from at most a third was ever held at once."""
    assert growth.LIVE[-1] == growth.LIVE_ON_SPARK[-1] == 1_000_000
    assert growth.LIVE[-1] == growth.LIVE_ROWS * growth.RANGE / growth.LIVE_SPAN


def test_a_point_has_the_rate_beside_the_cost_per_row_and_result():
    point = growth.Point("live", 20, 2, lambda: growth.live(20, rows=240, span=growth.LIVE_SPAN))
    found = growth.measured(point)
    assert set(found) == {f"{name}_live_20" for name in ("rows_per_s", "us_each", "results", "state_kib")}
    seconds = 240 / found["rows_per_s_live_20"]
    assert found["us_each_live_20"] == pytest.approx(1e6 * seconds / (240 + found["results_live_20"]), rel=0.05)


FLAT = {f"us_each_{curve}_{v}": 1.0 for curve, (_, values) in growth.CURVES.items() for v in values}


def test_a_cliff_is_a_step_that_costs_three_times_as_much():
    assert list(growth.claims(FLAT).values()) == [True] * len(growth.CURVES)
    for curve in ("groups", "live", "disorder", "shards"):
        last = growth.CURVES[curve][1][-1]
        assert sum(growth.claims({**FLAT, f"us_each_{curve}_{last}": 3.1}).values()) == len(growth.CURVES) - 1
    far = f"us_each_live_spark_{growth.LIVE_ON_SPARK[-1]}"  # three times for each of three steps
    assert all(growth.claims({**FLAT, far: 26.9}).values())
    assert not all(growth.claims({**FLAT, far: 27.1}).values())


def test_the_plot_shows_rates_and_costs_of_every_curve():
    figure = Figure()
    growth._plot(figure, {**FLAT, **{name.replace("us_each", "rows_per_s"): 10.0 for name in FLAT}})
    assert len(figure.axes) == 2 * len(growth.CURVES)
    assert {axes.get_ylabel().split("\n")[0] for axes in figure.axes} == {
        "rows per second",
        "µs per row and result",
        "",
    }
