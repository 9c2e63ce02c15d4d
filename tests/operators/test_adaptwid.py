"""AdaptWID: the results are those of the model whatever group is held which way; and each is held the cheaper way."""

from itertools import pairwise

import polars as pl
import pytest
from harness import (
    COUNTS,
    KEYS,
    LONG,
    WINDOWS,
    Run,
    careless,
    check_keys,
    check_promises,
    check_replay,
    check_waits,
    truthful,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates import Partials, make
from windrow.bench.adaptwid import SLIDING, SMALL, TUMBLING, arrivals
from windrow.bench.drive import drive
from windrow.operators import AdaptWid, Bucket, Windowing
from windrow.operators.windows import adaptwid
from windrow.progress import END, Punctuation
from windrow.testing import replay
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
ROWS_FOR_EAGER = st.sampled_from([0.5, 1.5, 3.5])  # fewer than the memory would say: so small groups change, too
BACK = st.sampled_from([0.5, 0.9, 5.0])  # above 1 every look sends every group back
ALWAYS = 10**9  # no row waits to be looked at
WAIT = st.sampled_from([0, 1, adaptwid.WAIT, ALWAYS])  # 0: rows wait until they leave, unless nothing else is held


class Forced:
    """A threshold in rows instead of bytes, and rows that wait as given; counts what happens."""

    def __init__(self, threshold, back=adaptwid.BACK, wait=ALWAYS):
        self.threshold, self.back, self.wait = threshold, back, wait
        self.turned = self.marked = self.merged = 0

    def __enter__(self):
        self.patch = pytest.MonkeyPatch()
        dense, mark, released = AdaptWid._dense, AdaptWid._mark, AdaptWid._released

        def counted_dense(operator, rows):
            found = dense(operator, rows)
            self.turned += found.any()
            return found

        def counted_mark(operator, thin):
            self.marked += thin.height
            mark(operator, thin)

        def counted_released(operator, before):
            held = [f for f in operator.chunks.below(operator.closed // operator.width + 1) if not f["@eager"].all()]
            self.merged += bool(held) and operator.rows.height > 0
            return released(operator, before)

        self.patch.setattr(AdaptWid, "threshold", lambda operator, groups: self.threshold)
        self.patch.setattr(AdaptWid, "_dense", counted_dense)
        self.patch.setattr(AdaptWid, "_mark", counted_mark)
        self.patch.setattr(AdaptWid, "_released", counted_released)
        self.patch.setattr(adaptwid, "BACK", self.back)
        self.patch.setattr(adaptwid, "WAIT", self.wait)
        return self

    def __exit__(self, *_):
        self.patch.undo()


@CHECK
@given(WINDOWS, truthful(), ROWS_FOR_EAGER, BACK, WAIT)
def test_true_promises_release_what_recalc_says_each_window_once_and_in_time(window, steps, threshold, back, wait):
    with Forced(threshold, back, wait):
        assert check_replay("adaptwid", window, steps) == 0


@CHECK
@given(WINDOWS, careless(), ROWS_FOR_EAGER, BACK, WAIT)
def test_rows_in_a_released_window_are_counted_as_late_and_change_nothing(window, steps, threshold, back, wait):
    with Forced(threshold, back, wait):
        check_replay("adaptwid", window, steps)


@settings(CHECK, max_examples=20)
@given(WINDOWS, truthful())
def test_by_its_own_choice(window, steps):
    check_replay("adaptwid", window, steps)


@settings(CHECK, max_examples=20)
@given(WINDOWS, careless(), ROWS_FOR_EAGER, BACK, WAIT)
def test_without_keys_there_is_one_group(window, steps, threshold, back, wait):
    with Forced(threshold, back, wait):
        check_replay("adaptwid", window, steps, keys=())


@CHECK
@given(WINDOWS, truthful(), ROWS_FOR_EAGER, WAIT)
def test_the_promise_on_window_ends_is_true_and_the_strongest(window, steps, threshold, wait):
    with Forced(threshold, wait=wait):
        check_promises("adaptwid", window, steps)


@CHECK
@given(WINDOWS, truthful(), ROWS_FOR_EAGER, BACK, WAIT)
def test_waits_for_is_the_smallest_promise_that_releases_something(window, steps, threshold, back, wait):
    with Forced(threshold, back, wait):
        check_waits("adaptwid", window, steps)


@CHECK
@given(LONG, truthful(), ROWS_FOR_EAGER, BACK, WAIT)
def test_with_chunks_of_several_windows(window, steps, threshold, back, wait):
    with Forced(threshold, back, wait):
        check_replay("adaptwid", window, steps)
        check_waits("adaptwid", window, steps)


@pytest.mark.parametrize("threshold", [0.5, 100])
@pytest.mark.parametrize(("dtype", "keys"), KEYS)
def test_keys_of_any_type_null_and_nan_are_groups(dtype, keys, threshold):
    with Forced(threshold):
        check_keys("adaptwid", dtype, keys)


def test_a_union_in_any_order_equals_the_oracle():
    rows = [{"t": t % 97, "k": "ab"[t % 2], "x": t} for t in range(60)]
    a, b = (wr.stream(rows[i::2], progress="t", slack=100, name="ab"[i]) for i in (0, 1))
    query = a.union(b.where("x > 3")).window(20, 5, using="adaptwid").group_by("k").agg(n=wr.count(), s=wr.sum("x"))
    assert "rows of input 1" in query.explain()
    with Forced(4):
        replay(query, runs=6, seed=1)


# -- switching ---------------------------------------------------------------------------------------------------------
def rows(times, key="a"):
    return [{"@t": t, "k": key, "x": 1, "f": None} for t in times]


def eager(run):
    """The keys of eager groups."""
    found = run.operator.eager()
    return set() if found is None else set(found.collect()["k"])


def held(run):
    """(rows, partials) that are held."""
    return run.operator.rows.height, run.operator.chunks.height()


def test_a_group_is_lazy_until_its_rows_take_more_than_its_partials(monkeypatch):
    monkeypatch.setattr(adaptwid, "WAIT", ALWAYS)
    run = Run("adaptwid", Sliding(10, 1), specs=COUNTS)
    row, partial = 25, 8 + 1 + 4 * 8  # of @t, k, x, f; of @wid, k, rows, n:x, high:x, low:x
    enough = partial * 10 // row + 2
    run.take(rows([0] * (enough - 2)))
    assert held(run) == (enough - 2, 0)
    run.take(rows([0, 0]) + rows([0], "s"))
    assert eager(run) == {"a"}
    assert held(run) == (1, 10)
    assert run.results(1) == {(0, ("a",)): {"n": enough, "s": enough}, (0, ("s",)): {"n": 1, "s": 1}}


def test_rows_that_become_partials_count_only_in_open_windows():
    with Forced(2.5):
        run = Run("adaptwid", Sliding(4, 1), specs=COUNTS)
        run.take(rows([0, 0]))
        assert run.results(2) == {(w, ("a",)): {"n": 2, "s": 2} for w in (0, 1)}
        run.take(rows([2]))
        assert eager(run) == {"a"}
        assert held(run) == (0, 4)
        found = run.results(END)
    assert {w: r["n"] for (w, _), r in found.items()} == {2: 3, 3: 3, 4: 1, 5: 1}


def test_rows_that_become_partials_end_in_different_windows():
    with Forced(6.5):
        run = Run("adaptwid", Sliding(8, 1), specs=COUNTS)
        run.take(rows(range(6)))
        run.results(6)
        run.take(rows([6]))
        assert held(run) == (0, 8)
        found = run.results(END)
    assert {w: r["n"] for (w, _), r in found.items()} == {w: 7 if w == 6 else 14 - w for w in range(6, 14)}


def test_a_group_that_thins_out_is_in_transition_and_then_lazy():
    with Forced(3) as forced:
        run = Run("adaptwid", Sliding(4, 1), specs=COUNTS)
        run.take(rows([0, 0, 0, 0]))
        assert eager(run) == {"a"}
        run.take(rows([1]))
        assert held(run) == (0, 5)
        for w in range(4):
            assert run.results(w + 1)[w, ("a",)]["n"] == (4 if w == 0 else 5)
        assert eager(run) == {"a"}  # the window that was released last had 5 rows
        assert run.results(5)[4, ("a",)]["n"] == 1
        run.take(rows([5, 5, 5, 5, 6]))
        run.results(6), run.results(7), run.results(8)
        run.take(rows([8]))
        assert eager(run) == {"a"}
        assert run.results(9)[8, ("a",)]["n"] == 6
        run.take(rows([9]))
        assert run.results(10)[9, ("a",)]["n"] == 3
        assert eager(run) == {"a"}
        assert run.results(11)[10, ("a",)]["n"] == 2  # below 0.8 * 3, and its partial of window 12 is marked
        assert (eager(run), forced.marked) == (set(), 1)
        run.take(rows([11]))
        assert held(run)[0] == 1
        assert held(run)[1] > 0
        found = run.results(END)  # of the partial, and of the row
    assert {w: r["n"] for (w, _), r in found.items()} == {11: 3, 12: 2, 13: 1, 14: 1}
    assert forced.merged > 0


def switches(back, volumes):
    """How often a group changes its way over windows of these volumes."""
    with Forced(10, back):
        run = Run("adaptwid", Sliding(4, 1), specs=COUNTS)
        seen = [False]
        for t, volume in enumerate(volumes):
            run.take(rows([t] * (volume // 4 + (t % 4 < volume % 4))))
            run.promise(t)
            seen.append(eager(run) == {"a"})
    return sum(a != b for a, b in pairwise(seen))


def test_a_volume_around_the_threshold_does_not_make_a_group_oscillate():
    around = [12, 12, 12, 12, 8, 8, 8, 8] * 5
    assert switches(0.8, around) == 1
    assert switches(1.2, around) > 5
    assert switches(0.8, [12] * 8 + [4] * 20) == 2


# -- what is watched ---------------------------------------------------------------------------------------------------
def test_the_duration_of_an_extent_is_from_its_first_row_to_the_promise_that_completes_it():
    run = Run("adaptwid", Sliding(10, 5), specs=COUNTS)
    assert run.operator.duration == 10
    run.promise(0)
    run.take(rows([7, 12]))
    run.take(rows([33]))
    run.restart()
    run.promise(15)  # the low watermark was 0 when the window [5, 15) began
    assert run.operator.duration == 33
    run.take(rows([40]))
    run.promise(45)  # [35, 45) began when the low watermark was 15
    assert run.operator.duration == 40 - 15


def test_a_window_counts_as_the_last_complete_one_only_once():
    run = Run("adaptwid", Sliding(64, 1), specs=COUNTS)
    run.promise(-2)
    run.take(rows([-2]))
    run.promise(62)  # window 61 was the last that had begun, and is still in a chunk with 62 and 63
    run.take(rows([500]))
    run.promise(63)
    assert run.operator.duration == 64


def stalled(inputs, lag):
    """Whether a group is eager after the second of its two sources, of equal volume, has come to lag."""
    window = Sliding(10, 1)
    operator = AdaptWid(
        Windowing(window, ["k"], Partials([make("count", "n", None, pl.Int64())]), pl.Int64()), inputs=inputs
    )
    feed = Bucket(window)
    for now in range(120):
        arrived = [(now, 0)] + ([(now, 1)] if now < 30 else [(now - lag, 1)] if now - lag >= 30 else [])
        batch = pl.DataFrame(arrived, schema={"@t": pl.Int64, "@input": pl.Int16}, orient="row")
        batch = batch.with_columns(pl.lit("a").alias("k"))
        batch = batch if inputs > 1 else batch.drop("@input")
        operator.on_batch(0, feed.on_batch(0, batch)[0])
        if now == 29:
            assert operator.eager().collect().height > 0
        low = now if now < 30 else max(29, now - lag)
        for promise in feed.on_punctuation(0, Punctuation(low)):
            operator.on_punctuation(0, promise)
    return operator.eager() is not None and operator.eager().collect().height > 0


def test_a_source_that_lags_makes_rows_the_cheaper_way():
    """2 rows per unit are more than the 1.5 that take what a partial takes, but lagging rows are held for less."""
    assert stalled(inputs=2, lag=0)
    assert not stalled(inputs=2, lag=20)
    assert stalled(inputs=1, lag=20), "who does not know the sources cannot tell"


@pytest.mark.parametrize("query", [TUMBLING, SLIDING[0], SLIDING[2]], ids=lambda q: q.name)
@pytest.mark.parametrize("name", sorted(SMALL)[::2])
def test_skewed_groups_take_no_more_than_the_smaller_of_eager_and_lazy(query, name):
    steps = arrivals(query, SMALL[name], rows=4000, windows=2)
    taken = {
        way: drive(Bucket(query.window), query.operator(way), steps, sizes=True)
        for way in ("eager", "lazy", "adapt", "adaptpaned")
    }
    least = min(taken["eager"].bytes, taken["lazy"].bytes)
    assert taken["adapt"].bytes <= 1.05 * least
    assert taken["adaptpaned"].bytes <= 1.05 * least
    assert len({cost.results for cost in taken.values()}) == 1


def test_rows_wait_so_that_most_batches_are_not_looked_at(monkeypatch):
    """Issue 11: each batch looked at all partials, which took longer than what adapting saves."""
    looks = []
    eager = AdaptWid.eager
    monkeypatch.setattr(AdaptWid, "eager", lambda operator: looks.append(operator) or eager(operator))
    query = SLIDING[0]
    steps = arrivals(query, SMALL["DS3"], rows=4000, windows=2)
    drive(Bucket(query.window), query.operator("adapt"), steps)
    assert 5 < len(looks) <= len(steps) / 2


def test_rows_that_wait_take_no_more_than_their_share():
    query = SLIDING[0]
    operator, feed = query.operator("adapt"), Bucket(query.window)
    for rows, promised in arrivals(query, SMALL["DS3"], rows=4000, windows=2):
        operator.on_batch(0, feed.on_batch(0, rows)[0])
        waiting = max(0, operator.marks["uncounted"]) * operator.rows.row_bytes()
        assert waiting * adaptwid.WAIT <= operator.state_bytes()
        for promise in feed.on_punctuation(0, Punctuation(promised)):
            operator.on_punctuation(0, promise)


def test_a_group_that_is_dense_in_the_first_batch_is_eager_at_once():
    run = Run("adaptwid", Sliding(10, 1), specs=COUNTS)
    run.take(rows([0] * 100) + rows([0], "s"))
    assert eager(run) == {"a"}
    assert held(run) == (1, 10)
