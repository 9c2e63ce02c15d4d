"""LimitedJoin against its definition: the same rows are shed in any order, with a restore between any two calls."""

import itertools

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

from windrow.operators import LimitedJoin, Side, WindowJoin
from windrow.operators.joins.shedding import Shedder
from windrow.operators.joins.shortened import Shortened
from windrow.progress import END, START, Punctuation
from windrow.spec.allocation import BOTH_POLICIES, RATE_POLICIES, STATE_POLICIES
from windrow.spec.joining import Limits
from windrow.testing.oracle.limited import Limited, Timed, picks
from windrow.windows.pairing import SameWindow, Within

SCHEMAS = [{"k": pl.Int64(), "@t": pl.Int64(), name: pl.Int64()} for name in "ab"]
TYPES = ({"a": pl.Int64()}, {"b": pl.Int64()})


def rows(side, given_rows):
    """Rows of (key, time, number) as a side takes them."""
    return pl.DataFrame(given_rows, schema=SCHEMAS[side], orient="row")


def limited(window, limits, on="later", how="inner"):
    return LimitedJoin(WindowJoin(["k"], window, TYPES, on=on, how=how), limits, (["a"], ["b"]))


def expected(sides, window, limits):
    """By the definition, as (a, b, later time)."""
    timed = []
    for side, data in enumerate(sides):
        found = [dict(zip(SCHEMAS[side], row, strict=True)) for row in data]
        hashes = picks(found, SCHEMAS[side], limits.seed)
        timed.append([Timed(row, row["@t"], each) for row, each in zip(found, hashes, strict=True)])
    pairs = [
        (a["a"], b["b"], max(a["@t"], b["@t"]))
        for a, b in Limited(limits, window, 1).pairs(timed)
        if a["k"] == b["k"] and window.near(a["@t"], b["@t"])
    ]
    return sorted(pairs)


side_rows = st.lists(st.tuples(st.integers(0, 1), st.integers(-30, 90)), max_size=30)
windows = st.one_of(
    st.builds(lambda low, width: Within(low, low + width), st.integers(-40, 12), st.integers(0, 60)),
    st.builds(SameWindow, st.integers(1, 40), st.integers(-5, 50)),
)


@st.composite
def all_limits(draw):
    rate = draw(st.none() | st.sampled_from([0.05, 0.1, 0.3, 1, 2.5, 100]))
    state = draw(st.sampled_from([1, 3, 10, 1000]) if rate is None else st.none() | st.sampled_from([1, 5, 20, 1000]))
    known = BOTH_POLICIES if rate and state else RATE_POLICIES if rate else STATE_POLICIES
    return Limits(rate, state, draw(st.none() | st.sampled_from(known)), draw(st.integers(0, 3)))


@settings(deadline=None, max_examples=900)
@given(lefts=side_rows, rights=side_rows, window=windows, limits=all_limits(), data=st.data())
def test_what_is_shed_depends_on_the_rows_alone(lefts, rights, window, limits, data):
    sides = [[(k, t, n) for n, (k, t) in enumerate(side)] for side in (lefts, rights)]
    waiting = [data.draw(st.permutations(side)) for side in sides]
    join = Restarting(lambda: limited(window, limits))
    found, counts, promised = [], {"shed": 0, "near": 0, "missed": 0, "joined": 0, "freed": 0}, START

    def take(items):
        nonlocal promised
        for item in items:
            if isinstance(item, pl.DataFrame):
                new = item.select("a", "b", "@t").rows()
                assert all(t >= promised for *_, t in new)
                found.extend(new)
            elif isinstance(item, Punctuation):
                assert item.value > promised
                promised = item.value
            else:
                counts[item.kind] += item.count

    while any(waiting):
        port = data.draw(st.sampled_from([p for p in (0, 1) if waiting[p]]))
        size = data.draw(st.integers(1, len(waiting[port])))
        batch, waiting[port] = waiting[port][:size], waiting[port][size:]
        take(join.on_batch(port, rows(port, batch)))
        if data.draw(st.booleans()):
            join.restart()
        if data.draw(st.booleans()):  # the strongest promise that is true
            take(join.promise(port, min((t for _, t, _ in waiting[port]), default=END)))
        if data.draw(st.booleans()):
            join.restart()
        held = sum(kept.rows.height for kept in join.operator.join.sides)
        assert limits.max_state is None or held <= limits.max_state
    for port in (0, 1):
        take(join.promise(port, END))
        join.restart()
    assert sorted(found) == expected(sides, window, limits)
    assert counts["joined"] + counts["freed"] + counts["shed"] == len(lefts) + len(rights)
    assert 0 <= counts["missed"] <= counts["near"]
    assert promised == END
    assert join.operator.state_bytes() == 0
    assert join.operator.waits_for() == []


@settings(deadline=None, max_examples=100)
@given(lefts=side_rows, rights=side_rows, window=windows, policy=st.sampled_from(RATE_POLICIES))
def test_limits_that_are_never_reached_change_nothing(lefts, rights, window, policy):
    for limits in (Limits(1000, None, policy), Limits(None, 1000), Limits(1000, 1000)):
        join, plain = limited(window, limits), WindowJoin(["k"], window, TYPES)
        found = []
        for each in (join, plain):
            items = []
            for port, side in enumerate((lefts, rights)):
                items += each.on_batch(port, rows(port, [(k, t, n) for n, (k, t) in enumerate(side)]))
            items += [x for port in (0, 1) for x in each.on_punctuation(port, Punctuation(END))]
            found.append(sorted(row for x in items if isinstance(x, pl.DataFrame) for row in x.rows()))
            assert not [x for x in items if isinstance(x, Side) and x.kind in ("shed", "missed")]
        assert found[0] == found[1]


@settings(deadline=None, max_examples=50)
@given(side_rows, st.sampled_from([0.2, 1, 3]), st.integers(1, 80))
def test_no_stretch_has_more_rows_than_the_limit(given_rows, rate, width):
    """Both sides together, rounded up for each side."""
    join = limited(Within(1 - width, width - 1), Limits(rate))
    kept = []
    join.join.on_batch = lambda port, batch: kept.extend(batch["@t"].to_list()) or []
    for port in (0, 1):
        join.on_batch(port, rows(port, [(k, t, n) for n, (k, t) in enumerate(given_rows)]))
    for port in (0, 1):
        join.on_punctuation(port, Punctuation(END))
    stretches = [t // join.length for t in kept]
    assert all(stretches.count(n) <= rate * join.length + 2 for n in stretches)


def steady(rates, until, keys=1):
    """Rows at a constant rate per unit of time."""
    return [[(n % keys, int(n / rate), n) for n in range(int(until * rate))] for rate in rates]


def run(sides, window, limits):
    """Pairs, and counts, of streams that come in step."""
    join, found, counts = limited(window, limits), 0, {}
    for start in range(0, 1000, 50):
        for port, side in enumerate(sides):
            rows_now = [row for row in side if start <= row[1] < start + 50]
            join.on_batch(port, rows(port, rows_now))
        for port in (0, 1):
            for item in join.on_punctuation(port, Punctuation(start + 50)):
                found += item.height if isinstance(item, pl.DataFrame) else 0
                if isinstance(item, Side):
                    counts[item.kind] = counts.get(item.kind, 0) + item.count
    return found, counts, join


@pytest.mark.parametrize(
    "limits", [Limits(4), Limits(4, None, "inverse"), Limits(None, 150), Limits(None, 150, "equal"), Limits(4, 60)]
)
def test_the_estimated_recall_is_about_the_true_one(limits):
    sides, window = steady((2, 6), 1000, keys=5), Within(-40, 60)
    whole, _, _ = run(sides, window, Limits(1000))
    found, counts, _ = run(sides, window, limits)
    assert 1 - counts["missed"] / counts["near"] == pytest.approx(found / whole, rel=0.12)


def test_equal_shares_keep_a_stream_below_half_and_give_the_rest_to_the_other():
    """Kang 4.2: the cap."""
    shedder = Shedder(Limits(10), (100, 100), 10)
    shares = shedder.shares([0, 1, 2, 3], [(20, 200), (80, 80), (0, 300), (30, 20)])
    assert [share.rows for share in shares] == [(20, 80), (50, 50), (0, 100), (30, 20)]


def test_fractions_of_rows_are_right_on_average():
    shedder = Shedder(Limits(0.25), (10, 10), 1)
    kept = [share.rows for share in shedder.shares(range(4000), [(3, 3)] * 4000)]
    assert set(kept) == {(0, 0), (1, 0), (0, 1), (1, 1)}
    assert sum(a + b for a, b in kept) == pytest.approx(1000, rel=0.1)


def test_the_slower_stream_keeps_its_window_and_noise_does_not_empty_it():
    """Kang 4.3, Eq. 13. The windows change only for a gain of a tenth."""
    shedder = Shedder(Limits(None, 100), (50, 50), 10)
    noise = [(100 + (-1) ** n, 100) for n in range(50)]
    assert {share.memory for share in shedder.shares(range(50), noise)} == {(0.0, 1.0)}
    assert shedder.shares(range(50, 60), [(20, 100)] * 10)[-1].memory == (1.0, 0.0)
    assert shedder.shares(range(60, 70), [(100, 20)] * 10)[-1].memory == (0.0, 1.0)


def test_with_both_limits_one_side_has_the_window_and_the_other_the_rate():
    """Kang, Eq. 14."""
    found, counts, join = run(steady((5, 5), 1000, keys=5), Within(-99, 99), Limits(4, 80))
    held = sorted(kept.rows.height for kept in join.join.sides)
    assert held[0] <= 5
    assert 60 <= held[1] <= 80
    assert counts["shed"] == pytest.approx(6000, rel=0.02)
    equal, _, _ = run(steady((5, 5), 1000, keys=5), Within(-99, 99), Limits(4, 80, "equal"))
    assert found > 1.2 * equal


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    windows,
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_a_shortened_window_is_the_one_of_the_definition(steps, window, left, right):
    """A row meets those that are not below the oldest of its stretch, and both bounds grow with its time."""
    short, before, oldest = Shortened(window), [], (-100, -100)
    for number, grown in enumerate(steps):
        before.append(oldest)
        oldest = tuple(min(max(o, -10) + g, number * 10 + 10) for o, g in zip(oldest, grown, strict=True))
    starts = [10 * n for n in range(len(steps))]
    short.move(pl.Series(starts).to_numpy(), pl.DataFrame(before, orient="row").to_numpy(), oldest, 10 * len(steps))

    def kept(side, time, at):
        """Whether a row of a side is still there when one with the time ``at`` comes."""
        stretch = at // 10
        return stretch <= time // 10 or time >= [*before, oldest][min(stretch, len(steps))][side]

    near = window.near(left, right)
    if min(left, right) // 10 < len(steps):
        near = near and kept(0, left, right) and kept(1, right, left)
        assert short.near(left, right) == near
        first, last = short.partners(1, right)
        assert (first <= left <= last) == near
    bounds = [short.partners(0, t) for t in range(10 * len(steps) + 20)]
    assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(bounds))


def test_what_it_waits_for():
    join = limited(Within(-79, 79), Limits(None, 10))
    join.on_batch(0, rows(0, [(1, 12, 0)]))
    assert [str(w) for w in join.waits_for()] == [
        "waits on port 0 for a promise >= 15, holding 1 rows",
        "waits on port 1 for a promise >= 15, holding 1 rows",
    ]
    join.on_punctuation(0, Punctuation(50))
    assert join.on_punctuation(1, Punctuation(14)) != []
    assert join.on_punctuation(1, Punctuation(20)) == [Punctuation(20)]
    assert [(w.port, w.promise) for w in join.waits_for()] == [(1, 95)]


def test_a_late_row_is_counted_and_takes_no_place():
    join = limited(Within(-9, 9), Limits(0.1))
    join.on_punctuation(0, Punctuation(30))
    late, *rest = join.on_batch(0, rows(0, [(1, 12, 0), (1, 31, 1)]))
    assert (late.kind, late.count, rest) == ("late", 1, [])
    join.on_punctuation(1, Punctuation(END))
    items = join.on_punctuation(0, Punctuation(END))
    assert [(x.kind, x.count) for x in items if isinstance(x, Side)] == [("freed", 1)]
