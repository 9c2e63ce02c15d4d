"""The parts of ring-length and ring-adapt: what comes, that real and simulated rings find the same, and the claims."""

import threading
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from windrow.bench import ring_adapt, ring_length, ring_real
from windrow.bench.ring_load import Likely, Load, latencies, response, response_by
from windrow.hosts.ring.links import Listener, TcpLinks
from windrow.hosts.ring.simulated_machines import Machines
from windrow.progress import Punctuation

LOAD = Load(ways=3, selectivity=0.2, rate=20.0, window=0.4, seconds=1.0)


def rows_of(come):
    return [each for each in come if not isinstance(each.item, Punctuation)]


def plain(found):
    return sorted(found.select("a", "b", "c", "@t").rows())


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_the_share_of_true_pairs_is_the_one_that_is_asked_for(share):
    rng = np.random.default_rng(5)
    x, y = (pl.Series(rng.integers(10**6, size=20_000)) for _ in "xy")
    assert Likely(share)(x, y).mean() == pytest.approx(share, abs=0.01)
    same = pl.Series(np.full(20_000, x[0]))  # of the partners of one row, too
    assert Likely(share)(same, y).mean() == pytest.approx(share, abs=0.05)


def test_rows_come_at_their_rates_and_are_promised_at_once():
    load = Load(2, 0.1, 5.0, 1.0, 200.0, later=((100.0, 10.0), (150.0, 0.5)))
    come = load.come()
    assert come == sorted(come, key=lambda each: each.at)
    for port in (0, 1):
        at = np.array([each.at for each in rows_of(come) if each.port == port])
        for since, until, rate in ((0, 100, 5), (100, 150, 10), (150, 200, 0.5)):
            count = ((at >= since) & (at < until)).sum()
            assert count == pytest.approx(rate * (until - since), abs=4 * (rate * (until - since)) ** 0.5)
    promised, last = -1, -1
    for each in come:
        if isinstance(each.item, Punctuation):
            assert each.item.value == last + 1
            promised = each.item.value
        else:
            last = each.item["@t"].item()
            assert last >= promised


def test_responses_are_averages_of_what_came_in_a_time():
    found = pl.DataFrame({"@came": [1.0, 2.0, 2.5, 4.0], "@found": [1.1, 2.2, 2.8, 5.0]})
    assert response(found, 2.0) == pytest.approx(500)
    assert latencies(found, 3.0).tolist() == [1.0]
    first, second, none = response_by(found, [1.0, 2.0, 3.0, 4.0])
    assert [first, second] == pytest.approx([100, 250])
    assert np.isnan(none)


def test_a_real_ring_finds_what_a_simulated_one_finds():
    load, nodes = replace(LOAD, seconds=0.6), 2
    listeners = [Listener() for _ in range(nodes)]
    links = [TcpLinks(n, listeners[n], [each.address for each in listeners], b"s" * 32) for n in range(nodes)]
    found = [None] * nodes

    def work(node):
        found[node] = ring_real._node(links[node], load, 0.0)

    threads = [threading.Thread(target=work, args=(node,), daemon=True) for node in range(nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for each in links:
        each.close()
    meant = ring_length.simulated(load, nodes, Machines())
    assert plain(pl.concat([rows for rows, *_ in found])) == plain(meant.found) != []
    assert all(pairs > 0 for _, pairs, _ in found)
    assert all((rows["@found"] > rows["@came"]).all() for rows, *_ in found)


def test_a_point_of_ring_length_has_the_response_and_the_state():
    one, four = (ring_length.point(3, 0.1, "small", nodes) for nodes in (1, 4))
    assert one["ms_3_0.1_small_1"] > 2 * four["ms_3_0.1_small_4"]
    assert one["rows_3_0.1_small_1"] == pytest.approx(four["rows_3_0.1_small_4"], rel=0.02)


def length_figures(bests, ratio=1.1, growth=1.0):
    names = [ring_length.name_of(3, share, "small") for share in ring_length.SELECTIVITIES]
    figures = {f"best_{name}": best for name, best in zip(names, bests, strict=True)}
    figures |= {f"rows_{name}_{n}": 60 * growth ** (n > 4) for name in names for n in ring_length.FEW}
    figures |= {
        f"ms_{name}_{n}": 1.0 + (n != best) for name, best in zip(names, bests, strict=True) for n in ring_length.FEW
    }
    return figures | {"simulated_over_real_1": ratio, "simulated_over_real_2": 0.9}


@pytest.mark.parametrize(
    ("figures", "fails"),
    [
        (length_figures([8, 8, 12]), []),
        (length_figures([8, 8, 8]), ["larger", "moves"]),
        (length_figures([12, 8, 8]), ["larger"]),
        (length_figures([4, 8, 12]), ["minimum"]),
        (length_figures([8, 8, 12], growth=1.1), ["as many"]),
        (length_figures([8, 8, 12], ratio=1.3), ["real"]),
    ],
)
def test_claims_of_ring_length_follow_from_its_figures(figures, fails):
    joins = {(3, share, "small"): ring_length.FEW for share in ring_length.SELECTIVITIES}
    holds = ring_length.claims(figures, joins, (1, 2))
    found = [claim for claim, held in holds.items() if not held]
    assert len(found) == len(fails)
    assert all(word in claim for word, claim in zip(fails, found, strict=True))


def test_ring_adapt_begins_with_the_length_that_the_model_gives_and_looks_at_all_of_the_time():
    assert ring_adapt.ADAPTED["fixed"].nodes == ring_adapt.FIXED < ring_adapt.MOST
    edges = ring_adapt.Times(16.0, 40.0).edges
    assert (edges[0], edges[-1], len(edges)) == (ring_adapt.WINDOW, 40.0, 9)


def test_nodes_that_leave_hold_rows_no_longer_if_relocation_is_aggressive(monkeypatch):
    monkeypatch.setattr(ring_adapt, "FIXED", 2)
    times = ring_adapt.Times(10.0, 0.0)
    figures = {}
    for relocation in ("passive", "aggressive"):
        figures |= ring_adapt.relocated(relocation, times)
    assert figures["leave_windows_aggressive"] < 0.1 < figures["leave_windows_passive"] < 1
    assert figures["join_ms_passive"] == pytest.approx(figures["join_ms_aggressive"], rel=0.2)
