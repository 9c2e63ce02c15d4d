"""Graphs in virtual time, and the experiments about their schedules, with fixed service times."""

import polars as pl
import pytest

from windrow.bench import EXPERIMENTS, break_nodes, burst, eqg, schedule
from windrow.bench.virtual import (
    KINDS,
    SECOND,
    Arrival,
    Result,
    Virtual,
    calibrated,
    in_real_time,
    in_virtual_time,
    latencies,
    mean_latency,
    merged,
    poisson,
    tuples,
)
from windrow.graph import DFS, Graph
from windrow.operators import Select
from windrow.progress import Punctuation


def one(strategy=DFS):
    graph = Graph(strategy)
    graph.input(graph.add("select", Select(pl.col("x") >= 0)))
    return graph


# -- virtual time ----------------------------------------------------------------------------------------------------
def test_a_tuple_waits_for_those_before_it():
    arrivals = tuples([0, 0, 5, 100], 0, seed=1)
    assert latencies(list(Virtual(one(), arrivals, lambda node, item, waiting: 10).results())) == [10, 20, 25, 10]


def test_what_arrives_during_a_step_is_there_before_the_next_is_selected_and_counts_as_buffered():
    virtual = Virtual(one(), tuples([0, 1, 2, 50], 0, seed=1), lambda node, item, waiting: 10)
    assert [at for at, _ in virtual.results()] == [10, 20, 30, 60]
    assert virtual.peak_rows == 2


def test_promises_take_time_too_and_are_results():
    arrivals = merged(tuples([0], 0, seed=1), end=0)
    out = list(
        Virtual(one(), arrivals, lambda node, item, waiting: 3 if isinstance(item, Punctuation) else 10).results()
    )
    assert [at for at, _ in out] == [10, 13]


def test_bursts_have_the_average_rate_and_come_together():
    single, bursts = poisson(1000, 20, seed=3), poisson(1000, 20, seed=3, burst=50)
    for times in (single, bursts):
        assert len(times) == pytest.approx(20_000, rel=0.15)
        assert times == sorted(times)
        assert times[-1] < 20 * SECOND
    assert len(set(bursts)) == len(bursts) // 50
    assert poisson(1000, 20, seed=3) == single


def test_calibration_gives_a_time_for_every_node_and_kind_of_item():
    costs = calibrated(lambda clock: one(), [*tuples([0, 1], 0, seed=1), Arrival(2, 0, Punctuation(2))])
    assert set(costs) == {(0, kind) for kind in KINDS}
    assert min(costs.values()) > 0


def test_real_time_gives_everything_in_order_and_not_before_it_arrives():
    out = in_real_time(lambda clock: one(), tuples([0, 1000, 2000], 0, seed=1))
    assert [item["arrived"].to_list() for _, item in out] == [[0], [1000], [2000]]
    assert min(latencies(out)) >= 0


# -- break-nodes -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def broken():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(break_nodes, "RANDOM", 6)
        return break_nodes.run(True, lambda text, done: None)


def test_break_nodes_hold(broken):
    assert all(broken.holds.values())
    assert set(broken.curves) == set(broken.holds)
    assert broken.figures["peak_bytes_placed_middle"] == break_nodes.measured(break_nodes.PATHS["middle"], "placed")[0]


def test_break_nodes_claims_fail_where_they_should(broken):
    paths = list(broken.curves[break_nodes.NEVER])
    more = broken.figures | {f"peak_bytes_placed_{p}": 1e9 for p in paths}
    assert not any(break_nodes.claims(more, paths).values())


def test_they_are_registered():
    assert {"break-nodes", "schedule", "eqg", "burst"} <= set(EXPERIMENTS)


# -- schedule, eqg, burst --------------------------------------------------------------------------------------------
BURSTS = (1, 10, 50)


def fixed(nodes, row=100_000, promise=10_000):
    return {(node, kind): row if kind == "row" else promise for node in range(nodes) for kind in KINDS}


@pytest.fixture(scope="module")
def scheduled():
    """Figures of the experiment with service times of 100 and 10 microseconds; virtual time stands in for real time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schedule, "FAST", 200)
        found = schedule.ets_or_not(fixed(3), 4)
        figures = schedule.latency_figures(found) | schedule.latency_figures(found, "real_")
        for size in BURSTS:
            figures |= schedule.in_bursts(fixed(3), size, 2) | schedule.latent(100_000, size)
    last = f"burst_{BURSTS[-1]}"
    real = {f"real_median_us_{s}_{last}_at_{schedule.CALM}": f"latency_us_{s}_{last}" for s in schedule.STRATEGIES}
    figures |= {key: figures[like] for key, like in real.items()}
    return figures, schedule.alike(found)


def test_schedule_claims_hold_with_fixed_service_times(scheduled):
    figures, same = scheduled
    assert all(schedule.claims(figures, BURSTS, same).values())


@pytest.mark.parametrize(
    ("change", "claim"),
    [
        ({"latency_ms_bfs": 1e9}, "similar"),
        ({"latency_ms_bfs_ets": 1e9}, "hundredfold"),
        ({"latency_us_dfs_burst_10": 1e9}, "the larger the bursts"),
        ({"latency_us_dfs_burst_50": 1e9}, "BFS suffers more"),
        ({"latent_us_dfs_burst_50": 1.0}, "on the paper's lines"),
        ({"real_median_ms_dfs_ets": 1e9}, "in real time, too, ETS"),
        ({f"real_median_us_dfs_burst_50_at_{schedule.CALM}": 1e9}, "in real time, too, BFS"),
    ],
)
def test_schedule_claims_fail_where_they_should(scheduled, change, claim):
    figures, same = scheduled
    found = schedule.claims(figures | change, BURSTS, same)
    assert [holds for text, holds in found.items() if claim in text] == [False]


@pytest.mark.parametrize("n", BURSTS)
def test_latent_timestamps_are_exactly_on_the_lines(n):
    """(n + 1) c and (1.5 n + 0.5) c."""
    found = schedule.latent(1000, n)
    assert found[f"latent_us_dfs_burst_{n}"] == n + 1
    assert found[f"latent_us_bfs_burst_{n}"] == 1.5 * n + 0.5


def test_eqg_claims_hold_with_fixed_service_times():
    times = {(label, kind): cost for (node, kind), cost in fixed(1).items() for label in ("select", "union")}
    given, figures = eqg.arrivals(1), {}
    for selections in eqg.LENGTHS:
        found = {}
        for way in eqg.WAYS:
            make = eqg.graph_of(way, selections)
            found[way] = in_virtual_time(make, given, eqg.costs_of(make, times))
        assert schedule.alike(found)
        figures |= {f"latency_us_{way}_{selections}": mean_latency(results) for way, results in found.items()}
        figures[f"punctuation_over_arcs_{selections}"] = eqg.ratio(figures, selections)
    figures |= {f"real_median_us_{way}": figures[f"latency_us_{way}_1"] for way in eqg.WAYS}
    assert all(eqg.claims(figures, same=True).values())
    assert not all(eqg.claims(figures | {"punctuation_over_arcs_1": 0.99}, same=True).values())
    assert not all(eqg.claims(figures | {"latency_us_arcs_4": 1e9}, same=True).values())
    assert not eqg.claims(figures, same=False)["the same tuples come out each time"]


def test_burst_claims_hold_with_fixed_service_times():
    slides, seconds, given = (1, 50, 200), 1, burst.arrivals(1)
    figures = {"burstiness_arrivals": burst.burstiness([Result(a.at, a.item) for a in given if a.port == 0], seconds)}
    for slide in slides:
        found = {way: in_virtual_time(burst.graph_of(way, slide), given, fixed(3)) for way in burst.WAYS}
        assert schedule.alike(found)
        figures |= {f"burstiness_{way}_{slide}": burst.burstiness(r, seconds) for way, r in found.items()}
    figures |= {f"real_burstiness_{way}_200": figures[f"burstiness_{way}_200"] for way in burst.WAYS}
    assert all(burst.claims(figures, slides, same=True).values())
    assert not all(burst.claims(figures | {"burstiness_ets_50": 1e9}, slides, same=True).values())


def test_burstiness_is_the_range_of_counts_over_their_mean():
    rows = pl.DataFrame({"x": [1, 2]})
    out = [Result(0, rows), Result(1, rows), Result(burst.BIN, rows), Result(SECOND, rows), Result(0, Punctuation(1))]
    assert burst.burstiness(out, 0.06) == (4 - 0) / 2
