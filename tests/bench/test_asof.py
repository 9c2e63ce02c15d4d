"""The parts of asof and asof-idle: what is fed, that all give the same, and the claims."""

import json
from datetime import timedelta

import polars as pl
import pytest
from matplotlib.figure import Figure

from windrow.bench import EXPERIMENTS, asof, asof_idle
from windrow.testing import oracle


# -- asof --------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def sides():
    return asof.trades_and_quotes(3000, keys=20, span=60)


def test_trades_and_quotes_are_out_of_order_and_within_the_slack(sides):
    trades, quotes = sides
    assert (trades.height, quotes.height) == (3000, 300)
    for frame in sides:
        behind = frame["ts"].cum_max() - frame["ts"]
        assert timedelta(0) < behind.max() <= timedelta(seconds=asof.SLACK)


def test_disorder_is_what_is_asked_for():
    for disorder in (0, 30):
        behind = [f["ts"].cum_max() - f["ts"] for f in asof.trades_and_quotes(3000, span=600, disorder=disorder)]
        assert max(b.max() for b in behind) <= timedelta(seconds=disorder)
        assert (max(b.max() for b in behind) > timedelta(seconds=disorder / 2)) == (disorder > 0)


@pytest.mark.parametrize("batch", [70, 1000, 5000])
def test_every_row_is_pushed_once(sides, batch):
    for name, frame in zip("lr", sides, strict=True):
        assert pl.concat([rows for each, rows in asof.steps(sides, batch) if each == name]).equals(frame)


def test_both_ways_give_what_the_query_means(sides):
    query = asof.query(sides, keys=20)
    expected = oracle(query, dict(zip("lr", sides, strict=True)))
    ours = asof.pushed(query, sides, 500)
    assert ours.columns == ["ts", "k", "a", "b"]
    assert asof.agree(ours, expected)
    assert asof.agree(asof.by_polars(asof.in_order(sides)), expected)
    assert expected["b"].null_count() > 0


def test_sides_agree_if_each_trade_has_the_same_quote_and_some_have_one():
    pairs = pl.DataFrame({"a": [1, 2], "b": [7, None]})
    assert asof.agree(pairs, pairs.reverse())
    assert not asof.agree(pairs, pairs.head(1))
    assert not asof.agree(pairs, pairs.with_columns(b=pl.lit(7)))
    alone = pairs.with_columns(b=pl.lit(None, pl.Int64))
    assert not asof.agree(alone, alone)


def test_a_stream_that_goes_on_must_have_released_what_is_final_and_nothing_wrong(sides):
    expected = asof.by_polars(asof.in_order(sides))
    last = expected["ts"].max()
    final = expected.filter(pl.col("ts") < last - timedelta(seconds=asof.SLACK))
    assert asof.released(final, expected, last)
    assert asof.released(expected, expected, last)
    assert not asof.released(final.head(final.height - 1), expected, last)
    assert not asof.released(final.with_columns(pl.col("b") + 1), expected, last)
    assert not asof.released(expected.clear(), expected, last)


def test_what_is_measured_has_the_names_of_its_figures(sides, monkeypatch):
    figures, same = asof.in_process(sides, 1, lambda text, done: None, batch=1000)
    assert same
    assert {"over_polars", "rows_per_s_polars", "rows_per_s_local", "state_bytes_local"} <= set(figures)
    assert figures["state_bytes_local"] > 0
    found = asof.grown(asof.Point("keys", 10, keys=10, trades=2000, batch=500), 1)
    assert set(found) == {"rows_per_s_keys_10", "us_per_row_keys_10", "state_bytes_keys_10"}
    json.dumps({**figures, **found})


GOOD = {"over_polars": 0.34, "rows_per_s_spark": 400_000}
GOOD |= {f"us_per_row_{p.curve}_{p.value:g}": 1.0 for p in asof.POINTS}


def test_the_claims_of_asof_follow_from_the_figures():
    assert all(asof.claims(GOOD, True).values())
    assert sum(asof.claims(GOOD, False).values()) == 4
    for name, value in {
        "over_polars": 0.33,
        "rows_per_s_spark": 399_999,
        "us_per_row_keys_10000": 3.1,
        "us_per_row_disorder_300": 3.1,
    }.items():
        assert sum(asof.claims({**GOOD, name: value}, True).values()) == 4


def test_the_plot_of_asof_has_a_curve_for_each_thing_that_varies():
    figure = Figure()
    rates = {f"rows_per_s_{name}": 1.0 for name in ("local", "polars", "polars_sorting", "spark")}
    asof._plot(figure, {**GOOD, **rates})
    assert len(figure.axes) == 4


# -- asof-idle ---------------------------------------------------------------------------------------------------------
def test_products_come_steadily_and_cases_fall_silent():
    rows = asof_idle.arrivals()
    assert [e.at for e in rows] == sorted(e.at for e in rows)
    assert all(0 <= e.at - e.row["ts"] < asof_idle.DISORDER for e in rows)
    cases = [e.row["ts"] for e in rows if e.source == "cases"]
    low, high = asof_idle.SILENT
    assert not any(low <= t < high for t in cases)
    assert min(cases) < low
    assert max(cases) >= high


@pytest.mark.parametrize("way", asof_idle.WAYS)
def test_no_row_breaks_what_was_promised(way):
    events = asof_idle.events_of(way, asof_idle.arrivals())
    promised = -asof_idle.DISORDER
    for event in events:
        if event.source == "cases" and event.row is not None and "ts" in event.row:
            assert event.row["ts"] >= promised
        promised = max(promised, promised if event.promise is None else event.promise)
    assert promised > asof_idle.SILENT[1]


def test_a_pair_is_allowed_by_the_first_promise_beyond_its_time():
    pairs = pl.DataFrame({"ts": [5, 6, 90], "arrival": [7, 30, 95]})
    events = [
        asof_idle.Event(10, "cases", None, 5),
        asof_idle.Event(11, "products", {}),
        asof_idle.Event(20, "cases", None, 7),
    ]
    assert asof_idle.allowed(pairs, events).to_list() == [20, 30, None]


def test_the_claims_of_asof_idle_hold_in_virtual_time():
    said = []
    outcome = asof_idle.run(True, lambda text, done: said.append(done))
    assert [claim for claim, holds in outcome.holds.items() if not holds] == []
    assert said == sorted(said)
    assert outcome.figures["wait_greatest_rows"] > 100
    figure = Figure()
    outcome.plot(figure)
    assert len(figure.axes) == 2


def test_a_wrong_or_late_pair_makes_the_claims_fail():
    waits = {f"wait_{what}_{way}": 1.0 for what in ("mean", "mean_silent", "greatest") for way in asof_idle.WAYS}
    waits |= {f"wait_mean_{way}": float(p) for way, p in asof_idle.BEATS.items()}
    waits |= {f"state_bytes_{way}": 1 for way in asof_idle.WAYS}
    figures = {**waits, "wait_greatest_rows": 200.0, "state_bytes_rows": 2, "gap_greatest": 0.5}
    assert all(asof_idle.claims(figures, True, True).values())
    assert sum(asof_idle.claims(figures, False, False).values()) == 4
    for name, value in {
        "wait_greatest_rows": 10,
        "wait_greatest_beats_5": 8,
        "wait_mean_beats_60": 0,
        "wait_greatest_demand": 2.6,
        "state_bytes_rows": 1,
    }.items():
        assert sum(asof_idle.claims({**figures, name: value}, True, True).values()) == 5


def test_both_are_listed():
    assert {"asof", "asof-idle"} <= set(EXPERIMENTS)
