"""ring-atr, ring-ctr, ring-table: counts are right, all ways find the same, and claims fail where they should."""

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

from windrow.bench import ring_added, ring_atr, ring_copies, ring_copies_real, ring_ctr, ring_table
from windrow.bench.ring_load import Load
from windrow.bench.ring_real import real
from windrow.hosts.ring.simulated import Simulation
from windrow.operators.ring.layout import Wishes
from windrow.progress import Punctuation

COME = ring_copies.coming(14, rate=2.0)
ROWS = [each for each in COME if not isinstance(each.item, Punctuation)]
POINT = ring_copies.Point(1.0, 2.0, 0.0, (3, 4))
OTHER = ring_copies.Point(1.0, 2.0, 0.0, (3, 5))


def test_rows_come_in_order_with_promises_of_all_streams():
    assert len(COME) == 4 * len(ROWS)
    times = [each.item["@t"][0] for each in ROWS]
    assert times == sorted(set(times))
    assert [each.at for each in COME] == sorted(each.at for each in COME)
    for at, row in zip(range(0, len(COME), 4), ROWS, strict=True):
        assert [(e.port, e.item.value) for e in COME[at + 1 : at + 4]] == [(p, row.item["@t"][0] + 1) for p in range(3)]


def test_one_pair_in_ten_is_alike():
    numbers = pl.Series(np.random.default_rng(2).integers(1 << 20, size=(2, 20_000))[0])
    others = pl.Series(np.random.default_rng(3).integers(1 << 20, size=20_000))
    assert ring_copies.alike(numbers, others).mean() == pytest.approx(0.1, abs=0.01)


def meant():
    """All results, from the definition: rows are held for WINDOW seconds."""
    rows = [[(e.item["@t"][0], e.item[name][0]) for e in ROWS if e.port == n] for n, name in enumerate("abc")]
    found = set()
    for t, a in rows[0]:
        for u, b in rows[1]:
            if abs(t - u) < 10 * ring_copies.MICROS and ring_copies.alike(pl.Series([a]), pl.Series([b]))[0]:
                for v, c in rows[2]:
                    times = (t, u, v)
                    near = max(times) - min(times) < 10 * ring_copies.MICROS
                    if near and ring_copies.alike(pl.Series([b]), pl.Series([c]))[0]:
                        found.add((a, b, c))
    return found


def test_all_ways_find_what_is_meant():
    expected = meant()
    for way, options in (("ring", {}), ("atr", {"segment": 10}), ("ctr", {"copies": 2})):
        found = ring_copies.simulated(way, 4, COME, **options).run().found.select(*"abc").rows()
        assert set(found) == expected
        assert len(found) == len(expected) > 5


def test_state_is_counted_with_its_copies():
    ring, ctr, atr = (ring_copies.point(way, 5, COME, segment=10) for way in ("ring", "ctr", "atr"))
    assert ring.copies == 0 < atr.copies
    assert ctr.rows == 2 * ring.rows
    assert ctr.copies == ring.rows
    assert ring_copies.agree([ring, ctr, atr])
    assert not ring_copies.agree([POINT, OTHER])


def test_the_table_counts_what_only_some_ways_have():
    found = {way: ring_table.watched(way, 5, COME)[0] for way in ring_table.WAYS}
    assert set(found["atr"]) == set(ring_table.TABLE)
    for name in ("covers", "route_bytes", "skipped"):
        assert found["ctr"][name] > 0 == found["atr"][name] == found["psp"][name]
    assert found["ctr"]["covers"] <= 2  # a hop for each of the two other streams
    assert found["psp"]["held"] == 1
    assert found["ctr"]["held"] == 2
    assert 1 <= found["psp"]["unit_rows"] < 1.1  # rows that come in one round travel together
    assert found["atr"]["imbalance"] > found["psp"]["imbalance"]


def test_segments_are_counted_when_they_are_over():
    by_segment = ring_table.of_segments(ROWS, 0)
    assert by_segment == [sum(each.port == 0 for each in ROWS)]


@pytest.mark.parametrize("name", ring_added.CHANGES)
def test_only_a_ring_that_is_asked_to_moves_state(name, monkeypatch):
    monkeypatch.setattr(ring_added, "CHANGED", 12)
    monkeypatch.setattr(ring_added, "END", 15)
    monkeypatch.setattr(ring_added, "coming", lambda seconds: ring_copies.coming(seconds, rate=3.0))
    found = ring_added.added(*ring_added.CHANGES[name])
    assert (found["moved_rows"] > 0) == (name == "psp_aggressive")
    assert 0 < found["share_s"] <= 3


# -- claims ------------------------------------------------------------------------------------------------------------
def failing(claims, good, **changed):
    """How many claims fail with other figures."""
    return list(claims({**good, **changed}).values()).count(False)


def test_claims_about_aligned_routing():
    good = {"ms_atr_10_4": 10.0, "ms_atr_10_9": 9.0, "copies_atr_10_4": 1, "copies_atr_10_9": 1, "rows_atr_10_4": 9}
    good |= {"rows_atr_10_9": 9, "rows_psp_4": 5, "rows_psp_9": 5, "copies_psp_4": 0, "copies_psp_9": 0}

    def claims(figures, points=(POINT, POINT)):
        return ring_atr.claims(figures, points, (10,), (4, 9))

    assert failing(claims, good) == 0
    assert failing(claims, good, ms_atr_10_9=8.9) == 1
    assert failing(claims, good, copies_atr_10_9=0) == 1
    assert failing(claims, good, rows_atr_10_4=5) == 1
    assert failing(claims, good, copies_psp_4=1) == 1
    assert not all(claims(good, (POINT, OTHER)).values())
    figure = Figure()
    figures = good | {"ms_psp_4": 1.0, "ms_psp_9": 2.0}
    ring_atr.plot(figure, figures, (10,), (4, 9))
    assert len(figure.axes) == 3


def test_claims_about_coordinated_routing():
    shown = {2: (4, 8), 4: (8,)}
    good = {"ms_ctr_2_4": 9.0, "ms_ctr_2_8": 5.0, "ms_ctr_4_8": 6.0, "copies_psp_4": 0, "copies_psp_8": 0}
    good |= {"rows_ctr_2_4": 100, "rows_ctr_2_8": 105, "rows_ctr_4_8": 200}

    def claims(figures, points=(POINT, POINT)):
        return ring_ctr.claims(figures, points, shown, (4, 8))

    assert failing(claims, good) == 0
    assert failing(claims, good, ms_ctr_2_8=9.5) == 2  # no longer falls, nor is less than with more copies
    assert failing(claims, good, ms_ctr_4_8=4.0) == 1
    assert failing(claims, good, rows_ctr_4_8=105) == 1
    assert failing(claims, good, rows_ctr_2_8=106) == 1
    assert failing(claims, good, copies_psp_8=1) == 1
    figure = Figure()
    ring_ctr.plot(
        figure, good | dict.fromkeys(["ms_psp_4", "ms_psp_8", "rows_psp_4", "rows_psp_8"], 1.0), shown, (4, 8)
    )
    assert len(figure.axes) == 3


def test_real_runs_are_near_simulated_ones_or_the_claim_fails():
    assert ring_copies_real.near({}) == {}
    good = {"simulated_over_real_atr_2": 0.8, "simulated_over_real_psp_4": 1.2}
    assert failing(ring_copies_real.near, good) == 0
    assert failing(ring_copies_real.near, good, simulated_over_real_atr_2=0.79) == 1


def test_real_nodes_find_what_simulated_ones_do():
    load = Load(ways=3, selectivity=0.5, rate=30.0, window=0.2, seconds=0.4)
    expected = Simulation(load.joining(), Wishes(1, 1), load.come()).run().found.select(*"abc").sort("a", "b", "c")
    assert expected.height > 5
    for way in ("atr", "ctr"):
        found = real(load, 2, 0.0, way, Wishes(2, 2, segment=200_000)).found
        assert found.select(*"abc").sort("a", "b", "c").equals(expected)


def test_claims_about_the_table():
    values = {"atr": 0.0, "ctr": 2.0, "psp": 0.0}
    good = {f"{name}_{way}": value for name in ring_table.TABLE for way, value in values.items()}
    good |= {"unit_rows_atr": 20, "held_atr": 1.5, "held_psp": 1, "changes_psp": 9, "sent_bytes_psp": 3}
    good |= {f"{what}_{name}": 0 for what in ("moved_rows", "share_s") for name in ring_added.CHANGES}
    good["moved_rows_psp_aggressive"] = 5

    def claims(figures, points=(POINT, POINT)):
        return ring_table.claims(figures, points)

    assert failing(claims, good) == 0
    for name, value in (
        ("routing_us_psp", 2.0),
        ("route_bytes_ctr", 0.0),
        ("skipped_atr", 1.0),
        ("unit_rows_atr", 19.0),
        ("held_ctr", 1.0),
        ("changes_atr", 9.0),
        ("moved_rows_ctr_passive", 1.0),
        ("sent_bytes_psp", 2.0),
    ):
        assert failing(claims, good, **{name: value}) == 1, name
    ring_table.plot(figure := Figure(), good)
    assert len(figure.axes) == 1
