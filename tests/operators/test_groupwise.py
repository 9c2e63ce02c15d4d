"""Promises about single groups: each group is as far as it is promised, under every window, policy and option."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.hosts.local import LocalRun
from windrow.testing import compare

CHECK = settings(deadline=None, derandomize=True, max_examples=10)
SCHEMA = {"t": pl.Int64, "k": pl.String, "x": pl.Int64, "n": pl.Int64}
GROUPS = ["a", "b", None]
ROWS = st.lists(
    st.fixed_dictionaries({"t": st.integers(-20, 60), "k": st.sampled_from(GROUPS), "x": st.integers(0, 9)}),
    max_size=20,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["a", "b", "everyone", "NULL"]), st.integers(-20, 80)),
    ),
    max_size=14,
)
SHAPES = {
    "tumbling": lambda s: s.window(10),
    "sliding": lambda s: s.window(20, 5),
    "uneven": lambda s: s.window(15, 10),
    "hopping": lambda s: s.window(5, 10),
    "landmark": lambda s: s.landmark(10),
    "session": lambda s: s.session(7),
    "each row": lambda s: s.each_row(12, partition_by="k"),
    "every second row": lambda s: s.each_row(12, 2, partition_by="k"),
}
GENEROUS = ["generous", "side, generous"]
SLIDING = ["tumbling", "sliding", "uneven", "hopping"]
OPTIONS = {
    "drop": lambda w: w,
    "generous": lambda w: w.late("drop", generous=True),
    "side": lambda w: w.late("side"),
    "side, generous": lambda w: w.late("side", generous=True),
    "revise": lambda w: w.late("revise", keep=15),
    "empty": lambda w: w.with_empty(),
    "early": lambda w: w.emit_early(4),
    "early and revise": lambda w: w.late("revise", keep=15).emit_early(4),
}
COMBINED = [(shape, option) for shape in SLIDING for option in OPTIONS]
COMBINED += [(shape, option) for shape in SHAPES if shape not in (*SLIDING, "session") for option in GENEROUS]
COMBINED += [(shape, option) for shape in SHAPES if shape not in SLIDING for option in ("drop", "side")]


def numbered(rows):
    return pl.DataFrame([{**row, "n": i} for i, row in enumerate(rows)], schema=SCHEMA)


def query(rows, shape, option, by="k"):
    s = wr.stream(numbered(rows), progress="t", punctuation_by=by, name="s")
    windowed = OPTIONS[option](SHAPES[shape](s))
    grouped = windowed if windowed.parts else windowed.group_by("k")
    return grouped.agg(c=wr.count(), s=wr.sum("x"), m=wr.median("x"))


class Group:
    """The same query over one group alone, where promises are about everyone."""

    def __init__(self, shape, option):
        self.run = query([], shape, option, by=()).run()
        self.promised = None

    def promise(self, at):
        if self.promised is None or at > self.promised:
            self.promised = at
            self.run.promise("s", at)


class Replay:
    """A run, restored from its changes after every call, beside a run for each group."""

    def __init__(self, shape, option):
        built = query([], shape, option)
        self.again, self.run = built.plan(), built.run()
        self.state = {}
        self.groups = {k: Group(shape, option) for k in GROUPS}
        self.versioned = "version" in built.schema
        self.early = "early" in option

    def do(self, call):
        call(self.run)
        found, counts, side = self.run.results(), self.run.counts, self.run._side
        changes = self.run.graph.changes()
        self.state = {k: v for k, v in {**self.state, **changes}.items() if v is not None}
        self.run = LocalRun(self.again)
        self.run.graph.restore(dict(self.state))
        self.run.counts, self.run._side = counts, side
        return found

    def step(self, batch=None, group=None, at=None):
        """What came out, and what each group alone gives for it."""
        if batch is not None:
            found = self.do(lambda run: run.push("s", batch))
            for k, own in self.groups.items():
                part = batch.filter(pl.col("k").eq_missing(pl.lit(k, pl.String)))
                if part.height:
                    own.run.push("s", part)
        else:
            about = None if group == "everyone" else {"k": None if group == "NULL" else group}
            found = self.do(lambda run: run.promise("s", at, group=about))
            for k, own in self.groups.items():
                if group == "everyone" or k == about["k"]:
                    own.promise(at)
        return found, pl.concat([own.run.results() for own in self.groups.values()])


def last_versions(frames):
    every = pl.concat(frames)
    return every.sort("version").group_by("k", "window_end", maintain_order=True).last().drop("version", "status")


@pytest.mark.parametrize(("shape", "option"), COMBINED)
@CHECK
@given(rows=ROWS, steps=STEPS)
def test_a_group_is_as_if_it_were_alone(shape, option, rows, steps):
    """Issue 11: only plain panes did this. Promises may be broken: late rows are those of each group alone, too."""
    replay, data = Replay(shape, option), numbered(rows)
    found, expected, at = [], [], 0
    for kind, value in [*steps, ("rows", len(rows))]:
        if kind == "rows":
            batch, at = data[at : at + value], at + value
            if not batch.height:
                continue
            got, want = replay.step(batch)
        else:
            got, want = replay.step(group=kind, at=value)
        found.append(got)
        expected.append(want)
        if not replay.early:
            compare(got, want, f"{kind} {value}")
    if replay.early and found:  # when open windows are shown depends on all rows; what stands in the end does not
        every = pl.concat(found)
        assert not every.select("k", "window_end", "version").is_duplicated().any()
        status = every.sort("version").group_by("k", "window_end").agg("status")["status"]
        assert not [each for each in status.to_list() if each[-1] == "early" and set(each) != {"early"}]  # out is out
        final = (
            [f.filter(pl.col("status") != "early") for f in found],
            [f.filter(pl.col("status") != "early") for f in expected],
        )
        compare(last_versions(final[0]), last_versions(final[1]), "final versions")
    for what in ("rows_late", "rows_revised"):
        assert replay.run.counts[what] == sum(own.run.counts[what] for own in replay.groups.values())
    if "side" in option:
        late = pl.concat([own.run.late_rows() for own in replay.groups.values()])
        compare(replay.run.late_rows(), late, "late rows")


@CHECK
@given(rows=ROWS, steps=STEPS)
@pytest.mark.parametrize("outer", ["tumbling", "session", "landmark"])
@pytest.mark.parametrize("inner", ["tumbling", "session", "sliding"])
def test_windows_over_windows_close_group_by_group(inner, outer, rows, steps):
    def nested(by):
        s = wr.stream(numbered([]), progress="t", punctuation_by=by, name="s")
        results = SHAPES[inner](s).group_by("k").agg(c=wr.count())
        return SHAPES[outer](results).group_by("k").agg(c=wr.sum("c"), parts=wr.count())

    if outer == "landmark":
        with pytest.raises(wr.PlanError, match="landmark window over the results"):
            nested("k")
        return
    groups = {k: nested(()).run() for k in GROUPS}
    run, data, at = nested("k").run(), numbered(rows), 0
    for kind, value in steps:
        if kind == "rows":
            batch, at = data[at : at + value], at + value
            run.push("s", batch)
            for k, own in groups.items():
                own.push("s", batch.filter(pl.col("k").eq_missing(pl.lit(k, pl.String))))
        else:
            about = None if kind == "everyone" else {"k": None if kind == "NULL" else kind}
            run.promise("s", value, group=about)
            for k in GROUPS if about is None else [about["k"]]:
                groups[k].promise("s", value)
        compare(run.results(), pl.concat([own.results() for own in groups.values()]), f"{kind} {value}")


@CHECK
@given(rows=ROWS, steps=STEPS, generous=st.booleans())
def test_queries_that_share_panes_close_group_by_group(rows, steps, generous):
    """As each of them does alone."""

    def queries(stream):
        windows = {"short": stream.window(5), "long": stream.window(20, 10), "hop": stream.window(3, 9)}
        aggregates = {"short": wr.count(), "long": wr.sum("x"), "hop": wr.median("x")}
        late = {n: w.late("drop", generous=generous).group_by("k") for n, w in windows.items()}
        return {n: w.agg(a=aggregates[n]) for n, w in late.items()}

    s = wr.stream(numbered([]), progress="t", punctuation_by="k", name="s")
    plan = wr.together(**queries(s)).plan()
    both, state = LocalRun(plan), {}
    alone = {name: q.run() for name, q in queries(s).items()}
    data, at = numbered(rows), 0
    for kind, value in steps:
        for run in (both, *alone.values()):
            if kind == "rows":
                run.push("s", data[at : at + value])
            else:
                about = None if kind == "everyone" else {"k": None if kind == "NULL" else kind}
                run.promise("s", value, group=about)
        at += value if kind == "rows" else 0
        found = both.results()
        for name, run in alone.items():
            own = found.filter(pl.col(name).is_not_null()).select(name).unnest(name)
            compare(own, run.results(), f"{name}, {kind} {value}")
        counts, changes = both.counts, both.graph.changes()
        state = {k: v for k, v in {**state, **changes}.items() if v is not None}
        both = LocalRun(plan)
        both.graph.restore(dict(state))
        both.counts = counts
    assert both.counts["rows_late"] == sum(run.counts["rows_late"] for run in alone.values())


def test_groups_that_end_one_by_one_leave_no_partials_behind():
    replay = Replay("tumbling", "drop")
    most = 0
    for i in range(60):
        rows = [{"t": i, "k": f"auction {i}", "x": x, "n": 0} for x in range(20)]
        replay.do(lambda run, rows=rows: run.push("s", pl.DataFrame(rows, schema=SCHEMA)))
        assert replay.do(lambda run, i=i: run.promise("s", 1000, group={"k": f"auction {i}"})).height == 1
        paned = replay.run.graph.nodes[-3].operator
        most = max(most, paned.chunks.height())
    assert most <= 2
    replay.do(lambda run: run.promise("s", 2000))
    assert replay.run.graph.nodes[-3].operator.levels.ahead.height() == 0  # a promise about everyone has caught up


def test_a_window_that_a_groups_own_promise_has_closed_is_not_shown_early_again():
    run = query([], "tumbling", "early").run()
    others = [{"t": t, "k": "b", "x": 1} for t in (11, 21, 31)]  # so that what is done is not dropped at once
    run.push("s", numbered([{"t": 1, "k": "a", "x": 1}, *others])).push("s", numbered([{"t": 2, "k": "a", "x": 1}]))
    run.promise("s", 10, group={"k": "a"}).push("s", numbered([{"t": 45, "k": "b", "x": 1}]))
    shown = run.results().filter(pl.col("k") == "a").select("c", "version", "status").rows()
    assert shown == [(1, 1, "early"), (2, 2, "final")]


def test_where_the_groups_are_others_promises_about_single_ones_are_counted_as_ignored():
    frame = pl.DataFrame([{"t": 1, "k": "a", "x": 2, "n": 0}], schema=SCHEMA)
    s = wr.stream(frame, progress="t", punctuation_by="k", name="s")
    for q in (
        s.window(10).agg(n=wr.count()),
        s.window(10).group_by("x").agg(n=wr.count()),
        s.window(10).group_by(upper="upper(k)").agg(n=wr.count()),
        s.each_row(10).group_by("k").agg(n=wr.count()),
        s.distinct(),
        s.order_by("t"),
        s.window(10, using="iop").group_by("k").agg(n=wr.count()),
    ):
        assert "promises about single k close nothing here" in q.explain()
        run = q.run().push("s", frame)
        out = run.results().height
        assert run.promise("s", 50, group={"k": "a"}).results().height == 0
        assert run.counts["promises_ignored"] == 1
        assert out + run.promise("s", 50).results().height == 1
    with pytest.raises(wr.QueryError, match="can promise by k, not by x"):
        s.window(10).agg(n=wr.count()).run().promise("s", 1, group={"x": 1})
    with pytest.raises(wr.QueryError, match="punctuation_by='z' is not a column"):
        wr.stream(frame, progress="t", punctuation_by="z")


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_promise_about_a_group_that_nobody_has_seen_is_counted(shape):
    run = query([], shape, "drop").run()
    run.push("s", numbered([{"t": 6, "k": "a", "x": 1}]))
    run.promise("s", 10, group={"k": "nobody"})
    assert run.counts["promises_unmatched"] == 1
    run.promise("s", 10, group={"k": "a"})
    assert run.counts["promises_unmatched"] == 1
    other = wr.stream(numbered([]), progress="t", punctuation_by="k", name="s").window(5).group_by("k", "x")
    run = other.agg(c=wr.count()).run().promise("s", 5, group={"k": "nobody"})
    assert run.counts["promises_unmatched"] == 0  # its rows may be in any of several groups, and shards


@pytest.mark.parametrize("using", ["wid", "buffering", "adaptwid", "adaptpaned", "two-level"])
def test_an_algorithm_that_closes_all_groups_together_is_refused(using):
    s = wr.stream(numbered([]), progress="t", punctuation_by="k", name="s")
    with pytest.raises(wr.PlanError, match="the stream makes promises about single k"):
        s.window(10, using=using).group_by("k").agg(n=wr.count()).plan()
    with pytest.raises(wr.PlanError, match="the stream makes promises about single k"):
        s.each_row(10, using="bins", partition_by="k").agg(n=wr.count()).plan()
    s.window(10, using=using).group_by("x").agg(n=wr.count()).plan()


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
