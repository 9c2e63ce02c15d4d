"""Slide-by-tuple windows by blocks, bins and buffering: by arrival and by rank, of the stream and of partitions."""

import polars as pl
import pytest
from harness import first_wait
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_drop, check_replay, feed, query

import windrow as wr
from windrow.aggregates import Partials, make
from windrow.operators import (
    Bins,
    BufferedByTuple,
    Instants,
    SlidByTuple,
    Windowing,
)
from windrow.operators.windows import slide_by_tuple
from windrow.progress import END, Punctuation
from windrow.testing import compare
from windrow.windows import SlideByTuple

CHECK = settings(deadline=None, derandomize=True, max_examples=30)
USING = pytest.mark.parametrize("using", ["blocks", "bins", "buffering"])
KINDS = pytest.mark.parametrize("kind", [SlidByTuple, Bins, BufferedByTuple])
SHAPES = st.tuples(st.sampled_from([1, 6, 30]), st.sampled_from([1, 2, 5]), st.sampled_from(["rank", "row_num"]))
PARTS = st.sampled_from([[], ["k"], ["z"], ["k", "q"]])


@USING
@CHECK
@given(SHAPES, ROWS, GROUPS, PARTS, st.integers(0, 9), st.sampled_from([0, 9, 100]))
def test_equals_the_oracle_in_every_order(using, shape, rows, groups, parts, seed, slack):
    size, every, by = shape
    check_replay(lambda s: s.each_row(size, every, by=by, partition_by=parts, using=using), rows, groups, seed, slack)


@USING
@settings(CHECK, max_examples=4)
@given(ROWS, st.integers(0, 9), st.sampled_from([4, 12]))
def test_every_aggregate(using, rows, seed, size):
    check_replay(lambda s: s.each_row(size, 2, using=using), rows, ("k",), seed, 11, EVERY)


@USING
@CHECK
@given(st.sampled_from([1, 6, 30]), ROWS, CUTS, st.sampled_from(["rank", "row_num"]))
def test_late_rows_are_dropped_or_leave_by_the_side(using, size, rows, cuts, by):
    check_drop(lambda s: s.each_row(size, 1, by=by, using=using), rows, cuts, ("k",))


def generous(rows, cuts, size, every, keys):
    """What comes out if a late row counts in the windows that end at rows in time and are not out when it comes."""
    found, here, ends, closed, rank = [], [], [], -(10**9), 0
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    for a, b in [*zip(edges, edges[1:], strict=False), (None, None)]:  # noqa: RUF007
        new = [] if a is None else rows[a:b]
        ends += [row["t"] for row in new if row["t"] >= closed]
        here += new
        closed = max((row["t"] for row in here), default=-(10**9)) if a is not None else 10**9
        due = sorted(t for t in ends if t < closed)
        ends = [t for t in ends if t >= closed]
        chosen = {t for i, t in enumerate(due, rank) if i % every == 0}
        rank += len(due)
        for w in chosen:
            inside = [row for row in here if w - size < row["t"] <= w]
            for group in {tuple(row[k] for k in keys) for row in inside}:
                own = [row for row in inside if tuple(row[k] for k in keys) == group]
                xs = [row["x"] for row in own if row["x"] is not None]
                words = sorted({row["w"] for row in own if row["w"] is not None})
                found.append(
                    (*group, w - size, w, len(own), sum(xs) if xs else None, len(words), min(words, default=None))
                )
    return found


@USING
@settings(CHECK, max_examples=60)
@given(st.sampled_from([1, 6, 30]), st.sampled_from([1, 3]), ROWS, CUTS, GROUPS)
def test_under_generous_slack_late_rows_count_in_the_windows_still_open(using, size, every, rows, cuts, keys):
    wanted = {"n": wr.count(), "s": wr.sum("x"), "words": wr.count_distinct("w"), "least": wr.min("w")}
    built = query(lambda s: s.each_row(size, every, using=using).late("drop", generous=True), rows, keys, wanted)
    found = pl.concat([run.results() for run in feed(built, rows, cuts)])
    expected = pl.DataFrame(generous(rows, cuts, size, every, keys), schema=found.schema, orient="row")
    compare(found, expected, "generous")


def each(**options):
    return wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=0, name="s").each_row(5, **options)


@USING
def test_state_holds_one_range_of_rows(using):
    run = each(using=using).agg(n=wr.count()).run()
    for t in range(300):
        run.push("s", pl.DataFrame({"t": [t]}))
    held = sum(f.height for name, f in run.snapshot().items() if name.split("/")[-1][0].isdigit())
    assert held <= 12


def test_what_windows_have_passed_goes_slice_by_slice(monkeypatch):
    monkeypatch.setattr(slide_by_tuple, "SHELF", 1)
    run = wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=0, name="s").each_row(160)
    run = run.agg(n=wr.count()).run()
    for t in range(500):
        run.push("s", pl.DataFrame({"t": [t]}))
        held = {name: f.height for name, f in run.snapshot().items() if not name.endswith("/reached")}  # of results
        assert sum(held.values()) <= 160 + 10 + 8  # RANGE, a slice of it, merges and marks
    assert run.end().results()["n"].to_list()[-1] == 160


@USING
def test_at_the_end_nothing_is_held(using):
    run = each(every=2, using=using).agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [-7, 1, 3, 4, 30]}))
    assert run.state_bytes() > 0
    run.end()
    assert [n for n in run.snapshot() if n.split("/")[-1][0].isdigit() and "counts" not in n] == []


@USING
def test_under_generous_slack_a_late_row_counts_in_later_windows(using):
    run = each(using=using).late("drop", generous=True).agg(n=wr.count()).run()
    for batch in ([1, 6], [5], [7]):
        run.push("s", pl.DataFrame({"t": batch}))
    assert run.end().results().sort("window_end").rows() == [(-4, 1, 1), (1, 6, 2), (2, 7, 3)]
    assert run.counts["rows_late"] == 1


@USING
def test_waits_for_is_just_after_the_first_row_not_covered(using):
    run = each(using=using).agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [3, 9]}))
    assert first_wait(run.graph) == 10


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(
        wr.QueryError, match="unknown algorithm 'tree' for slide-by-tuple windows; available: blocks, bins"
    ):
        each(using="tree")


COUNT = Partials([make("count", "n", None, pl.Int64())])


def fed(kind, window, batches, keys=()):
    """The operator by itself: what each promise releases as {end: count}; restored from what it says has changed."""
    disk, found = {}, []
    operator = kind(Windowing(window, keys, COUNT, pl.Int64()))
    for times, promise in batches:
        operator.on_batch(0, *Instants(keys, COUNT).on_batch(0, pl.DataFrame({"@t": times}, schema={"@t": pl.Int64})))
        items = operator.on_punctuation(0, Punctuation(promise))
        rows = [row for item in items if isinstance(item, pl.DataFrame) for row in item.rows(named=True)]
        found.append({row["window_end"]: row["n"] for row in rows})
        for name, chunk in operator.changes().items():
            disk.pop(name) if chunk is None else disk.update({name: chunk})
        operator = kind(Windowing(window, keys, COUNT, pl.Int64()))
        operator.restore(dict(disk))
    return found


@KINDS
def test_a_promise_may_pass_many_blocks_and_blocks_may_be_empty(kind):
    batches = [([-31, 0, 4, 5], 5), ([9, 10, 12], 11), ([], 13), ([26, 27, 55], 60), ([61], END)]
    assert fed(kind, SlideByTuple(5), batches) == [
        {-31: 1, 0: 1, 4: 2},
        {5: 2, 9: 2, 10: 2},
        {12: 3},
        {26: 1, 27: 2, 55: 1},
        {61: 1},
    ]


@KINDS
def test_times_and_ranges_at_the_edge_of_64_bits(kind):
    low, high = -(2**63) + 1, 2**63 - 2
    for size in (1, 7, 2**60 - 1, 2**60):
        found = fed(kind, SlideByTuple(size), [([low, low + 1, -1], 0), ([0, high - 1, high], END)])
        times = [low, low + 1, -1, 0, high - 1, high]
        want = {w: sum(w - size < t <= w for t in times) for w in times}
        assert found[0] | found[1] == want, size


@USING
def test_a_late_row_can_be_the_last_of_its_group_in_a_block(using):
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "k": pl.String}), progress="t", slack=0, name="s")
    run = s.each_row(6, using=using).late("drop", generous=True).group_by("k").agg(n=wr.count()).run()
    for rows in ([(1, "a"), (7, "b")], [(3, "a")], [(8, "b"), (9, "b")]):  # a window ends at 8: it holds the row at 3
        run.push("s", pl.DataFrame(rows, schema=["t", "k"], orient="row"))
    found = run.end().results().filter(pl.col("k") == "a").select("window_end", "n").sort("window_end").rows()
    assert found == [(1, 1), (7, 1), (8, 1)]
