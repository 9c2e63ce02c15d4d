"""Whole plans as texts, compared with files. After a change that is meant, WINDROW_WRITE=1 rewrites them all:

WINDROW_WRITE=1 .venv/bin/python -m pytest tests/planner/test_plans.py
"""

import os
from datetime import datetime
from pathlib import Path

import pytest

import windrow as wr
from windrow.planner.explain import explain

PLANS = Path(__file__).parent / "plans"
ROW = [{"t": 0, "k": "", "x": 0, "part": 0, "number": 0}]


def stream(name="s", **more):
    return wr.stream(ROW, "t", **{"slack": 5, **more}, name=name)


def counted(source, range=10, slide=None, **options):
    return source.window(range, slide, **options).group_by("k").agg(n=wr.count())


def self_join():
    s = stream()
    return s.where("x > 1").join(s, on="k", within=(0, 10)).where("x_right < 5")


def join_of_windows():
    return counted(stream("a")).join(counted(stream("b")), on="k", within=(0, 0))


def join_in_order():
    """ORDER BY over a join makes it an adaptive one, with projections and filters between."""
    at = [{"ts": datetime(2024, 1, 1), "k": 0, "x": 0}]
    known = {"slack": "2 seconds", "statistics": wr.Statistics(rate=1000, groups=100)}
    left, right = (wr.stream(at, "ts", name=name, **known) for name in "ab")
    pairs = left.join(right, on="k", within=("-9 seconds", "9 seconds"))
    return pairs.select("k", "x", u="greatest(ts, ts_right)").where("x > 1").order_by("u", "k")


def join_then_another_key():
    pairs = stream("a").join(stream("b"), on="k", within=(-3, 10)).select("x", u="greatest(t, t_right)")
    return pairs.window(60, on="u").group_by("x").agg(n=wr.count())


def as_of():
    """A condition on left columns goes below the join, and windows by its key stay in the shard."""
    nearest = stream("a").join_asof(stream("b").select("t", "k", y="x"), by="k", max_keys=100)
    return nearest.where("x > 1 AND y < 5").window(60).group_by("k").agg(n=wr.count())


def sequence():
    steps = {"a": stream("a"), "b": wr.no(stream("b")), "c": wr.some(stream("c"))}
    return wr.seq(steps, on="k", within=10, where="c.x > a.x").select("a_k", "c_count", "c_last_t")


def together():
    s = stream()
    return wr.together(a=counted(s), b=counted(s, 60, 20))


TOP = "SELECT k, count(*) AS n FROM s [TUMBLING 10, WA t] GROUP BY k ORDER BY n DESC LIMIT 3"
QUERIES = {
    "rows": lambda: stream().where("x > 1").select("t", y="x + 1"),
    "sliding": lambda: counted(stream(), 60, 10),
    "wid": lambda: counted(stream(), 60, 10, using="wid"),
    "two_level": lambda: counted(stream(), 60, 10, using="two-level"),
    "in_order": lambda: counted(stream("a").union(stream("b")), 60, 10, using="iop"),
    "union": lambda: counted(stream("a").union(stream("b").where("x > 1"))),
    "generated_promises": lambda: counted(stream(punctuation=wr.promise.estimated(9), slack=None)),
    "late_side": lambda: stream().window(10).late("side").group_by("k").agg(n=wr.count()),
    "landmark": lambda: stream().landmark(10).group_by("k").agg(n=wr.count()),
    "session": lambda: stream().session(5).group_by("k").agg(n=wr.count()),
    "each_row": lambda: stream(row_num="number").each_row(10, 2).agg(n=wr.count()),
    "rows_of_partitions": lambda: stream(row_num=("part", "number")).rows(5, 2, partition_by="k").agg(n=wr.count()),
    "distinct_ordered": lambda: stream().select("t", "k").distinct().order_by("t", "k"),
    "as_of": lambda: as_of(),
    "sequence": lambda: sequence(),
    "fused": lambda: counted(counted(stream()), 60),
    "two_levels": lambda: counted(stream()).window(60).agg(n=wr.sum("n")),
    "top": lambda: wr.sql(TOP, s=stream()),
    "together": together,
    "self_join": self_join,
    "lookup": lambda: counted(stream().join(wr.table([{"k": "", "name": ""}], name="names"), on="k").where("x > 1")),
    "join_of_windows": join_of_windows,
    "join_in_order": join_in_order,
    "join_then_another_key": join_then_another_key,
}


@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_is_the_one_in_the_file(name):
    plan = QUERIES[name]().plan()
    found = f"{explain(plan, on_spark=False)}\n\n{explain(plan, on_spark=True, shards=2)}\n"
    file = PLANS / f"{name}.txt"
    if os.environ.get("WINDROW_WRITE"):
        file.write_text(found)
    assert found == file.read_text()


def test_there_is_no_file_without_a_query():
    assert {file.stem for file in PLANS.glob("*.txt")} == set(QUERIES)
