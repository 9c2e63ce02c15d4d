"""The closed forms of Hammad et al., against each other, and against rows that are counted one by one."""

from fractions import Fraction
from itertools import pairwise

import pytest

from windrow.planner.choose.costs.in_order import (
    BOUND,
    ONE_SERVER_BOUND,
    Streams,
    filter_order,
    filter_order_total,
    filters,
    improvement,
    improvement_of,
    keeps_up,
    one_server_keeps_up,
    sync_filter,
    sync_filter_total,
)

GRID = [
    Streams(Fraction(slow), Fraction(slow) * n, Fraction(60), Fraction(cost))
    for slow in ("0.01", "0.1", "1")
    for n in (1, 2, 10, 100)
    for cost in ("0.00001", "0.0005", "0.001")
]
EXAMPLE = Streams(Fraction(1), Fraction(10), Fraction(60), Fraction("0.0005"))  # of section 7.2.1


def gap(streams):
    """When the n rows of a gap arrive: the first with a row of the slow stream, the next of which comes at the end."""
    return [k / streams.fast for k in range(int(streams.n))], 1 / streams.slow


def synced(streams):
    """Rows are taken one after another when the row of the slow stream is there."""
    arrivals, end = gap(streams)
    return [end + (k + 1) * streams.service - at for k, at in enumerate(arrivals)]


def filtered(streams, first=0):
    """Rows are joined as they come, and wait for the slow stream. ``first``: what comes before the results leave."""
    arrivals, end = gap(streams)
    return [end + first - at for at in arrivals]


@pytest.mark.parametrize("streams", GRID)
def test_totals_and_means_are_those_of_rows_counted_one_by_one(streams):
    assert sync_filter_total(streams) == sum(synced(streams)) == streams.n * sync_filter(streams)
    assert filter_order_total(streams) == sum(filtered(streams)) == streams.n * filter_order(streams)


@pytest.mark.parametrize("streams", GRID)
def test_equation_7_is_equation_6_without_any_rounding(streams):
    assert improvement_of(sync_filter(streams), filter_order(streams)) == improvement(streams)
    assert improvement(streams) < (BOUND if keeps_up(streams) else 1)
    assert filters(streams, streams.share)
    assert improvement(streams) == streams.share / (1 + streams.share)  # of alpha: alpha / (1 + alpha)


def test_the_improvement_tends_to_a_half_where_equation_1_holds():
    near = [Streams(1, 10, 60, (1 - 10.0**-k) / 600) for k in range(1, 7)]
    found = [improvement(s) for s in near]
    assert all(a < b < BOUND for a, b in pairwise(found))
    assert found[-1] == pytest.approx(BOUND, abs=1e-6)


def test_the_numbers_of_the_paper():
    assert float(EXAMPLE.share) == 0.3
    assert float(improvement(EXAMPLE)) == pytest.approx(0.23, abs=0.01)  # "about 25 %"
    assert improvement(Streams(1, 10, 60, 0.0015)) == pytest.approx(0.47, abs=0.005)  # alpha 0.9
    low = Streams(0.1, 1, 86_400, 0.0001)  # Example 2: "from 10 seconds to 5 seconds"
    assert sync_filter(low) == pytest.approx(10.25, abs=0.01)
    assert filter_order(low) == pytest.approx(5.5)


# -- errata ------------------------------------------------------------------------------------------------------------
def test_the_service_time_that_the_equations_call_that_of_a_row_of_s_is_that_of_a_row_of_t():
    """Section 4.1 says that a row of S takes c|w|l1; it meets the window of T, which has |w|l2 rows."""
    window_of_slow, window_of_fast = (EXAMPLE.window * rate for rate in (EXAMPLE.slow, EXAMPLE.fast))
    assert EXAMPLE.service == EXAMPLE.cost * window_of_slow
    assert EXAMPLE.service != EXAMPLE.cost * window_of_fast


def backlog(streams, gaps=50):
    """Work that is left after so many gaps on one server: n rows of the fast stream and one of the slow in each."""
    left = Fraction(0)
    of_slow = streams.cost * streams.window * streams.fast
    for _ in range(gaps):
        left = max(Fraction(0), left + streams.n * streams.service + of_slow - 1 / streams.slow)
    return left


def test_one_server_keeps_up_with_half_of_what_equation_1_says():
    """Each pair of rows is compared once, by the later one: both streams take c|w|l1 l2 of the time."""
    for cost in ("0.0005", "0.0008"):
        streams = Streams(Fraction(1), Fraction(10), Fraction(60), Fraction(cost))
        assert one_server_keeps_up(streams)
        assert backlog(streams) == 0
    streams = Streams(Fraction(1), Fraction(10), Fraction(60), Fraction("0.001"))  # the last point of Figure 7
    assert keeps_up(streams)
    assert not one_server_keeps_up(streams)
    assert backlog(streams) == 50 * Fraction("0.2")
    half = Streams(Fraction(1), Fraction(10), Fraction(60), Fraction(1, 1200))
    assert improvement(half) == pytest.approx(ONE_SERVER_BOUND)


def test_equation_4_needs_results_released_before_the_row_that_they_waited_for_is_joined():
    """Steps 5 and 6 join first: then every row waits for that too, and Filter-Order is not flat in c."""
    of_slow = EXAMPLE.cost * EXAMPLE.window * EXAMPLE.fast
    assert sum(filtered(EXAMPLE)) == filter_order_total(EXAMPLE)
    assert sum(filtered(EXAMPLE, first=of_slow)) == filter_order_total(EXAMPLE) + EXAMPLE.n * of_slow
    tp = 1  # Figures 3 and 4: b_9 and c_10 wait for a_12. "Lower by 3 tp" is what a release on its arrival gives
    of_figure_3 = (12 + tp) + (12 + 2 * tp)
    assert of_figure_3 - (12 + 12) == 3 * tp
    assert of_figure_3 - 2 * (12 + tp) == tp


def test_the_means_leave_out_the_rows_of_the_slow_stream():
    """In step, such a row waits for the n rows before it, and then for its own join; or for its own join alone."""
    n, of_slow = EXAMPLE.n, EXAMPLE.cost * EXAMPLE.window * EXAMPLE.fast
    slow_synced, slow_filtered = n * EXAMPLE.service + of_slow, of_slow
    with_all = [
        (total + slow) / (n + 1)
        for total, slow in ((sync_filter_total(EXAMPLE), slow_synced), (filter_order_total(EXAMPLE), slow_filtered))
    ]
    assert with_all[0] != sync_filter(EXAMPLE)
    assert with_all[1] != filter_order(EXAMPLE)
    assert float(improvement_of(*with_all)) == pytest.approx(0.252, abs=0.001)  # Eq. 7 has 0.231
