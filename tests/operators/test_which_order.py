"""The order that is found without a look at all orders is the cheapest of all."""

from itertools import permutations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.ring.costs import best_orders
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Tuning, Wishes
from windrow.operators.ring.which_order import cheapest_order
from windrow.windows.multiway import Ranges


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_it_costs_what_the_best_of_all_orders_costs(data):
    count = data.draw(st.integers(2, 5))
    streams = st.integers(0, count - 1)
    held = data.draw(st.lists(st.floats(1, 100), min_size=count, max_size=count))
    asked = data.draw(st.lists(st.frozensets(streams, min_size=1), max_size=4))
    tests = [(data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))) for _ in asked]
    origin = data.draw(streams)
    orders = [*permutations(n for n in range(count) if n != origin)]
    costs = {order: cost for cost, order in best_orders(held, asked, tests, origin, orders)}
    order = cheapest_order(held, asked, tests, origin)
    assert costs[order] == pytest.approx(min(costs.values()))


def test_nine_streams_take_no_time():
    chain = [frozenset([n, n + 1]) for n in range(8)]
    assert cheapest_order([20.0] * 9, chain, [(0.05, 1e-3)] * 8, 0) == tuple(range(1, 9))


def test_at_first_rows_probe_streams_that_a_condition_connects_them_with():
    """A finite query is a single round: nothing has been measured when it decides."""
    tests = tuple(Check((x, y), pl.col(x) < pl.col(y)) for x, y in ("ab", "bc"))
    joining = Joining(Ranges((10, 10, 10)), (("a",), ("b",), ("c",)), tests)
    first = Tuning(joining, Wishes()).orders
    assert first[0] == (1, 2)
    assert first[2] == (1, 0)
