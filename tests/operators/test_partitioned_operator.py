"""Partitioned windows of rows: ranks inside each partition, in any order of arrival within the row slack."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_replay, check_side, query

import windrow as wr
from windrow.testing import replay

CHECK = settings(deadline=None, derandomize=True, max_examples=30)
SIZES = st.tuples(st.integers(1, 6), st.integers(1, 8))


@CHECK
@given(SIZES, ROWS, GROUPS, st.integers(0, 9), st.sampled_from([0, 4, 100]), st.sampled_from(["k", "z", ["k", "q"]]))
def test_equals_the_oracle_in_every_order(size, rows, groups, seed, slack, parts):
    check_replay(lambda s: s.rows(*size, partition_by=parts), rows, groups, seed, slack)


@settings(CHECK, max_examples=4)
@given(ROWS, st.integers(0, 9))
def test_every_aggregate(rows, seed):
    check_replay(lambda s: s.rows(4, 2, partition_by="k"), rows, (), seed, 5, EVERY)


@CHECK
@given(SIZES, ROWS, GROUPS, st.integers(0, 9), st.sampled_from([0, 4]))
def test_windows_of_all_rows_equal_the_oracle_in_every_order(size, rows, groups, seed, slack):
    check_replay(lambda s: s.rows(*size), rows, groups, seed, slack)


@CHECK
@given(ROWS, CUTS, st.sampled_from([(), ("k",), ("z",)]))
def test_windows_that_begin_before_the_first_row_can_be_left_out(rows, cuts, groups):
    shape = lambda s: s.rows(4, 2, partition_by=list(groups)).without_partial()  # noqa: E731
    replay(query(shape, rows), runs=1)


@CHECK
@given(SIZES, ROWS, CUTS, st.randoms(use_true_random=False), st.sampled_from([["k"], ["z"], []]))
def test_rows_that_come_after_their_number_has_passed_leave_by_the_side(size, rows, cuts, rng, parts):
    order = rng.sample(range(len(rows)), len(rows))
    check_side(lambda s: s.rows(*size, partition_by=parts), rows, cuts, (), order)


def rows_of(*triples):
    return pl.DataFrame(triples, schema={"part": pl.Int64, "off": pl.Int64, "k": pl.String}, orient="row").with_columns(
        pl.lit(0).alias("t")
    )


def kafka(rows=None):
    empty = rows_of() if rows is None else rows
    s = wr.stream(empty, progress="t", row_num=("part", "off"), name="s")
    return s.rows(2, partition_by="k").agg(n=wr.count(), last=wr.max("off"))


def test_source_partitions_promise_for_themselves():
    """Partition 1 is far behind partition 0, and none of its rows is late."""
    run = kafka().run()
    run.push("s", rows_of((0, 1000, "a"), (0, 1001, "a")))
    assert run.results().rows() == [("a", 0, 2, 2, 1001)]
    run.push("s", rows_of((1, 5, "b")))
    state = run.snapshot()
    run = kafka().run().restore(state)
    run.push("s", rows_of((1, 6, "b"), (0, 999, "a")))
    assert run.results().rows() == [("b", 0, 2, 2, 6)]
    assert run.counts["rows_late"] == 1  # 999 after 1001


def test_rows_without_a_number_are_bad():
    run = kafka().run()
    run.push("s", rows_of((0, None, "a"), (None, 3, "a"), (0, 1, "a")))
    assert run.counts["rows_bad"] == 2
    assert sorted(run.bad_rows()["reason"]) == ["the row number off is NULL", "the row number part is NULL"]


def test_state_holds_the_last_rows_of_each_partition_only():
    run = kafka().run()
    sizes = []
    for i in range(60):
        run.push("s", rows_of(*((0, 100 * i + j, "ab"[j % 2]) for j in range(100))))
        sizes.append(run.state_bytes())
    assert max(sizes[30:]) <= 2 * max(sizes[:10])
