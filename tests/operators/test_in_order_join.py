"""InOrderJoin against all pairs, in order: any arrival, any switches of the way, a restore between any two calls."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.errors import DataError, PlanError
from windrow.operators import InOrderJoin, Side, WindowJoin
from windrow.operators.joins.rates import Rates
from windrow.progress import END, START, Punctuation
from windrow.spec.in_order import MODES
from windrow.windows.pairing import SameWindow, Within

NAN = float("nan")
LEFT = {"k": pl.Float64(), "a": pl.Int64(), "@t": pl.Int64()}
RIGHT = {"k": pl.Float64(), "b": pl.Int64(), "@t": pl.Int64()}
TIMES = {"left": lambda a, b: a, "right": lambda a, b: b, "later": max}


def window_join(window, on="later", keys=("k",), **more):
    return WindowJoin(keys, window, ({"a": pl.Int64()}, {"b": pl.Int64()}), on=on, **more)


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    return pl.DataFrame([(k, n, t) for k, t, n in given_rows], schema=(LEFT, RIGHT)[side], orient="row")


def equal(a, b):
    """NULL equals nothing, and rows without a key do not come here."""
    return a is not None and b is not None and (a == b or (a != a and b != b))


def all_pairs(lefts, rights, window, on, keyed=True):
    near = [(x, y) for x in lefts for y in rights if window.near(x[1], y[1]) and (not keyed or equal(x[0], y[0]))]
    return sorted((TIMES[on](t, u), a, b) for (_, t, a), (_, u, b) in near)


class Taken:
    """What has come out so far: pairs in order and after promises that allow them."""

    def __init__(self):
        self.pairs, self.promised, self.late = [], START, []

    def __call__(self, items):
        for item in items:
            if isinstance(item, pl.DataFrame):
                new = item.select("@t", "a", "b").rows()
                assert all(t >= self.promised for t, *_ in new)
                self.pairs += new
            elif isinstance(item, Punctuation):
                assert item.value > self.promised
                self.promised = item.value
            elif item.kind == "late":
                self.late += item.rows.rows() if item.rows is not None else []

    def check(self, expected):
        assert [t for t, *_ in self.pairs] == sorted(t for t, *_ in self.pairs)
        assert sorted(self.pairs) == expected
        assert self.promised == END


numbers = st.sampled_from([0.0, -0.0, 1.0, NAN, None])
side_rows = st.lists(st.tuples(numbers, st.integers(0, 60)), max_size=20)
bands = st.builds(lambda low, width: Within(low, low + width), st.integers(-12, 12), st.integers(0, 14))
windows = bands | st.builds(SameWindow, st.integers(1, 15), st.integers(-3, 3))
# Half of the time or more is taken by the join at some of these rates, and less at others.
adapting = st.tuples(st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.0, 0.01, 0.1, 1.0, 100.0]))


@pytest.mark.parametrize("change", ["never", "at restarts"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("on", TIMES)
@settings(deadline=None, max_examples=80)
@given(
    sides=st.tuples(side_rows, side_rows),
    window=windows,
    keyed=st.booleans(),
    bound=st.sampled_from([0, 0, 5, 60]),
    adapting=adapting,
    data=st.data(),
)
def test_pairs_come_in_order_whatever_the_way(on, mode, change, sides, window, keyed, bound, adapting, data):
    """``bound``: how far out of order rows of a side are; 0 are the streams of the paper, whose skew is any. A query
    that is restarted can be told another way to go: what it then finds is held by the one before.
    """
    alpha, cost = adapting

    def make():
        way = mode if change == "never" else data.draw(st.sampled_from(MODES))
        return InOrderJoin(window_join(window, on, ["k"] if keyed else []), way, alpha, cost)

    numbered = [[(k, t, n) for n, (k, t) in enumerate(side)] for side in sides]
    waiting = [sorted(side, key=lambda row: row[1] + data.draw(st.integers(0, bound))) for side in numbered]
    join, take, greatest = Restarting(make), Taken(), [START, START]
    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, 6))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, rows(port, batch) if keyed else rows(port, batch).drop("k")))
        if data.draw(st.booleans()):
            join.restart()
        greatest[port] = max(greatest[port], *(t for _, t, _ in batch))
        take(join.promise(port, greatest[port] - bound))
        if data.draw(st.booleans()):
            join.restart()
    for port in data.draw(st.permutations([0, 1])):
        take(join.promise(port, END))
        join.restart()
    take.check(all_pairs(*numbered, window, on, keyed))
    assert join.operator.state_bytes() == 0
    assert join.operator.hold_rows() == join.operator.hold_bytes() == 0
    assert join.operator.waits_for() == []


def drumming(rate_of, length=40, stretches=12):
    """Rows at rates that flip: in every other stretch of time ten times as many."""
    found = []
    for stretch in range(stretches):
        gap = rate_of[stretch % 2]
        found += [(float(t % 3), t, t) for t in range(stretch * length, (stretch + 1) * length, gap)]
    return found


@pytest.mark.parametrize("behind", [0, 3, 25])
def test_adaptive_changes_to_and_fro_and_loses_nothing(behind):
    """Both streams have a row in each unit of time, and then one in ten: c|w|l1 l2 is 0.5, and then 0.005."""
    lefts = rights = drumming((1, 10))
    window, take, ways, held = Within(-4, 4), Taken(), [], []
    join = InOrderJoin(window_join(window), "adaptive", 0.3, 0.1)
    arrivals = sorted([(t, 0, row) for row in lefts for t in [row[1]]] + [(row[1] + behind, 1, row) for row in rights])
    for _, port, row in arrivals:
        take(join.on_batch(port, rows(port, [row])))
        take(join.on_punctuation(port, Punctuation(row[1])))
        ways.append(join.filtering)
        held.append(join.hold_rows())
    changes = [(a, b) for a, b in zip(ways, ways[1:], strict=False) if a != b]  # noqa: RUF007
    assert len(changes) >= 10
    assert changes[0] == (False, True)
    if behind > 10:
        assert any(
            held[at] and ways[at - 1] and not ways[at] for at in range(1, len(ways))
        )  # not empty when it changed
    for port in (0, 1):
        take(join.on_punctuation(port, Punctuation(END)))
    take.check(all_pairs(lefts, rights, window, "later"))


def test_alpha_zero_is_filter_order_as_soon_as_rates_are_known():
    join = InOrderJoin(window_join(Within(-4, 4)), "adaptive", 0.0, 0.0)
    for port, t in ((0, 0), (0, 5), (0, 10)):
        join.on_batch(port, rows(port, [(1.0, t, t)]))
    assert join.busy() is None
    assert not join.filtering
    for t in (0, 5, 10):
        join.on_batch(1, rows(1, [(1.0, t, t)]))
    assert join.busy() == 0.0
    join.on_punctuation(0, Punctuation(3))
    assert join.filtering


def test_another_machine_goes_on_with_the_cost_of_the_first_one():
    """A micro-batch that runs again there decides alike."""
    first, second = (InOrderJoin(window_join(Within(-4, 4)), "adaptive", 0.3, cost) for cost in (0.1, 0.7))
    for t in range(0, 20, 2):
        first.on_batch(t // 2 % 2, rows(t // 2 % 2, [(1.0, t, t)]))
    second.restore(first.snapshot())
    assert second.busy() == first.busy() is not None


@pytest.mark.parametrize("alpha", [-0.1, 1, 1.5, NAN])
def test_alpha_is_a_share_of_time(alpha):
    with pytest.raises(PlanError, match="at least 0 and less than 1"):
        InOrderJoin(window_join(Within(0, 5)), "adaptive", alpha)


@pytest.mark.parametrize(("how", "on", "why"), [("left", "left", "inner joins only"), ("inner", "earlier", "earlier")])
def test_what_it_cannot_put_in_order_is_refused(how, on, why):
    with pytest.raises(PlanError, match=f"{why}.*opob"):
        InOrderJoin(window_join(Within(0, 5), on, how=how))


# -- the example of the paper ------------------------------------------------------------------------------------------
# Figure 1(C): windows of 6 units, inclusive, so c_4 and c_10 are a pair. Ours are half open: that is a window of 7.
INCLUSIVE = Within(-6, 6)
ARRIVALS = [(1, "a", 1), (0, "d", 2), (0, "c", 4), (1, "a", 5), (0, "b", 6), (1, "b", 9), (1, "c", 10), (0, "a", 8)]
ARRIVALS += [(0, "a", 12)]
LETTERS = {letter: float(at) for at, letter in enumerate("abcd")}


def shown(mode, window=INCLUSIVE):
    """After each arrival: its tuple, the pairs that come out, and how many pairs and rows are held."""
    join, found = InOrderJoin(window_join(window), mode), {}
    for port, letter, t in ARRIVALS:
        items = join.on_batch(port, rows(port, [(LETTERS[letter], t, t)]))
        items += join.on_punctuation(port, Punctuation(t))
        pairs = [
            (f"{letter}{a}", b) for i in items if isinstance(i, pl.DataFrame) for a, b in i.select("a", "b").rows()
        ]
        held = sum(runs.height for runs in join.inputs.held.values())
        found[f"{letter}{t}"] = [(a[1:], str(b)) for a, b in pairs], join.hold_rows(), held
    return found


def test_figure_3_sync_filter_keeps_b9_and_c10_in_the_queue():
    found = shown("sync-filter")
    assert found["b9"] == ([], 0, 1)
    assert found["c10"] == ([], 0, 2)
    assert found["a8"] == ([("8", "5")], 0, 2)
    assert found["a12"] == ([("6", "9"), ("4", "10")], 0, 1)  # a_12 waits for T


def test_figure_4_filter_order_joins_b9_and_c10_and_holds_their_pairs():
    found = shown("filter-order")
    assert found["b9"] == ([], 1, 0)
    assert found["c10"] == ([], 2, 0)  # TS_trigger is 6
    assert found["a8"] == ([("8", "5")], 2, 0)  # TS_trigger is 8
    assert found["a12"] == ([("6", "9"), ("4", "10")], 0, 0)  # TS_trigger is 10


@pytest.mark.parametrize("mode", MODES)
def test_half_open_windows_have_no_pair_a_window_apart(mode):
    out = [pair for pairs, *_ in shown(mode, Within(-5, 5)).values() for pair in pairs]
    assert out == [("8", "5"), ("6", "9")]


def test_what_it_waits_for_is_what_lets_the_first_result_go():
    join = InOrderJoin(window_join(INCLUSIVE), "filter-order")
    for port, letter, t in ARRIVALS[:7]:
        join.on_batch(port, rows(port, [(LETTERS[letter], t, t)]))
        join.on_punctuation(port, Punctuation(t))
    [wait] = [w for w in join.waits_for() if w.port == 0]
    assert (wait.promise, wait.since) == (8, 6)  # a_1 of T can go then
    join.on_punctuation(0, Punctuation(8))
    [wait] = [w for w in join.waits_for() if w.port == 0]
    assert (wait.promise, wait.since) == (9, 8)  # the pair of b_9


# -- late rows, rates --------------------------------------------------------------------------------------------------
careless = st.lists(
    st.tuples(
        st.integers(0, 1), st.lists(st.tuples(numbers.filter(bool), st.integers(0, 40)), max_size=5), st.booleans()
    ),
    max_size=10,
)


@settings(deadline=None, max_examples=80)
@given(steps=careless, policies=st.tuples(*[st.sampled_from(["drop", "side"])] * 2), cost=st.sampled_from([0.0, 1.0]))
def test_late_rows_are_the_same_whatever_the_way(steps, policies, cost):
    """A row is late below the promise of its side, and leaves by the side, or is counted."""
    found = {}
    for mode in MODES:
        join = Restarting(lambda mode=mode: InOrderJoin(window_join(Within(-5, 5), late=policies), mode, 0.1, cost))
        take, promised, kept, counted = Taken(), [START, START], ([], []), 0
        for number, (port, batch, promises) in enumerate(steps):
            numbered = [(k, t, 10 * number + n) for n, (k, t) in enumerate(batch)]
            kept[port].extend(row for row in numbered if row[1] >= promised[port])
            counted += sum(row[1] < promised[port] for row in numbered)
            items = join.on_batch(port, rows(port, numbered))
            counted -= sum(item.count for item in items if isinstance(item, Side) and item.kind == "late")
            take(items)
            join.restart()
            if promises and batch:
                promised[port] = max(promised[port], *(t for _, t in batch))
                take(join.promise(port, promised[port]))
        for port in (0, 1):
            take(join.promise(port, END))
        assert counted == 0
        take.check(all_pairs(*kept, Within(-5, 5), "later"))
        found[mode] = repr((sorted(take.pairs), take.late))  # NaN equals NaN
    assert found[MODES[0]] == found[MODES[1]] == found[MODES[2]]


@pytest.mark.parametrize("mode", MODES)
def test_a_late_row_can_be_an_error(mode):
    join = InOrderJoin(window_join(Within(-5, 5), late=("error", "drop")), mode)
    join.on_punctuation(0, Punctuation(10))
    with pytest.raises(DataError):
        join.on_batch(0, rows(0, [(1.0, 9, 0)]))


def test_rates_follow_from_rows_and_promises_and_are_those_of_the_latest_stretch():
    rates = Rates(2, length=10)
    rates.promised(0, 50)  # nothing has come yet, and nothing is known of what came before
    assert rates.of(0) is None
    rates.saw(0, pl.DataFrame({"@t": list(range(100, 110))}))
    assert rates.of(0) is None
    assert rates.so_far(0) == pytest.approx(10 / 9)
    rates.saw(0, pl.DataFrame({"@t": [110]}))
    assert rates.of(0) == 1.1  # of the rows at both ends
    rates.promised(0, 130)
    assert rates.of(0) == 0.0
    saved = rates.frame()
    again = Rates(2, length=10)
    again.restore(saved)
    assert again.known() == rates.known()
    again.restore(None)
    assert again.of(0) is None
