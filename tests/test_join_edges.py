"""Joins at their edges, under every arrival order; late rows of each side by their policy."""

from itertools import permutations

import polars as pl
import pytest

import windrow as wr
from windrow.errors import LateError
from windrow.hosts.local import LocalRun
from windrow.logical.nodes import HOWS
from windrow.operators import WindowJoin
from windrow.progress import FARTHEST
from windrow.testing import accounted_join, compare, oracle
from windrow.testing.disturbed import disturbed
from windrow.windows.pairing import Within

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}
# The (time, key) of the rows of each side, and the window of the join.
CASES = {
    "equal times": ([(5, 1), (5, 1)], [(5, 1), (5, 2)], {"within": (-3, 3)}),
    "duplicates on both sides": ([(5, 1)] * 2, [(7, 1)] * 2, {"within": (0, 3)}),
    "a band of zero": ([(5, 1), (6, 1)], [(5, 1), (7, 1)], {"within": (0, 0)}),
    "a band of one distance": ([(5, 1), (6, 1)], [(9, 1), (7, 1)], {"within": (3, 3)}),
    "a band larger than the data": ([(-9, 1), (80, 2)], [(0, 1), (70, 2)], {"within": (-1000, 1000)}),
    "an empty side": ([(5, 1), (9, 1), (9, None)], [], {"within": (-3, 3)}),
    "a side that ends early": ([(5, 1), (50, 1), (90, 1)], [(6, 1)], {"within": (-3, 3)}),
    "windows that meet at a border": ([(9, 1), (10, 1)], [(10, 1), (19, 1)], {"tumbling": 10}),
    "windows with an origin": ([(12, 1), (13, 1)], [(13, 1), (22, 1)], {"tumbling": 10, "origin": 3}),
    "null keys": ([(5, None), (5, 1)], [(5, None), (6, 1)], {"within": (-3, 3)}),
}


def frame(rows):
    """``x`` is the position of a row."""
    return pl.DataFrame([(t, k, i) for i, (t, k) in enumerate(rows)], schema=SCHEMA, orient="row")


def query(case, how, **options):
    left, right, window = CASES[case]
    sides = [wr.stream(frame(rows), "t", slack=1000, name=name) for name, rows in (("l", left), ("r", right))]
    return sides[0].join(sides[1], on="k", **window, how=how, **options)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("case", CASES)
def test_every_arrival_order_with_the_strongest_promises_gives_what_the_definitions_say(case, how):
    """After every row each side promises all that is true of its rows to come."""
    joined = query(case, how)
    expected, plan = oracle(joined), joined.plan()
    rows = [("l", row) for row in frame(CASES[case][0]).rows()] + [("r", row) for row in frame(CASES[case][1]).rows()]
    orders = list(permutations(rows))
    for order in orders if how == "full" else orders[::5]:
        run = LocalRun(plan)
        for at, (name, row) in enumerate(order):
            run.push(name, pl.DataFrame([row], schema=SCHEMA, orient="row"))
            for side in "lr":
                run.promise(side, min([t for n, (t, _, _) in order[at + 1 :] if n == side], default=FARTHEST - 1))
        before = run.results()
        assert run.counts["rows_late"] == 0
        compare(before, expected, f"{case}, {how}, {order}")  # all of it: a side without rows to come has promised all
        assert run.end().results().height == 0


def test_a_join_with_an_empty_side_keeps_no_row_longer_than_its_window():
    run = query("an empty side", "left").run()
    for t in range(0, 1000, 10):
        run.push("l", [{"t": t, "k": 1, "x": 0}]).promise("l", t).promise("r", t)
    assert run.counts["rows_freed"] >= 98
    assert run.results().height == run.counts["rows_freed"]


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_semi_join_whose_rows_have_all_found_a_partner_can_be_stored(how):
    join = WindowJoin(["@k"], Within(0, 5), ({"a": pl.Int64()}, {"b": pl.Int64()}), how=how)
    join.on_batch(0, pl.DataFrame({"@k": [1], "@t": [10], "a": [1]}))
    join.on_batch(1, pl.DataFrame({"@k": [1], "@t": [12], "b": [1]}))
    assert not [name for name in join.changes() if name.startswith("left/")]


# -- late rows ---------------------------------------------------------------------------------------------------------
LATE = {"l": [(100, 1), (50, 2), (60, 3)], "r": [(100, 1), (40, 2)]}  # behind the first row of each, all are late


def late_join(source, late, keys=("k",), how="full"):
    sides = [wr.stream(source(name), "t", slack=10, name=name) for name in "lr"]
    return sides[0].join(sides[1], on=list(keys), within=(-5, 5), how=how, late=late)


@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize("late", ["drop", "side", ("side", "drop"), ("drop", "side")])
def test_late_rows_of_each_side_follow_its_policy_and_are_counted(late, keys):
    run = late_join(lambda name: frame(LATE[name]), late, keys).run()
    for name, rows in LATE.items():
        for row in frame(rows).to_dicts():
            run.push(name, [row])
    run.end()
    assert run.results().select("t", "t_right").rows() == [(100, 100)]
    assert run.counts["rows_late"] == 3
    accounted_join(run.counts)
    policies = (late, late) if isinstance(late, str) else late
    records = run.late_rows()
    on_side = {"l": {(50, 2), (60, 3)}, "r": {(40, 2)}}
    found = {(t, k) for t, k in records.select("t", "k").rows() if t is not None}
    assert (found >= on_side["l"]) == (policies[0] == "side")
    other = {(t, k) for t, k in records.select("t_right", "k_right").rows() if t is not None}
    assert (other >= on_side["r"]) == (policies[1] == "side")


def test_late_rows_of_one_side_can_be_an_error_and_those_of_the_other_not():
    run = late_join(lambda name: frame(LATE[name]), ("drop", "error")).run()
    run.push("l", [{"t": 100, "k": 1, "x": 0}]).push("l", [{"t": 50, "k": 1, "x": 0}])
    run.push("r", [{"t": 100, "k": 1, "x": 0}])
    with pytest.raises(LateError):
        run.push("r", [{"t": 50, "k": 1, "x": 0}])


@pytest.mark.parametrize("keys", [("k",), ()])
@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_late_rows_on_spark_are_counted_once_however_many_shards_have_a_copy(keys, how):
    batches = [{name: frame(rows[i : i + 1]) for name, rows in LATE.items()} for i in range(3)]
    end = {name: frame([(10_000, 9)]) for name in LATE}  # everything before it can go

    def build(spark):
        return late_join(lambda _: spark.stream(SCHEMA), "side", keys, how)

    out = disturbed(build, [*batches, end], shards=3, with_late=True)
    counts = {name: sum(batch.counts[name] for batch in out) for name in out[0].counts}
    assert counts["rows_late"] == sum(batch.late.height for batch in out) == 3
    accounted_join(counts)  # the last two rows are partners of each other
