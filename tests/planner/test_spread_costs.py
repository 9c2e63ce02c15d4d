"""What joins by functions cost when they are spread over nodes: the statistics, the length, and what is chosen."""

from dataclasses import replace

import numpy as np
import pytest

import windrow as wr
from windrow.operators.ring.costs import Unit
from windrow.planner.choose import calibrated
from windrow.planner.choose.costs.multiway import Streams
from windrow.planner.choose.costs.spread import Spread

KNOWN = Streams((2.0, 5.0, 0.01), (100, 40, 100), np.ones((3, 1)), "declared")
FUNCTION = (frozenset((0, 1)),)


def test_windows_of_rows_hold_as_many_rows_whatever_the_rate():
    assert Spread(KNOWN, FUNCTION, False).held == [200.0, 200.0, 1.0]
    assert Spread(KNOWN, FUNCTION, False, by_rows=(False, True, False)).held == [200.0, 40, 1.0]


def test_inputs_of_which_something_is_known_have_lengths_of_their_own():
    spread = Spread(KNOWN, FUNCTION, False)
    assert spread.initial(4, True, "latency") == (4, 4, 1)
    assert Spread(replace(KNOWN, basis="assumed"), FUNCTION, False).initial(4, True, "latency") == ()


def test_as_many_nodes_as_are_asked_for_hold_state():
    few = Streams((0.02, 0.02, 0.01), (100, 100, 100), np.ones((3, 1)), "declared")
    assert Spread(few, FUNCTION, False).initial(8, False, "latency") == (2, 2, 1)
    assert Spread(few, FUNCTION, False).initial(8, True, "latency") == (8, 8, 1)


def test_what_was_measured_on_this_machine_is_what_plans_take(tmp_path, monkeypatch):
    monkeypatch.setenv(calibrated.PLACE, str(tmp_path / "costs.json"))
    rows = [{"t": 1, "x": 1}]
    streams = [wr.stream(rows, "t", slack=0, name=name) for name in "ab"]
    join = wr.multi_join(*streams, within=10, where=lambda a, b: a.x < b.x, nodes=2)
    assert "30 us to send and receive a row, and 60 us for a hop" in join.explain()
    costs = calibrated.REFERENCE.unit
    calibrated.write(costs, tmp_path / "costs.json", Unit(send=7e-6, hop=9e-6, insert=1e-6, purge=2e-6))
    assert calibrated.found().ring == Unit(send=7e-6, hop=9e-6, insert=1e-6, purge=2e-6)
    assert "7 us to send and receive a row, and 9 us for a hop" in join.explain()
    calibrated.write(costs, tmp_path / "costs.json")  # as files from before are
    assert calibrated.found().ring == Unit()


@pytest.mark.parametrize("seconds", [{"send": 1e-6}, {"send": 1, "hop": -1, "insert": 1, "purge": 1}])
def test_costs_of_a_ring_that_cannot_be_are_not_used(tmp_path, monkeypatch, seconds):
    monkeypatch.setenv(calibrated.PLACE, str(tmp_path / "costs.json"))
    monkeypatch.setattr(calibrated, "ring_seconds", lambda ring: seconds)
    calibrated.write(calibrated.REFERENCE.unit, tmp_path / "costs.json", Unit())
    assert calibrated.found() is calibrated.REFERENCE
