"""The choice of an algorithm: by the cost model, from what is measured, declared or assumed; and what is refused."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.planner import Given, plan
from windrow.planner.choose import Workload, choose
from windrow.planner.choose.costs import aggregation as costs

DENSE = Workload(1000, 10, 60, 1, 60.0, 24, 40, 40, "declared")


def stream(rows=20_000, keys=50, span=100_000, slack=0, **options):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "t": np.sort(rng.integers(0, span, rows)),
            "k": rng.integers(0, keys, rows),
            "x": rng.integers(0, 9, rows),
        }
    )
    return wr.stream(frame, progress="t", slack=slack, name="s", **options)


def choice(query):
    return query.plan().stages()[0].choice


def test_the_cost_of_panes_hardly_grows_with_the_panes_of_a_window_and_that_of_the_others_does():
    for name in costs.TIME:
        grows = costs.TIME[name](replace(DENSE, panes=240)) > 1.1 * costs.TIME[name](DENSE)
        assert grows == (name not in ("paned", "adaptpaned"))


def test_dense_panes_are_merged_and_windows_of_lone_rows_are_not():
    assert choose(DENSE, {}).name == "paned"
    lone = Workload(10, 10, 1, 1, 1.0, 24, 40, 24, "declared")
    assert choose(lone, {}).name == "buffering"


def test_on_spark_rows_have_to_cross_the_exchange_so_panes_win_earlier():
    some = Workload(1000, 1000, 1, 1, 1.0, 24, 40, 24, "declared")
    assert choose(some, {}).name == "buffering"
    few = replace(some, groups=500.0, exchanged=True)
    assert choose(few, {}).name == "paned"


def test_memory_is_a_limit_and_the_least_is_taken_where_none_fits():
    skewed = replace(DENSE, groups=500.0, smaller=25.0)
    assert choose(skewed, {}).name == "paned"
    limited = choose(skewed, {}, memory=int(costs.pane_bytes(skewed)) - 1)
    assert limited.name == "adaptpaned"
    assert "at most" in limited.reason
    none = choose(skewed, {}, memory=10)
    assert none.reason.startswith("none fits into 10 bytes")
    assert none.name in ("adaptpaned", "adaptwid")


def test_algorithms_as_fast_as_the_fastest_are_told_apart_by_their_state():
    assert choose(DENSE, {"paned": "no", "wid": "no", "buffering": "no", "adaptwid": "no"}).name == "adaptpaned"


def test_rows_that_are_here_are_measured_as_the_aggregation_gets_them():
    found = choice(stream(slack=7).where("x < 3").window(5000, 100).group_by("k").agg(n=wr.count()))
    w = found.workload
    assert (w.basis, w.panes, w.step) == ("measured", 50, 1)
    assert w.sample == pytest.approx(20_000 / 3, rel=0.1)
    assert w.tuples == pytest.approx(20_000 / 1000 / 3, rel=0.1)
    assert 5 < w.groups < w.tuples
    assert w.wed == 50.0  # the rows are in order, whatever slack is allowed
    assert w.partial == pytest.approx(24)  # pane, key, count


def test_disorder_lengthens_windows():
    s = stream()
    late = pl.concat([s.sources["s"].data[1000:], s.sources["s"].data[:1000]])
    found = choice(wr.stream(late, progress="t", slack=100_000, name="s").window(5000, 100).agg(n=wr.count()))
    assert found.workload.wed > 900


def test_a_few_rows_say_little_and_declared_statistics_say_more():
    small = stream(rows=100).window(5000, 100).group_by("k")
    assert choice(small.agg(n=wr.count())).workload.basis == "assumed"
    told = stream(rows=100, statistics=wr.Statistics(rate=0.2, groups=50)).window(5000, 100).group_by("k")
    w = choice(told.agg(n=wr.count())).workload
    assert (w.basis, w.tuples, w.groups) == ("declared", 20.0, 20.0)
    stamps = pl.DataFrame({"t": pl.Series([0]).cast(pl.Datetime("us")), "k": [1]})
    timed = wr.stream(stamps, progress="t", statistics=wr.Statistics(rate=10, groups=3)).window("1 minute")
    assert choice(timed.group_by("k").agg(n=wr.count())).workload.tuples == 600.0


def test_a_union_is_measured_over_all_its_inputs_or_not_at_all():
    both = stream().union(wr.stream(stream().sources["s"].data, progress="t", name="r"))
    assert choice(both.window(5000, 100).agg(n=wr.count())).workload.sample == 40_000
    empty = wr.stream(stream().sources["s"].data.clear(), progress="t", name="r")
    assert choice(stream().union(empty).window(5000, 100).agg(n=wr.count())).workload.basis == "assumed"


def test_files_are_measured_on_their_oldest_so_that_the_choice_stays(tmp_path):
    rows = stream().sources["s"].data
    rows.write_parquet(tmp_path / "0.parquet")
    query = wr.read_parquet(tmp_path, progress="t").window(5000, 100).group_by("k").agg(n=wr.count())
    before = choice(query).workload
    assert before.basis == "measured"
    rows.with_columns(pl.col("t") * 1000).write_parquet(tmp_path / "1.parquet")
    assert choice(query).workload == before


def test_a_choice_is_forced_by_name_in_python_and_by_a_hint_in_sql():
    s = stream()
    assert choice(s.window(5000, 100, using="wid").agg(n=wr.count())).name == "wid"
    hinted = wr.sql("SELECT /*+ USING(buffering) */ count(*) AS n FROM s [RANGE 5000, SLIDE 100, WA t]", s=s)
    assert choice(hinted).name == "buffering"
    assert "algorithm buffering: as asked for" in hinted.explain()
    limited = wr.sql("SELECT /*+ MEMORY('1 KB') */ count(*) AS n FROM s [RANGE 5000, SLIDE 100, WA t]", s=s)
    assert "1,000 bytes" in choice(limited).reason
    assert choice(s.window(5000, 100, memory="1 KB").agg(n=wr.count())) == choice(limited)
    for both in ("USING(two_level), MEMORY('64 MB')", "MEMORY('64 MB') USING('two-level')"):
        node = wr.sql(f"SELECT /*+ {both} */ count(*) AS n FROM s [RANGE 5000, SLIDE 100, WA t]", s=s).node
        assert (node.using, node.memory) == ("two-level", 64_000_000)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT /*+ USING(magic) */ count(*) AS n FROM s [RANGE 5, SLIDE 5, WA t]", "unknown algorithm 'magic'"),
        ("SELECT /*+ FASTER(wid) */ count(*) AS n FROM s [RANGE 5, SLIDE 5, WA t]", "unknown hint"),
        ("SELECT /*+ wid */ count(*) AS n FROM s [RANGE 5, SLIDE 5, WA t]", "unknown hint"),
        ("SELECT /*+ MEMORY('lots') */ count(*) AS n FROM s [RANGE 5, SLIDE 5, WA t]", "is not a size"),
        ("SELECT /*+ USING(wid) */ t FROM s", "a hint needs a window"),
        ("SELECT /*+ USING(wid) */ count(*) AS n FROM s [RANGE 5, SLIDE 5, WA t, WITH EMPTY]", "need panes"),
    ],
)
def test_wrong_hints_are_refused(query, message):
    with pytest.raises(wr.WindrowError, match=message):
        wr.sql(query, s=stream(rows=10)).plan()


def test_explain_shows_the_numbers_and_the_runner_up():
    text = stream().window(5000, 100).group_by("k").agg(n=wr.count()).explain()
    assert "algorithm paned: the fastest by the cost model" in text
    assert "measured on 20,000 rows: 20.0 rows" in text
    assert text.count("us a window") == len(costs.TIME)
    assert text.count("next best") == 1


# -- aggregates that cannot be merged ----------------------------------------------------------------------------------
steps = wr.aggregate(
    "steps",
    int,
    None,
    lambda v: sum(abs(a - b) for a, b in pairwise(v)),
    state="BIGINT",
    result="BIGINT",
)


def test_an_aggregate_that_cannot_be_merged_falls_back_and_says_so():
    query = stream().window(5000, 1000).group_by("k").agg(way=steps("x"), n=wr.count())
    assert choice(query).name == "buffering"
    assert "the aggregate 'steps' cannot be merged" in query.explain()
    with pytest.raises(wr.PlanError, match="'steps' cannot be merged"):
        stream().window(5000, 1000, using="paned").agg(way=steps("x")).plan()
    with pytest.raises(wr.PlanError, match="no algorithm can run this query"):
        stream().window(5000, 1000).with_empty().agg(way=steps("x")).plan()
    with pytest.raises(wr.QueryError, match="inverse but no combine"):
        wr.aggregate("odd", int, None, int, state="BIGINT", result="BIGINT", inverse=lambda a, b: a)


def test_it_sees_the_values_in_the_order_of_progress_whatever_the_order_of_arrival():
    rows = [{"t": 3, "x": 7}, {"t": 1, "x": 1}, {"t": 2, "x": 4}, {"t": 9, "x": None}]
    for given in (rows, rows[::-1]):
        s = wr.stream(given, progress="t")
        assert s.window(8).agg(way=steps("x")).collect().rows() == [(0, 8, 6), (8, 16, None)]
        assert s.session(5).agg(way=steps("x")).collect().rows() == [(1, 8, 6), (9, 14, None)]


def test_the_algorithm_of_the_first_start_is_kept_whatever_the_rows_are_now():
    """By the text of the aggregation, so for each of several windows its own; ``using`` is stronger (issue 11)."""
    many = pl.DataFrame({"t": range(2000), "k": range(2000)})
    few = pl.DataFrame({"t": [i // 10 for i in range(2000)], "k": [i % 3 for i in range(2000)]})
    inner = wr.stream(few, progress="t", slack=0, name="s").window(range=10).group_by("k").agg(n=wr.count())
    both = inner.window(range=100).agg(total=wr.sum("n"))
    first = plan(both.node, Given({"s": many}, exchanged=True))
    assert [s.algorithm for s in first.stages()] == ["buffering", "paned"]
    again = plan(both.node, Given({"s": few}, exchanged=True))
    assert [s.algorithm for s in again.stages()] == ["paned", "paned"]
    kept = plan(both.node, Given({"s": few}, exchanged=True, kept=first.choices()))
    assert [s.algorithm for s in kept.stages()] == ["buffering", "paned"]
    assert kept.choices() == first.choices()
    assert all("as at the first start" in s.choice.reason for s in kept.stages())
    forced = wr.stream(few, progress="t", slack=0, name="s").window(range=10, using="wid").group_by("k")
    forced = plan(forced.agg(n=wr.count()).node, Given(kept=first.choices()))
    assert [s.algorithm for s in forced.stages()] == ["wid"]
