"""InOrderJoin of several inputs against all combinations: any way, any arrival, a restore between any two calls."""

from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.operators import InOrderJoin, MultiJoin
from windrow.progress import END, START, Punctuation
from windrow.spec.in_order import MODES
from windrow.windows.multiway import Moment, Ranges

NAMES = "abcd"


def make(ranges, moment, mode, alpha=0.3, cost=0.1):
    types = [{NAMES[i]: pl.Int64()} for i in range(len(ranges.lengths))]
    return InOrderJoin(MultiJoin(["k"], ranges, types, on=moment), mode, alpha, cost)


def rows(port, given_rows):
    """Rows of (key, time, number) as an input takes them."""
    schema = {"k": pl.Int64(), NAMES[port]: pl.Int64(), "@t": pl.Int64()}
    return pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=schema, orient="row")


def results(inputs, ranges, moment):
    """All results by the definition, as the numbers of their rows and their time."""
    for each in product(*inputs):
        times = [t for _, t, _ in each]
        if len({k for k, *_ in each}) == 1 and ranges.near(times):
            yield (*(n for *_, n in each), moment.of(times))


class Taken:
    """What has come out so far: in order, and after promises that allow it."""

    def __init__(self):
        self.rows, self.promised = [], START

    def __call__(self, items):
        for item in items:
            if isinstance(item, pl.DataFrame):
                assert all(row[-1] >= self.promised for row in item.rows())
                self.rows += item.rows()
            elif isinstance(item, Punctuation):
                assert item.value > self.promised
                self.promised = item.value
        times = [row[-1] for row in self.rows]
        assert times == sorted(times)


@pytest.mark.parametrize("change", ["never", "at restarts"])
@pytest.mark.parametrize("mode", MODES)
@settings(deadline=None, max_examples=100)
@given(
    inputs=st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60)), max_size=8), min_size=2, max_size=4),
    bound=st.sampled_from([0, 0, 5, 60]),
    adapting=st.tuples(st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.0, 0.01, 0.1, 1.0])),
    data=st.data(),
)
def test_results_come_in_order_whatever_the_way(mode, change, inputs, bound, adapting, data):
    """``bound``: how far out of order rows of an input are; 0 are the streams of the paper, whose skew is any."""
    count = len(inputs)
    ranges = Ranges(tuple(data.draw(st.sampled_from([1, 6, 20, 100])) for _ in inputs))
    of = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count, unique=True))
    moment = data.draw(st.sampled_from([Moment(tuple(range(count))), Moment(tuple(of)), Moment(tuple(of), False)]))

    def fresh():
        way = mode if change == "never" else data.draw(st.sampled_from(MODES))
        return make(ranges, moment, way, *adapting)

    numbered = [[(k, t, n) for n, (k, t) in enumerate(each)] for each in inputs]
    waiting = [sorted(each, key=lambda row: row[1] + data.draw(st.integers(0, bound))) for each in numbered]
    join, take, greatest = Restarting(fresh), Taken(), [START] * count
    while any(waiting):
        port = data.draw(st.sampled_from([p for p, left in enumerate(waiting) if left]))
        size = data.draw(st.integers(1, 6))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, rows(port, batch)))
        if data.draw(st.booleans()):
            join.restart()
        greatest[port] = max(greatest[port], *(t for _, t, _ in batch))
        take(join.promise(port, greatest[port] - bound))
        if data.draw(st.booleans()):
            join.restart()
    for port in data.draw(st.permutations(range(count))):
        take(join.promise(port, END))
        join.restart()
    assert sorted(take.rows) == sorted(results(numbered, ranges, moment))
    assert take.promised == END
    assert join.operator.state_bytes() == join.operator.hold_rows() == 0
    assert join.operator.waits_for() == []


def ordered(mode, *lengths, **more):
    return make(Ranges(lengths), Moment(tuple(range(len(lengths)))), mode, **more)


def test_sync_filter_holds_rows_and_filter_order_results():
    """A row of each input, the slowest last: 3 * 3 results for one row."""
    for mode, held in (("sync-filter", 0), ("filter-order", 9)):
        join = ordered(mode, 50, 50, 50)
        for port, times in enumerate(([10, 11, 12], [10, 11, 12], [5])):
            join.on_batch(port, rows(port, [(1, t, t) for t in times]))
        assert join.hold_rows() == held
        assert [(w.port, w.promise) for w in join.waits_for()][-1] == ((2, 5) if mode == "sync-filter" else (2, 10))
        items = [item for port in (0, 1, 2) for item in join.on_punctuation(port, Punctuation(20))]
        assert [frame["@t"].to_list() for frame in items if isinstance(frame, pl.DataFrame)] == [
            [10, 11, 11, 11, 12, 12, 12, 12, 12]
        ]


def test_promises_for_a_result_in_the_hold_buffer_are_the_least_ones():
    ranges = Ranges((10, 4, 7))
    for moment in (Moment((0, 1, 2)), Moment((1,)), Moment((0, 2), False)):
        join = make(ranges, moment, "filter-order")
        for port, t in ((0, 20), (1, 21), (2, 22)):
            join.on_batch(port, rows(port, [(1, t, 0)]))
        assert join.hold_rows() == 1
        waits = join.inputs.needs_of_result(moment.of([20, 21, 22]))
        for less in range(3):
            other = make(ranges, moment, "filter-order")
            other.restore(join.snapshot())
            for port, promise in waits:
                other.on_punctuation(port, Punctuation(promise - (port == less)))
            assert other.hold_rows() == 1
        for port, promise in waits:
            join.on_punctuation(port, Punctuation(promise))
        assert join.hold_rows() == 0


def test_adaptive_changes_with_the_rates_of_all_inputs():
    join = ordered("adaptive", 10, 10, 10, alpha=0.3, cost=0.01)
    ways = []
    for stretch in range(8):
        gap = (1, 10)[stretch % 2]
        for t in range(stretch * 40, (stretch + 1) * 40, gap):
            for port in range(3):
                join.on_batch(port, rows(port, [(t % 50, t, t)]))
                join.on_punctuation(port, Punctuation(t))
        ways.append(join.filtering)
    assert ways == [True, False] * 4


def test_the_share_of_its_time_is_as_of_two_inputs():
    """c |w| l1 l2 of Eq. 1, where all that a row is compared with is the other window."""
    join = ordered("adaptive", 10, 10, cost=0.01)
    for t in range(0, 30, 2):
        for port in (0, 1):
            join.on_batch(port, rows(port, [(0, t, t)]))
    assert join.busy() == pytest.approx(0.01 * 10 * join.rates.of(0) * join.rates.of(1))


def test_an_input_that_ends_does_not_keep_the_rows_of_the_others():
    join = ordered("sync-filter", 5, 5, 5)
    join.on_punctuation(2, Punctuation(END, reached=3))
    for t in range(0, 100, 10):
        for port in (0, 1):
            join.on_batch(port, rows(port, [(1, t, t)]))
            join.on_punctuation(port, Punctuation(t))
    assert sum(kept.rows.height for kept in join.inputs.join.sides) <= 4
