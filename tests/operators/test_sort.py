"""Sort and Merge: every row in time, in order, as soon as it is safe and no sooner."""

from dataclasses import replace

import polars as pl
import pytest
from harness import first_wait
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

import windrow as wr
from windrow.operators import Merge, Side, Sort
from windrow.progress import END, START, Punctuation
from windrow.testing import replay

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
SCHEMA = {"@t": pl.Int64(), "x": pl.Int64()}
BATCH = st.lists(st.tuples(st.integers(-9, 30), st.sampled_from([None, 1, 2, 3])), min_size=1, max_size=9)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(BATCH, BATCH, st.integers(-12, 33)), st.booleans()), max_size=22
)


def taken(items):
    """Rows, promises and the number of late rows among what an operator put out."""
    frames = [i for i in items if isinstance(i, pl.DataFrame)]
    late = sum(i.count for i in items if isinstance(i, Side))
    return pl.concat(frames).rows() if frames else [], [i.value for i in items if isinstance(i, Punctuation)], late


def check(steps, order, descending):
    """Beside a model that holds plain lists."""
    merge = Restarting(lambda: Merge(2, order, descending))
    sign = -1 if any(descending) else 1
    where = (lambda r: (r[0], sign * (r[1] if r[1] is not None else -99))) if order else (lambda r: r[0])
    lows, held, out, late, told = [START, START], [], [], 0, []
    for port, step, restart in [*steps, (0, END, True), (1, END, True)]:
        if restart:
            merge.restart()
        before = min(lows)
        if isinstance(step, int):
            lows[port] = max(lows[port], step)
            rows, promises, gone = taken(merge.promise(port, step))
            assert promises == ([min(lows)] if min(lows) > before else [])
        else:
            in_time = [r for r in step if r[0] >= before]
            held += in_time
            late += len(step) - len(in_time)
            rows, promises, gone = taken(merge.on_batch(port, pl.DataFrame(step, schema=SCHEMA, orient="row")))
            assert gone == len(step) - len(in_time)
        reached = min(lows)
        due = [r for r in held if r[0] < reached or (r[0] == reached and not order)]
        held = [r for r in held if r not in due]
        assert sorted(map(repr, rows)) == sorted(map(repr, due))
        assert [where(r) for r in rows] == sorted(map(where, due))
        out += rows
        told += promises
        first = min((r[0] for r in held), default=None)
        assert first_wait(merge.operator) == (None if first is None else first + bool(order))
    assert [r[0] for r in out] == sorted(r[0] for r in out)
    assert merge.operator.state_bytes() == 0
    assert told == sorted(set(told))
    merge.restart()
    assert set(merge.disk) <= {"promised", "inputs"}, "what has left is freed"


@CHECK
@given(STEPS)
def test_merge_beside_a_model_with_restarts(steps):
    check(steps, (), ())


@CHECK
@given(STEPS, st.booleans())
def test_merge_with_more_columns_to_order_by(steps, down):
    check(steps, ("x",), (down,))


def test_rows_are_written_once_and_read_back_without_those_that_left():
    sort = Restarting(Sort)
    sort.on_batch(0, pl.DataFrame({"@t": list(range(100))}))
    sort.restart()
    sort.promise(0, 20)
    assert set(sort.operator.changes()) == {"promised"}, "a fifth has left: not worth writing the rest again"
    sort = Restarting(Sort)
    sort.on_batch(0, pl.DataFrame({"@t": list(range(100))}))
    sort.promise(0, 20)
    sort.restart()
    assert sort.operator.runs.height == 79
    assert taken(sort.promise(0, 25))[0] == [(t,) for t in range(21, 26)]


def test_a_late_row_is_an_error_if_the_query_wants_it():
    sort = Sort(late="error")
    sort.on_punctuation(0, Punctuation(10))
    with pytest.raises(wr.LateError, match="no more would come below 10, the first is 3 late"):
        sort.on_batch(0, pl.DataFrame({"@t": [7], "x": [1]}))


def test_a_promise_about_one_group_moves_nothing():
    merge = Merge(1)
    merge.on_batch(0, pl.DataFrame({"@t": [1]}))
    assert merge.on_punctuation(0, Punctuation(9, ("a",))) == []
    assert [wait.port for wait in merge.waits_for()] == [0]


ROWS = st.lists(
    st.fixed_dictionaries({"t": st.integers(0, 40), "k": st.sampled_from("ab"), "x": st.integers(0, 5)}), max_size=25
)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(ROWS, ROWS, st.integers(0, 99))
def test_whole_queries_in_order_give_what_they_mean(left, right, seed):
    schema = {"t": pl.Int64(), "k": pl.String(), "x": pl.Int64()}
    a, b = (
        wr.stream(pl.DataFrame(rows, schema=schema), "t", slack=slack, name=name)
        for name, rows, slack in (("a", left, 3), ("b", right, 12))
    )
    replay(a.union(b).order_by("t", "x DESC", "k"), runs=2, seed=seed)
    counted = {"n": wr.count(), "hi": wr.max("x")}
    replay(a.union(b).window(10, 5, using="iop").group_by("k").agg(**counted).order_by("window_end"), runs=2, seed=seed)
    for windowed in (a.union(b).session(4), a.union(b).each_row(6), a.union(b).landmark(10)):
        replay(replace(windowed, using="iop").group_by("k").agg(**counted), runs=1, seed=seed)
    inner = a.union(b).select("t", "k").distinct().window(4).group_by("k").agg(n=wr.count())
    outer = inner.window(20, 8, using="iop").agg(n=wr.sum("n"))
    assert [s.arms[0].meeting.name for s in outer.plan().stages()] == ["merge", "merge", "merge"]
    replay(outer, runs=2, seed=seed)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda s: s.order_by("t"), "latency: 7 of progress, and what the slowest input is behind the others"),
        (lambda s: s.order_by("t"), "memory: about 14 rows or 336 bytes"),
        (lambda s: s.window(5, using="iop").agg(n=wr.count()), "memory: about 14 rows or 112 bytes"),
        (lambda s: s.window(5).agg(n=wr.count()).order_by("window_end"), "latency: none but that of the windows"),
        (
            lambda s: s.union(wr.stream([{"t": 1, "x": 1}], "t", name="b")).order_by("t"),
            "how far behind that is, is not known",
        ),
    ],
)
def test_explain_says_what_an_order_costs(make, said):
    """Two rows per unit, measured; the slack is 7."""
    rows = pl.DataFrame({"t": [i // 2 for i in range(2001)], "x": range(2001)})
    assert said in make(wr.stream(rows, "t", slack=7, name="a")).explain()


def test_explain_takes_declared_rates_where_nothing_can_be_measured():
    declared = wr.stream([{"t": 1, "x": 1}], "t", slack=7, name="a", statistics=wr.Statistics(rate=3.0))
    assert "memory: about 21 rows or 336 bytes" in declared.order_by("t").explain()
    assert "their rate is not known" in wr.stream([{"t": 1}], "t", slack=7).order_by("t").explain()


def test_collected_rows_keep_the_order_that_the_query_says():
    rows = [{"t": 2, "x": 1}, {"t": 1, "x": 5}, {"t": 1, "x": 7}, {"t": 2, "x": 3}]
    s = wr.stream(rows, "t")
    assert s.order_by("t", "x DESC").collect().rows() == [(1, 7), (1, 5), (2, 3), (2, 1)]
    windows = s.window(1).group_by("x").agg(n=wr.count()).order_by("window_end", "x DESC")
    assert windows.collect()["x"].to_list() == [7, 5, 3, 1]
    assert windows.select("x", "window_end").collect()["x"].to_list() == [7, 5, 3, 1]


def test_an_in_order_plan_obeys_the_late_policy_of_its_window():
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64}), "t", slack=0, name="s")
    for policy in ("drop", "error"):
        run = s.window(10, using="iop").late(policy).agg(n=wr.count()).run()
        run.push("s", [{"t": 7}])
        if policy == "drop":
            assert run.push("s", [{"t": 5}]).counts["rows_late"] == 1, "in an open window, but out of order"
        else:
            with pytest.raises(wr.LateError, match="the first is 2 late"):
                run.push("s", [{"t": 5}])
    for refused in (s.window(10, using="iop").late("side"), s.window(10, using="iop").emit_early(5)):
        with pytest.raises(wr.PlanError, match="using='iop'"):
            refused.agg(n=wr.count()).plan()


def test_an_order_passes_no_joint_promise_on():
    """It can hold rows that are in the box."""
    [found] = Sort().on_punctuation(0, Punctuation(5, boxes=((9, 9),)))
    assert (found.value, found.boxes) == (5, ())
