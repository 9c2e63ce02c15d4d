"""Promises about single groups: their windows come out at once, no window twice, late rows are told, state is freed."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.operators import GroupPaned
from windrow.testing import compare

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
SCHEMA = {"t": pl.Int64, "k": pl.String, "x": pl.Int64}
SHAPES = st.sampled_from([(10, 10), (20, 5), (15, 10), (5, 10)])
ROWS = st.lists(
    st.fixed_dictionaries({"t": st.integers(-20, 60), "k": st.sampled_from(["a", "b", None]), "x": st.integers(0, 9)}),
    max_size=25,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(1, 4)),
        st.tuples(st.just("group"), st.sampled_from(["a", "b"])),
        st.tuples(st.just("all"), st.none()),
    ),
    max_size=20,
)


def query(rows, shape, generous=False, using="paned"):
    frame = pl.DataFrame(rows, schema=SCHEMA)
    s = wr.stream(frame, progress="t", punctuation_by="k", name="s")
    windowed = s.window(*shape, using=using).group_by("k").late("drop", generous=generous)
    return windowed.agg(n=wr.count(), s=wr.sum("x"), m=wr.median("x"))


def ends(shape, t):
    """The ends of the windows of a row."""
    size, slide = shape
    return [(w + 1) * slide for w in range(t // slide, (t + size) // slide)]


class Replay:
    """Feeds a run, restored from its changes after every call, and knows how far each group is promised."""

    def __init__(self, q):
        self.again = q.plan()
        self.run = q.run()
        assert isinstance(self.run.graph.nodes[-3].operator, GroupPaned)
        self.state, self.results = {}, []
        self.low, self.groups = None, {}

    def level(self, k):
        known = [v for v in (self.low, self.groups.get(k)) if v is not None]
        return max(known, default=None)

    def do(self, call):
        call(self.run)
        self.results.append(self.run.results())
        counts = self.run.counts
        changes = self.run.graph.changes()
        self.state = {k: v for k, v in {**self.state, **changes}.items() if v is not None}
        self.run = LocalRun(self.again)
        self.run.graph.restore(dict(self.state))
        self.run.counts = counts

    def out(self):
        return pl.concat(self.results)

    def promise(self, at, k=None):
        if k is None:
            self.low = at if self.low is None else max(self.low, at)
            self.do(lambda run: run.promise("s", at))
        else:
            self.groups[k] = max(self.groups.get(k, at), at)
            self.do(lambda run: run.promise("s", at, group={"k": k}))


@CHECK
@given(SHAPES, ROWS, STEPS)
def test_true_promises_release_each_groups_windows_at_once_and_once(shape, rows, steps):
    q = query(rows, shape)
    whole = q.collect()
    replay = Replay(q)
    left = list(rows)
    for kind, what in steps:
        if kind == "rows":
            batch, left = left[:what], left[what:]
            replay.do(lambda run, b=batch: run.push("s", pl.DataFrame(b, schema=SCHEMA)))
            continue
        still = [r["t"] for r in left if kind == "all" or r["k"] == what]
        replay.promise(min(still, default=100), what)
        level = pl.col("k").map_elements(replay.level, pl.Int64, skip_nulls=False)
        compare(replay.out(), whole.filter(pl.col("window_end") <= level), "after a promise")
    replay.do(lambda run: run.push("s", pl.DataFrame(left, schema=SCHEMA)))
    replay.do(lambda run: run.end())
    compare(replay.out(), whole, "at the end")
    assert replay.run.counts["rows_late"] == 0


@CHECK
@given(SHAPES, ROWS, STEPS, st.lists(st.integers(-20, 70), min_size=20, max_size=20), st.booleans())
def test_late_rows_of_a_group_are_counted_and_the_others_add_up(shape, rows, steps, values, generous):
    """Promises that may be broken: a row is late if a window of its group that it belongs to is out."""
    replay = Replay(query(rows, shape, generous))
    left, counted, late = list(rows), [], 0
    for (kind, what), value in zip(steps, values, strict=False):
        if kind != "rows":
            replay.promise(value, what)
            continue
        batch, left = left[:what], left[what:]
        for row in batch:
            out = [e for e in ends(shape, row["t"]) if (level := replay.level(row["k"])) is not None and e <= level]
            late += bool(out)
            wanted = ends(shape, row["t"]) if not out else sorted(set(ends(shape, row["t"])) - set(out))
            counted += [(row["k"], e, row["x"]) for e in wanted if not out or generous]
        replay.do(lambda run, b=batch: run.push("s", pl.DataFrame(b, schema=SCHEMA)))
    replay.do(lambda run: run.end())
    assert replay.run.counts["rows_late"] == late
    entries = pl.DataFrame(counted, schema={"k": pl.String, "window_end": pl.Int64, "x": pl.Int64}, orient="row")
    expected = entries.group_by("k", "window_end").agg(n=pl.len().cast(pl.Int64), s=pl.col("x").sum())
    compare(replay.out().select("k", "window_end", "n", "s"), expected, "rows on time")


def test_groups_that_end_one_by_one_leave_no_partials_behind():
    q = query([], (10, 10))
    replay = Replay(q)
    most = 0
    for i in range(60):
        rows = [{"t": i, "k": f"auction {i}", "x": x} for x in range(20)]
        replay.do(lambda run, rows=rows: run.push("s", pl.DataFrame(rows, schema=SCHEMA)))
        replay.promise(1000, f"auction {i}")
        paned = replay.run.graph.nodes[-3].operator
        most = max(most, paned.chunks.height())
    assert replay.out().height == 60
    assert most <= 2
    replay.promise(2000)
    told = replay.run.graph.nodes[-3].operator.told
    assert told.height() == 0  # a promise about everyone has caught up


def test_by_other_keys_or_with_revisions_only_promises_about_everyone_count():
    frame = pl.DataFrame([{"t": 1, "k": "a", "x": 2}], schema=SCHEMA)
    s = wr.stream(frame, progress="t", punctuation_by="k", name="s")
    for q in (
        s.window(10).agg(n=wr.count()),
        s.window(10).group_by("x").agg(n=wr.count()),
        s.window(10).group_by("k").late("revise", keep=5).agg(n=wr.count()),
    ):
        run = q.run().push("s", frame).promise("s", 50, group={"k": "a"})
        assert run.results().height == 0
        assert run.promise("s", 50).results().height == 1
    with pytest.raises(wr.QueryError, match="can promise by k, not by x"):
        s.window(10).agg(n=wr.count()).run().promise("s", 1, group={"x": 1})
    with pytest.raises(wr.QueryError, match="punctuation_by='z' is not a column"):
        wr.stream(frame, progress="t", punctuation_by="z")


def test_markers_name_their_group_and_renamed_keys_are_followed():
    rows = [
        {"t": 1, "k": "a", "done": None},
        {"t": 2, "k": "b", "done": None},
        {"t": None, "k": "a", "done": 10},
    ]
    s = wr.stream(rows, progress="t", punctuation="done", punctuation_by="k", name="s")
    q = s.select("t", who="k").window(10).group_by(person="who").agg(n=wr.count())
    run = q.run().push("s", pl.DataFrame(rows))
    assert run.results().rows() == [("a", 0, 10, 1)]
    everyone = pl.DataFrame([{"t": None, "k": None, "done": 10}], schema=pl.DataFrame(rows).schema)
    assert run.push("s", everyone).results().rows() == [("b", 0, 10, 1)]


def test_a_marker_that_names_a_part_of_a_group_is_bad_and_promises_nothing():
    rows = pl.DataFrame(
        [(1, "a", 1, None), (None, "a", None, 50), (None, "a", 1, 10)], schema=["t", "k", "j", "done"], orient="row"
    )
    s = wr.stream(rows, progress="t", punctuation="done", punctuation_by=["k", "j"], name="s")
    run = s.window(10).group_by("k", "j").agg(n=wr.count()).run().push("s", rows)
    assert run.results().rows() == [("a", 1, 0, 10, 1)]
    assert run.bad_rows()["reason"].to_list() == ["the marker names only a part of a group"]
    assert run.push("s", rows[:1].with_columns(t=pl.lit(20))).counts["rows_late"] == 0


def test_the_optimizer_leaves_promises_about_groups_their_algorithm():
    n = 4000
    rows = pl.DataFrame({"t": range(n), "k": [str(i) for i in range(n)], "x": range(n)})
    s = wr.stream(rows, progress="t", punctuation_by="k", name="s")
    run = s.window(10).group_by("k").agg(n=wr.count()).run().push("s", rows[:5])
    assert run.promise("s", 10, group={"k": "1"}).results().height == 1
    assert s.window(10, using="wid").group_by("k").agg(n=wr.count()).plan().stages()[0].algorithm == "wid"
