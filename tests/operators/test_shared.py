"""Queries that share panes give what each gives alone: any order, batches, restores; late rows by each one's slide."""

import polars as pl
import pytest
from harness import first_wait
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import EVERY, NUMBERS, ROWS, frame

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.operators import SharedPanes
from windrow.testing import compare

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
SHAPES = st.tuples(st.integers(1, 24), st.integers(1, 12), st.integers(-7, 7))
WINDOWS = st.lists(SHAPES, min_size=2, max_size=3)
CUTS = st.lists(st.integers(1, 6), min_size=1, max_size=8)


# Whatever the queries compute: most have states that the others do not have, and in another order.
PICKED = st.lists(st.lists(st.sampled_from(list(EVERY)), min_size=1, max_size=4, unique=True), min_size=3, max_size=3)
FIRST = [list(NUMBERS)[i:] for i in range(3)]


def queries(rows, shapes, slack, picked=FIRST, generous=False, key="k"):
    s = wr.stream(frame(rows), progress="t", slack=slack, row_num="n", name="s")
    alone = {}
    for i, (size, slide, origin) in enumerate(shapes):
        windowed = s.window(size, slide, origin=origin, using="paned").late("drop", generous=generous)
        alone[f"q{i}"] = windowed.group_by(key).agg(**{name: EVERY[name] for name in picked[i]})
    return wr.together(**alone), alone


def fed(query, data, cuts, restored=True):
    """Results and late rows after pieces of the data, restored from the changes after every call."""
    run, again, state, out = query.run(), query.plan(), {}, []
    at = 0
    while at < data.height:
        size = cuts[at % len(cuts)]
        run.push("s", data[at : at + size])
        at += size
        out.append(run.results())
        if restored:
            changes = run.graph.changes()
            state = {k: v for k, v in {**state, **changes}.items() if v is not None}
            fresh = LocalRun(again)
            fresh.graph.restore(dict(state))
            fresh.counts = run.counts
            run = fresh
    return pl.concat([run.results(), *out]), run


# Again and again the same, so that each query has many late rows of a few panes, which it merges.
AGAIN = st.one_of(ROWS, st.tuples(ROWS, st.integers(2, 5)).map(lambda drawn: (drawn[0] * drawn[1])[:40]))


@CHECK
@given(AGAIN, WINDOWS, st.sampled_from([0, 3, 80]), CUTS, st.booleans(), PICKED, st.sampled_from(["k", "z"]))
def test_each_query_gives_what_it_gives_alone_late_rows_and_all(rows, shapes, slack, cuts, generous, picked, key):
    both, alone = queries(rows, shapes, slack, picked, generous, key)
    data = frame(rows)
    found, run = fed(both, data, cuts)
    late = 0
    for name, query in alone.items():
        own, own_run = fed(query, data, cuts, restored=False)
        late += own_run.counts["rows_late"]
        compare(found.filter(pl.col(name).is_not_null()).select(name).unnest(name), own, name)
    assert run.counts["rows_late"] == late
    assert run.counts["rows_out"] == found.height


@settings(CHECK, max_examples=15)
@given(ROWS, WINDOWS)
def test_every_aggregate_over_shared_panes_to_the_end(rows, shapes):
    both, alone = queries(rows, shapes, 80, [list(EVERY)[i:] for i in range(3)])
    for name, found in both.collect().items():
        compare(found, alone[name].collect(), name)


@pytest.mark.parametrize("generous", [False, True])
def test_a_row_late_for_the_short_window_counts_in_the_long_one(generous):
    """Issue 11: the states of one query's late panes were put beside those of all queries."""
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "k": pl.String, "x": pl.Int64}), "t", slack=0, name="s")
    short = s.window(5).late("drop", generous=generous).group_by("k").agg(n=wr.count(), hi=wr.max("x"))
    long = s.window(20).late("drop", generous=generous).group_by("k").agg(total=wr.sum("x"), kinds=wr.collect_set("x"))
    run = wr.together(short=short, long=long).run()
    for t, x in ((1, 1), (7, 2), (2, 4), (2, 4), (3, 4), (2, 4), (0, 4)):
        run.push("s", [{"t": t, "k": "a", "x": x}])
    assert run.counts["rows_late"] == 5
    found = run.end().results()
    assert found["long"].drop_nulls().to_list() == [
        {"k": "a", "window_start": 0, "window_end": 20, "total": 23, "kinds": [1, 2, 4]}
    ]
    assert found["short"].drop_nulls().struct.field("n").to_list() == [1, 1]


def test_conditions_over_results_projections_and_user_aggregates_stay_with_their_query():
    rows = [{"t": t, "k": "ab"[t % 2], "x": t} for t in range(30)]
    s = wr.stream(rows, progress="t").where("x <> 4")
    total = wr.aggregate("total", int, lambda a, b: a + b, int, state="BIGINT", result="BIGINT")
    many = (
        s.window(10)
        .group_by("k")
        .agg(n=wr.count(), s=total("x"))
        .where("n > 4")
        .select("k", "window_end", double="s * 2")
    )
    some = s.window(6, 3).group_by("k").agg(n=wr.count())
    found = wr.together(many=many, some=some).collect()
    compare(found["many"], many.collect(), "many")
    compare(found["some"], some.collect(), "some")
    assert 0 < found["many"].height < 6


def test_panes_are_held_once_and_freed_by_the_longest_window():
    data = pl.DataFrame({"t": range(400), "k": ["a"] * 400})
    s = wr.stream(data.clear(), progress="t", slack=0, name="s")
    long = s.window(60, 10).group_by("k").agg(n=wr.count())
    short = s.window(20, 10).group_by("k").agg(n=wr.count())
    both = wr.together(long=long, short=short)
    shared, alone = both.run().push("s", data), long.run().push("s", data)
    [operator] = [n.operator for n in shared.graph.nodes if isinstance(n.operator, SharedPanes)]
    assert operator.chunks.height() <= 8
    assert shared.state_bytes() < 1.3 * alone.state_bytes()


def test_waits_for_is_the_next_end_of_any_of_them():
    s = wr.stream(pl.DataFrame({"t": [12], "k": ["a"]}), progress="t", name="s")
    both = wr.together(a=s.window(20, 10).agg(n=wr.count()), b=s.window(15, 5).agg(n=wr.count()))
    run = both.run().push("s", pl.DataFrame({"t": [12], "k": ["a"]}))
    assert first_wait(run.graph) == 15
    run.promise("s", 15)
    assert run.results().height == 1
    assert first_wait(run.graph) == 20


@pytest.mark.parametrize(
    "other",
    [
        lambda s: s.window(5).group_by("x").agg(n=wr.count()),
        lambda s: s.where("x > 1").window(5).group_by("k").agg(n=wr.count()),
        lambda s: s.session(5).group_by("k").agg(n=wr.count()),
        lambda s: s.window(5, using="wid").group_by("k").agg(n=wr.count()),
        lambda s: s.window(5).late("revise", keep=5).group_by("k").agg(n=wr.count()),
        lambda s: s.select("t", y="x + 1"),
        lambda s: s.join(s, on="k", within=(0, 3)),
    ],
)
def test_what_cannot_share_panes_still_reads_its_stream_once(other):
    s = wr.stream([{"t": t, "k": "ab"[t % 2], "x": t % 5} for t in range(40)], progress="t", slack=0, name="s")
    shared = [s.window(10).group_by("k").agg(n=wr.count()), s.window(20, 5).group_by("k").agg(m=wr.max("x"))]
    both = wr.together(a=shared[0], b=other(s), c=shared[1])
    found = both.collect()
    for name, alone in {"a": shared[0], "b": other(s), "c": shared[1]}.items():
        compare(found[name], alone.collect(), name)
    assert len(both.plan().reads()) == 1
    assert sum(stage.algorithm == "shared-panes" for stage in both.plan().stages()) == 1
    run = both.run().push("s", [{"t": 1, "k": "a", "x": 1}])
    assert run.counts["rows_in"] == 1


def test_two_streams_of_one_name_cannot_run_together_and_one_query_need_not():
    s, r = (wr.stream([{"t": 1}], progress="t") for _ in range(2))
    with pytest.raises(wr.QueryError, match="two streams named 'stream'"):
        wr.together(a=s.window(1).agg(n=wr.count()), b=r.window(1).agg(n=wr.count()))
    with pytest.raises(wr.QueryError, match="at least two"):
        wr.together(a=s.window(1).agg(n=wr.count()))
