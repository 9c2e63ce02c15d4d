"""The cost model of the ring: each equation against a sum by hand, and where the formulas as printed disagree."""

import math
from dataclasses import replace
from itertools import product

import pytest

from windrow.operators.ring.costs import (
    Streams,
    Unit,
    bandwidth,
    best,
    central,
    latency,
    latency_of,
    lengths,
    loads,
    output_rate,
    probes,
    service_rate,
    simplified,
    stationary,
    workload,
)

UNIT = Unit(join=1e-3, send=30e-6, hop=60e-6, insert=2e-6, purge=3e-6)
ALIKE = Streams((50, 50, 50), (10, 10, 10), (0.1, 0.1, 0.1))
HELD = 500.0


def test_a_row_is_compared_with_each_row_of_each_state_that_it_probes():
    pairs, carried = probes(ALIKE)
    assert pairs == HELD + HELD * 0.1 * HELD  # the rows of the first window; what that finds, with those of the second
    assert carried == HELD * 0.1


def test_equation_1():
    assert central(ALIKE, UNIT) == pytest.approx(5e-6 + 1e-3 * (HELD + 0.1 * HELD * HELD))
    assert workload(ALIKE, UNIT, 7) == pytest.approx(central(ALIKE, UNIT) + 30e-6 * 7 * (1 + 0.1 * HELD))


def test_equation_1_as_printed_counts_results_where_equation_2_needs_comparisons():
    """The sum over k = 2.. of the products of lambda W S has no term for the rows that the first probe looks at. With
    it the step from Eq. 1 to Eq. 2, L_C (1 + T_s N / (lambda W T_j)), is exact but for inserting and purging."""
    free = replace(UNIT, insert=0, purge=0)
    assert simplified(ALIKE, free, 7) == pytest.approx(workload(ALIKE, free, 7))
    printed = free.join * sum((HELD * 0.1) ** (k - 1) for k in (2, 3))
    sent = free.send * 7 * (1 + HELD * 0.1)
    assert sent == pytest.approx(10 * printed * free.send * 7 / (HELD * free.join))  # where Eq. 2 has them equal


def test_equation_3_is_the_rate_of_one_node_where_equation_4_has_those_of_all():
    """1 / L_PSP falls with every node, while the output of Eq. 4 grows: N nodes work on N rows at a time."""
    one, many = (service_rate(ALIKE, UNIT, nodes) for nodes in (1, 8))
    assert many / one == pytest.approx(output_rate(ALIKE, UNIT, 8) / output_rate(ALIKE, UNIT, 1))
    assert 1 / workload(ALIKE, UNIT, 8) < 1 / workload(ALIKE, UNIT, 1)


def test_equation_4_grows_with_every_node_towards_a_limit():
    rates = [output_rate(ALIKE, UNIT, nodes) for nodes in range(1, 200)]
    assert rates == sorted(rates)
    assert rates[1] == pytest.approx(1 / (1 / 2 + 30e-6 / (HELD * 1e-3)), rel=1e-3)
    assert rates[-1] < HELD * 1e-3 / 30e-6


def test_equation_5():
    assert latency(ALIKE, UNIT, 4) == pytest.approx(1.5 * 60e-6 + workload(ALIKE, UNIT, 4) / 4)
    cheap = replace(UNIT, join=1e-9)
    assert latency(ALIKE, cheap, 400) == pytest.approx(399 / 2 * 60e-6 + 3 * 400 * 60e-6)


@pytest.mark.parametrize(("join", "selectivity"), [*product((1e-7, 1e-6, 1e-5, 1e-4), (0.05, 0.1, 0.5))])
def test_the_best_length_is_where_the_model_has_its_least_latency(join, selectivity):
    streams, unit = replace(ALIKE, selectivities=(selectivity,) * 3), replace(UNIT, join=join)
    chosen = latency(streams, unit, best(streams, unit, 400))
    assert chosen <= 1.03 * min(latency(streams, unit, nodes) for nodes in range(1, 401))


def test_the_length_of_section_5_2_is_near_the_best_one():
    for join in (1e-6, 1e-5, 1e-4):
        unit = replace(UNIT, join=join)
        found = max(1, round(min(stationary(ALIKE, unit))))
        least = min(latency(ALIKE, unit, nodes) for nodes in range(1, 2000))
        assert latency(ALIKE, unit, found) <= 1.3 * least
    first, second = stationary(ALIKE, UNIT)
    assert central(ALIKE, UNIT) / first + 30e-6 * (1 + 50) == pytest.approx(3 * first * 60e-6)
    assert (second - 1) / 2 * 60e-6 == pytest.approx(central(ALIKE, UNIT) / second)


def test_the_best_length_grows_with_the_cost_of_a_pair():
    chosen = [best(ALIKE, replace(UNIT, join=join), 64) for join in (1e-9, 1e-7, 1e-6, 1e-5, 1e-3)]
    assert chosen == sorted(chosen)
    assert chosen[0] == 1
    assert chosen[-1] > 50


def test_equation_6():
    streams = replace(ALIKE, rates=(50, 20, 50))
    assert bandwidth(streams, UNIT, 4, 1000) == pytest.approx(1000 / (1e-3 * 20 * 10 / 4))


# -- lengths that differ ----------------------------------------------------------------------------------------------
def test_the_loads_of_nodes_add_up_to_equation_1():
    for nodes in (1, 2, 5):
        found = loads(ALIKE, UNIT, (nodes,) * 3)
        inserted = 5e-6 * (nodes - 1)  # a row is inserted at, and leaves, every node: Eq. 1 counts it once
        assert sum(found) == pytest.approx(workload(ALIKE, UNIT, nodes) + 30e-6 * (nodes - 1) + inserted)
        assert max(found) == pytest.approx(min(found), rel=0.01)


def test_a_short_slice_makes_the_first_nodes_busier():
    first, last = loads(ALIKE, UNIT, (4, 4, 1))[::3]
    assert first > 1.5 * last


def test_streams_with_few_rows_have_short_rings():
    streams = Streams((50, 50, 0.3), (10, 10, 10), (0.1,) * 3)
    assert lengths(streams, UNIT, 8) == (8, 8, 3)


@pytest.mark.parametrize("seed", range(12))
def test_lengths_are_near_the_best_of_all(seed):
    """The heuristic looks at M N of the N^M slicings."""
    values = [(3 + 7 * seed * (n + 1)) % 41 + 0.5 for n in range(3)]
    windows = [(5 + 3 * seed * (n + 2)) % 17 + 1.0 for n in range(3)]
    streams = Streams(tuple(values), tuple(windows), (0.05 * (1 + seed % 3),) * 3)
    for join in (1e-7, 1e-5, 1e-3):
        unit = replace(UNIT, join=join)
        least = min(latency_of(streams, unit, each) for each in product(range(1, 7), repeat=3))
        assert latency_of(streams, unit, lengths(streams, unit, 6)) <= 1.1 * least


def test_with_alike_streams_one_number_is_enough():
    for join in (1e-7, 1e-6, 1e-4):
        unit = replace(UNIT, join=join)
        found = lengths(ALIKE, unit, 32)
        assert math.isclose(latency(ALIKE, unit, max(found)), latency(ALIKE, unit, best(ALIKE, unit, 32)), rel_tol=0.05)
