"""The parts of optimizer-grid that measure nothing: the workloads, what is chosen, and the claims."""

from itertools import product

import pytest
from matplotlib.figure import Figure

from windrow.bench import optimizer_grid as grid
from windrow.bench.optimizer_grid import Case, Joined, Measured
from windrow.hosts.local import LocalRun
from windrow.operators import WindowJoin
from windrow.operators.joins.choosing import WAYS
from windrow.planner.choose.costs.aggregation import TIME

CASE = Case(1000, 20, 6, 3.0)
JOIN = Joined((400, 1600), (1, 2), 50, 0.5)


@pytest.mark.parametrize("quick", [False, True])
def test_the_grids_have_every_combination_once(quick):
    for cases in (grid.grid(quick), grid.joins(quick)):
        assert len(set(cases)) == len(cases) > 3
    assert len(grid.grid(False)) == 54


def test_rows_come_at_their_rate_and_none_is_late():
    data = grid.generate(CASE, 9000)
    assert data["t"].max() - data["t"].min() == pytest.approx(9000, rel=0.01)
    behind = (data["t"].cum_max() - data["t"]).max()
    assert 2500 < behind <= 3000
    run = LocalRun(grid.asked(CASE, data, "wid").plan())
    assert grid.spent(run, data) > 0
    assert (run.counts["rows_in"], run.counts["rows_late"]) == (9000, 0)


def test_all_algorithms_of_a_case_run_and_one_of_them_is_chosen(monkeypatch):
    monkeypatch.setattr(grid, "LEAST", 2000)
    found = grid.measured(Case(1000, 5, 1, 0.0), 1)
    assert set(found.micros) == set(TIME)
    assert found.chosen in TIME
    assert found.ratio >= 1


def test_ways_take_turns_and_the_least_counts():
    ran, costs = [], iter([5.0, 9.0, 4.0, 8.0, 3.0, 7.0])

    def spends(name):
        ran.append(name)
        return next(costs)

    assert grid.in_turns(["a", "b"], 3, spends) == {"a": 4.0, "b": 3.0}
    assert ran == ["b", "a", "a", "b", "b", "a"]


def test_a_join_finds_the_same_pairs_in_every_way_and_no_row_is_late(monkeypatch):
    monkeypatch.setattr(grid, "JOINED", 3000)
    batches = grid.steps(JOIN)
    assert sum(rows.height for both in batches for rows in both) == pytest.approx(3000, rel=0.2)
    pairs = []
    take = WindowJoin.on_batch

    def recorded(join, port, rows):
        items = take(join, port, rows)
        pairs.append(sum(item.height for item in items if hasattr(item, "height")))
        assert not [item for item in items if getattr(item, "kind", "") == "late"]
        return items

    monkeypatch.setattr(WindowJoin, "on_batch", recorded)
    found = set()
    for way in product(WAYS, WAYS):
        pairs.clear()
        assert grid.joining(JOIN, way, batches) > 0
        found.add(sum(pairs))
    assert len(found) == 1
    near = 1.5**2 - 0.5**2 / 2  # of the pairs of times in 1.5 seconds, those with a left row of the second before
    there = (5 / 6) ** 2  # of the last half second, half of the rows have not come yet
    assert found.pop() == pytest.approx(JOIN.rates[0] * JOIN.rates[1] / JOIN.keys * near * there, rel=0.1)


def test_the_model_of_a_join_chooses_by_keys_and_rates():
    few, many = (grid.chosen(Joined((1000, 1000), (10, 10), keys, 0.0)) for keys in (1, 100_000))
    assert few[0] == few[1]
    assert many[0] == many[1] != "loops"
    assert few != many


def test_the_claims_follow_from_the_worst_of_each_grid():
    good = [Measured(CASE, {"paned": 1.0, "wid": 1.2}, "wid"), Measured(JOIN, {"a": 2.0, "b": 3.0}, "a")]
    outcome = grid.outcome(good)
    assert outcome.figures["worst of window aggregations"] == 1.2
    assert outcome.figures["share within 1.2 of window joins"] == 1.0
    assert list(outcome.holds.values()) == [True, True]
    bad = [*good, Measured(JOIN, {"a": 2.0, "b": 3.0}, "b")]
    assert list(grid.outcome(bad).holds.values()) == [True, False]
    assert grid.outcome(bad).figures["share within 1.2 of window joins"] == 0.5
    outcome.plot(Figure())
