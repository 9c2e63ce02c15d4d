"""Groups by both times of a join: right in any order of arrival, and out as soon as a joint promise covers them."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import Partials, make
from windrow.operators import PairAggregate, Pairs, Side, Wait, WindowJoin
from windrow.operators.joins.promises import joint
from windrow.operators.windows.pairs import Truncated
from windrow.progress import END, START, Punctuation
from windrow.windows.pairing import SameWindow, Within

CHECK = settings(deadline=None, derandomize=True, max_examples=120)
COUNT = Partials([make("count", "n", None, pl.Int64())])
TIMES = {
    "left": lambda t, u: t,
    "right": lambda t, u: u,
    "later": lambda t, u: max(x for x in (t, u) if x is not None),
    "earlier": lambda t, u: min(x for x in (t, u) if x is not None),
    "first": lambda t, u: t if t is not None else u,
}
ALONE = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1)}
SIDES = ({"l": pl.Int64(), "a": pl.Int64()}, {"r": pl.Int64()})


class Query:
    """``SELECT l, r, a, count(*) FROM L JOIN R .. GROUP BY l, r, a``, with a restart whenever it is asked for."""

    def __init__(self, window, how="inner", on="later", every=1, width=1, joint=True):
        self.window, self.how, self.on, self.every, self.width, self.joint = window, how, on, every, width, joint
        keys = ["l", "r", "a"]
        times = tuple(Truncated(c, pl.Int64(), pl.col(c) // every * every, pl.Int64()) for c in "lr")
        self.join = WindowJoin([], window, SIDES, on="later", how=how, joint=joint)
        self.pairs = Pairs(keys, COUNT, "later", times if every > 1 else (None, None))
        self.count = self.new()
        self.disk = {}

    def new(self):
        times = (pl.col("l"), pl.col("r"))
        return PairAggregate(times, ["l", "r", "a"], COUNT, self.on, self.width, ALONE[self.how])

    def restart(self):
        self.disk = {k: v for k, v in {**self.disk, **self.count.changes()}.items() if v is not None}
        assert {*self.disk, "boxes"} == {*self.count.snapshot()}
        self.count = self.new()
        self.count.restore(self.disk)

    def rows(self, port, times):
        frame = pl.DataFrame({"lr"[port]: times, "@t": times})
        frame = frame.with_columns((pl.col("l") % 2).alias("a")) if port == 0 else frame
        return self.run(self.join.on_batch(port, frame))

    def promise(self, port, value):
        return self.run(self.join.on_punctuation(port, Punctuation(value)))

    def run(self, items):
        out = []
        for item in items:
            if isinstance(item, Punctuation):
                fed = [x for p in self.pairs.on_punctuation(0, item) for x in self.count.on_punctuation(0, p)]
            elif isinstance(item, pl.DataFrame):
                cut = item.with_columns(pl.col("l", "r") // self.every * self.every)
                fed = [x for part in self.pairs.on_batch(0, cut) for x in self.count.on_batch(0, part)]
            else:
                continue
            out += fed
        return out


def expected(window, how, lefts, rights, every=1):
    found = [(t, u) for t in lefts for u in rights if window.near(t, u)]
    if 0 in ALONE[how]:
        found += [(t, None) for t in lefts if not any(window.near(t, u) for u in rights)]
    if 1 in ALONE[how]:
        found += [(None, u) for u in rights if not any(window.near(t, u) for t in lefts)]
    groups = Counter()
    for t, u in found:
        cut = [None if x is None else x // every * every for x in (t, u)]
        groups[(*cut, None if t is None else t % 2)] += 1
    return groups


bands = st.builds(lambda low, width: Within(low, low + width), st.integers(-5, 5), st.integers(0, 6))
windows = bands | st.builds(SameWindow, st.integers(1, 7), st.integers(-3, 3))
side_rows = st.lists(st.integers(-10, 20), max_size=9)


@CHECK
@given(
    window=windows,
    how=st.sampled_from(sorted(ALONE)),
    on=st.sampled_from(sorted(TIMES)),
    every=st.sampled_from([1, 1, 4]),
    width=st.sampled_from([1, 3, 100]),
    lefts=side_rows,
    rights=side_rows,
    data=st.data(),
)
def test_each_group_comes_out_once_whatever_the_order_and_wherever_it_restarts(
    window, how, on, every, width, lefts, rights, data
):
    if on in ("left", "right") and ALONE[how] not in ((), ((0,), (1,))[on == "right"]):
        on = "later"  # not every result has that time
    query = Query(window, how, on, every, width)
    waiting = [data.draw(st.permutations(lefts)), data.draw(st.permutations(rights))]
    promised, inputs, found = START, [START, START], {}
    ends = [False, False]
    while not all(ends):
        port = data.draw(st.sampled_from([p for p in (0, 1) if not ends[p]]))
        items = []
        if waiting[port]:
            size = data.draw(st.integers(1, len(waiting[port])))
            batch, waiting[port] = waiting[port][:size], waiting[port][size:]
            items += query.rows(port, batch)
        if not waiting[port] or data.draw(st.booleans()):
            inputs[port] = min(waiting[port], default=END)
            ends[port] = inputs[port] == END
            items += query.promise(port, inputs[port])
        for item in items:
            assert not isinstance(item, Side), "no result of a join is late"
            if isinstance(item, Punctuation):
                assert item.value > promised
                promised = item.value
                continue
            for left, right, a, n, at in item.rows():
                assert at == TIMES[on](left, right) >= promised
                assert found.setdefault((left, right, a), n) == n
        if data.draw(st.booleans()):
            query.restart()
        due = covered(query, every, inputs, expected(window, how, lefts, rights, every))
        assert {*found} == due
    assert promised == END
    assert found == expected(window, how, lefts, rights, every)
    assert query.count.state_bytes() == 0
    assert query.count.waits_for() == []
    query.restart()
    assert not [name for name in query.disk if name != "boxes"]


def covered(query, every, inputs, groups):
    """The groups that the promises so far cover, of all that will ever be there."""
    boxes = joint(query.window, *inputs, ALONE[query.how]).boxes

    def below(time, bound):
        return bound == END or (time is not None and bound != START and time < bound // every * every)

    return {g for g in groups if any(below(g[0], a) and below(g[1], b) for a, b in boxes)}


# -- early release -----------------------------------------------------------------------------------------------------
def released(query, *promises):
    out = []
    for port, value in promises:
        out.append([row[:2] for x in query.promise(port, value) if isinstance(x, pl.DataFrame) for row in x.rows()])
    return out


def figure_7_5(joint):
    query = Query(Within(-2, 2), joint=joint, on="left")
    query.rows(0, [0])
    query.rows(1, [1])
    # p1 and p2 on S0, p3 on S1, p4 on S0, p5 on S1, a minute apart.
    return released(query, (0, 1), (0, 2), (1, 2), (0, 3), (1, 3))


def test_a_joint_promise_releases_a_group_before_any_promise_on_one_time_does():
    """Figure 7-5: a band of two minutes, and the group (0, 1): out with p3 instead of p5."""
    assert figure_7_5(joint=True) == [[], [], [(0, 1)], [], []]
    band = Within(-2, 2)
    assert [joint(band, *p).left > 0 or joint(band, *p).right > 1 for p in ((2, 2), (3, 2), (3, 3))] == [0, 0, 1]


def test_without_joint_promises_it_takes_what_it_gets():
    query = Query(Within(-2, 2), joint=False)
    query.rows(0, [0])
    query.rows(1, [1])
    assert released(query, (0, 9), (1, 1), (1, 2)) == [[], [], [(0, 1)]]  # min(pL, pR) > max(0, 1)


@pytest.mark.parametrize(("on", "value"), [("left", 1), ("right", 2), ("later", 2), ("earlier", 1)])
def test_a_promise_about_one_time_is_a_box(on, value):
    pairs, count = Pairs(["l", "r"], COUNT, on), PairAggregate((pl.col("l"), pl.col("r")), ["l", "r"], COUNT)
    [partials] = pairs.on_batch(0, pl.DataFrame({"l": [0], "r": [1], "@t": [0]}))
    count.on_batch(0, partials)
    for promise, rows in ((value - 1, 0), (value, 1)):
        [joined] = pairs.on_punctuation(0, Punctuation(promise))
        found = count.on_punctuation(0, joined)
        assert sum(x.height for x in found if isinstance(x, pl.DataFrame)) == rows


# -- late rows, waiting, state -----------------------------------------------------------------------------------------
def counting(**more):
    return PairAggregate((pl.col("l"), pl.col("r")), ["l", "r"], COUNT, **more)


def partials(*pairs):
    rows = pl.DataFrame(pairs, schema={"l": pl.Int64, "r": pl.Int64}, orient="row")
    [found] = Pairs(["l", "r"], COUNT).on_batch(0, rows)
    return found


def boxed(left, right):
    return Punctuation(0, boxes=((START, END), (END, START), (left, right)))


def test_a_row_in_a_box_that_is_promised_is_late_and_changes_nothing():
    count = counting()
    count.on_batch(0, partials((0, 1)))
    count.on_punctuation(0, boxed(2, 2))
    [side] = count.on_batch(0, partials((0, 1), (0, 1), (0, 5)))
    assert isinstance(side, Side)
    assert (side.kind, side.count, side.rows.select("l", "r").rows()) == ("late", 2, [(0, 1)])
    [rest, _] = count.on_punctuation(0, Punctuation(END))
    assert rest.select("l", "r", "n").rows() == [(0, 5, 1)]


def test_it_waits_for_the_promise_that_covers_its_first_group():
    count = counting()
    count.on_batch(0, partials((0, 4), (3, 2)))
    count.on_punctuation(0, boxed(1, 2))
    assert count.waits_for() == [Wait(0, 4, 1, "partials", 2, count.state_bytes())]
    assert str(count.waits_for()[0]) == "waits on port 0 for a promise >= 4 since 1, holding 2 partials"


def test_a_checkpoint_writes_what_changed():
    count = counting(width=10)
    count.on_batch(0, partials(*((t, t) for t in range(40))))
    assert {name.split(".")[0] for name in count.changes()} == {"0", "1", "2", "3"}
    count.on_batch(0, partials((33, 34)))
    assert {name.split(".")[0] for name in count.changes()} == {"3"}
    count.on_punctuation(0, boxed(3, 3))  # three of ten groups: the chunk stays as it is
    assert {*count.changes()} == {"boxes"}
    count.on_punctuation(0, boxed(6, 6))
    changed = count.changes()
    assert changed["0.0"].height == 4
    count.on_punctuation(0, boxed(10, 10))
    assert count.changes()["0.0"] is None


def test_a_group_with_promises_of_its_own_is_not_meant():
    assert counting().on_punctuation(0, Punctuation(5, group=("a",))) == []
    assert Pairs(["l", "r"], COUNT).on_punctuation(0, Punctuation(5, group=("a",))) == []
