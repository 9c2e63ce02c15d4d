"""The parts of inorder-analytic, inorder-concurrency and inorder-rate: the server in virtual time, streams, claims."""

import pytest

from windrow.bench import inorder_analytic, inorder_concurrency, inorder_rate
from windrow.bench.response import (
    MICROS,
    MODES,
    WINDOW,
    Row,
    Server,
    arrivals,
    join,
    meant,
    played,
    response_ms,
    sound,
    steady,
)
from windrow.bench.response_real import timed
from windrow.planner.choose.costs.in_order import Streams, filter_order, sync_filter

# Figure 1(C), in units of 100: S is port 0, and a_8 arrives at 11. Keys are letters.
LETTERS = {letter: at for at, letter in enumerate("abcd")}
TUPLES = [("T", "a", 1), ("S", "d", 2), ("S", "c", 4), ("T", "a", 5), ("S", "b", 6), ("T", "b", 9), ("T", "c", 10)]
TUPLES += [("S", "a", 8), ("S", "a", 12)]
ARRIVED = {8: 11}
TP = 10


def example():
    rows = [
        Row(100 * ARRIVED.get(t, t), "ST".index(stream), 100 * t, number, LETTERS[letter])
        for number, (stream, letter, t) in enumerate(TUPLES)
    ]
    return sorted(rows)


class EachTakesTp(Server):
    """A tuple takes as long as any other, as in Figures 3 and 4."""

    def _compared(self, row):
        super()._compared(row)
        return 1


def delays(mode):
    """Of each tuple, until it is complete; those of the last one of a stream never are."""
    rows = example()
    operator = join(mode, window=601)  # inclusive windows of 6 units
    found = EachTakesTp(mode, TP, operator, window=601).play(rows)
    names = {row.number: f"{TUPLES[row.number][1]}{row.time // 100}" for row in rows}
    at = {names[n]: when for n, when in found.complete.items()}
    return at, [(names[a], names[b]) for a, b, _ in found.pairs]


def test_figure_3_tuples_of_t_wait_for_a12_and_are_then_joined_one_after_another():
    complete, pairs = delays("sync-filter")
    assert {name: complete[name] for name in ("a8", "b9", "c10")} == {
        "a8": 1100 + TP,
        "b9": 1200 + TP,
        "c10": 1200 + 2 * TP,
    }
    assert pairs == [("a8", "a5"), ("b6", "b9"), ("c4", "c10")]


def test_figure_4_they_are_joined_while_they_wait():
    """Lower by 3 tp in all, as the paper says, if results leave when a_12 arrives."""
    complete, pairs = delays("filter-order")
    assert {name: complete[name] for name in ("a8", "b9", "c10")} == {"a8": 1100 + TP, "b9": 1200, "c10": 1200}
    assert pairs == [("a8", "a5"), ("b6", "b9"), ("c4", "c10")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cost", [1, 5_000])
def test_operators_give_the_pairs_that_are_meant_each_when_its_later_row_is_complete(mode, cost):
    end = 90 * MICROS
    rows = arrivals(0.5, 3, end)
    expected = meant(rows, end)
    found = played(mode, rows, cost)
    assert len(expected) > 10
    assert sound(found, rows, expected, end)
    assert mode == "adaptive" or (found.hold_rows > 0) == (mode == "filter-order")


def test_constant_rates_give_the_means_of_the_equations():
    streams, end = Streams(1, 10, WINDOW / MICROS, 0.0002), 180 * MICROS
    rows = steady(streams.slow, 10, end)
    for mode, mean in (("sync-filter", sync_filter), ("filter-order", filter_order)):
        found = response_ms(rows, Server(mode, 200).play(rows), end, fast=True) / 1000
        assert found == pytest.approx(mean(streams), rel=0.01)


def test_calls_that_are_timed_give_the_same_pairs():
    rows = arrivals(1, 4, 20 * MICROS)
    (first, busy, pairs), (second, _, same) = (timed(mode, rows) for mode in MODES[:2])
    assert first.keys() == second.keys()
    assert sorted(pairs) == sorted(same) != []
    assert busy > 0


def test_claims_of_the_closed_forms_hold_and_fail_without_a_difference():
    figures = {"improvement_near": 0.4999999}
    for streams in inorder_analytic.BY_COST:
        figures |= inorder_analytic.closed(f"c_{streams.cost * 1e6:g}_us", streams)
    for streams in inorder_analytic.BY_RATE:
        figures |= inorder_analytic.closed(f"rate_{streams.slow:g}", streams)
    for share in inorder_analytic.PLAYED:
        streams = inorder_analytic.streams_of(share)
        sync, filtered = sync_filter(streams), filter_order(streams)
        figures |= {f"played_sync_s_{share:g}": sync, f"played_filter_s_{share:g}": filtered}
        figures[f"played_improvement_{share:g}"] = (sync - filtered) / sync
    assert all(inorder_analytic.claims(figures).values())
    assert sum(inorder_analytic.claims(dict.fromkeys(figures, 0.5)).values()) == 1  # Filter-Order is flat


def by_the_model(module, points, streams_of):
    """Figures as the equations have them, with an adaptive join that changes where it should."""
    figures = {"hold_rows_filter": 1, "hold_bytes_filter": 24}
    for at in points:
        streams = streams_of(at)
        sync, filtered, over = sync_filter(streams), filter_order(streams), streams.share >= 0.3
        name = f"{at:g}"
        figures |= {f"ms_sync_{name}": sync, f"ms_filter_{name}": filtered, f"ms_printed_{name}": sync}
        figures |= {f"ms_adaptive_{name}": filtered if over else sync, f"filtered_{name}": float(over)}
        figures |= {f"improvement_{name}": (sync - filtered) / sync, f"eq7_{name}": 0.0}
    return figures


@pytest.mark.parametrize(
    ("module", "points"), [(inorder_concurrency, inorder_concurrency.COSTS), (inorder_rate, inorder_rate.RATES)]
)
def test_claims_hold_of_the_model_and_fail_where_all_are_the_same(module, points):
    figures = by_the_model(module, points, module.streams_of)
    assert all(module.claims(figures, points, True).values())
    assert not all(module.claims(figures, points, False).values())
    found = module.claims(dict.fromkeys(figures, 1.0), points, True)
    assert len([claim for claim, holds in found.items() if not holds]) >= 2
