"""How a join decides to keep rows in another way: by what it has seen, and never for less than a change costs."""

import numpy as np
import pytest

from windrow.operators.joins.choosing import EACH, SMALL, WAYS, Choosing
from windrow.operators.joins.costs import Probe, Unit, inserted, moved, probed

UNIT = Unit()


def hashes(rows, keys, seed=0):
    return np.random.default_rng(seed).integers(0, keys, rows).astype(np.uint32)


def fed(choosing, batches, rows=200, keys=1000, held=5000, keeping=("runs", "runs"), near=0.0):
    """How many batches of both sides it takes until something changes, and what."""
    for number in range(batches):
        for side in (0, 1):
            given = hashes(rows, keys, 2 * number + side)
            found = choosing.saw(side, given, round(near * rows), rows, keeping, [held, held])
            if found:
                return number, dict(found)
    return None


def test_a_change_waits_until_it_has_paid():
    number, found = fed(Choosing(Unit(run=1e5)), 1000)
    assert set(found.values()) == {"hash"}
    saved = probed("runs", Unit(run=1e5), Probe(200, 5000, 1e-3, 0)) - probed("hash", UNIT, Probe(200, 5000, 1e-3, 0))
    assert number >= moved("hash", UNIT, 5000) // saved // 2
    assert fed(Choosing(Unit(run=1e5)), 1, held=100_000) is None


def cost(way, unit):
    return probed(way, unit, Probe(200, 5000, 1e-3, 0.0)) + inserted(way, unit, 200, 5000)


@pytest.mark.parametrize(("more", "changes"), [(1.05, False), (1.3, True)])
def test_what_is_not_clearly_cheaper_is_no_reason(more, changes):
    units = (Unit(merge=merge / 10, sort=0) for merge in range(3000))
    unit = next(unit for unit in units if cost("runs", unit) >= more * cost("hash", unit))
    assert (fed(Choosing(unit, ("runs", "hash")), 300) is not None) == changes


def test_a_list_is_not_scanned_by_many_rows_that_come_at_once():
    choosing = Choosing(UNIT)
    assert choosing.before(0, 3, ["runs", "loops"], [0, 300]) == {}
    assert choosing.before(0, 50_000, ["runs", "loops"], [0, 2000]) in ({1: "runs"}, {1: "hash"})


def test_the_share_of_equal_keys_is_learnt_and_forgotten():
    choosing = Choosing(UNIT)
    fed(choosing, 40, keys=10, held=10)
    assert choosing.windows[0].alike == pytest.approx(0.1, rel=0.2)
    fed(choosing, 40, keys=1000, held=10)
    assert choosing.windows[0].alike < 0.005


def test_sorted_batches_say_the_same():
    orders = Choosing(UNIT), Choosing(UNIT)
    for number in range(30):
        for side in (0, 1):
            given = hashes(2000, 50, 2 * number + side)
            for choosing, rows in zip(orders, (given, np.sort(given)), strict=True):
                choosing.saw(side, rows, 0, 2000, ("runs", "runs"), (100, 100))
    assert orders[0].windows[0].alike == pytest.approx(orders[1].windows[0].alike, rel=0.1)


def test_of_small_batches_some_stand_for_all():
    choosing = Choosing(Unit(run=1e5))
    found = [choosing.saw(0, hashes(SMALL - 1, 9), 0, 1, ("runs", "runs"), (50, 50)) for _ in range(EACH - 1)]
    assert found == [{}] * (EACH - 1)
    assert not len(choosing.windows[0].latest)
    choosing.saw(0, hashes(SMALL - 1, 9), 0, 1, ("runs", "runs"), (50, 50))
    assert len(choosing.windows[0].latest) == SMALL - 1


def test_what_it_knows_is_what_it_restores():
    first, second = Choosing(UNIT), Choosing(UNIT)
    fed(first, 3)
    first.saw(0, hashes(3, 9), 0, 3, ("runs", "runs"), (5, 5))
    assert second.restore(first.snapshot(("hash", "runs")), ("runs", "runs")) == ["hash", "runs"]
    assert second.snapshot(("hash", "runs")).equals(first.snapshot(("hash", "runs")))
    for given in (hashes(300, 7), hashes(20, 7)):
        asked = (1, given, 5, len(given), ("runs", "runs"), (900, 900))
        assert first.saw(*asked) == second.saw(*asked)
    assert second.restore(None, ("runs", "loops")) == ["runs", "loops"]
    assert not len(second.windows[0].latest)


def test_only_ways_that_are_given_are_chosen():
    choosing = Choosing(Unit(run=1e6), ("runs", "loops"))
    _, found = fed(choosing, 400, rows=20, held=200)
    assert set(found.values()) == {"loops"}
    assert WAYS == ("runs", "hash", "loops")
