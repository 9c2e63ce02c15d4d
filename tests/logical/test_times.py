"""Which columns of a node progress, and that every consumer gets the one that it means."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import QueryError
from windrow.logical.node import Time
from windrow.testing import compare, oracle, replay

ROWS = pl.DataFrame({"t": [i * 7 % 17 for i in range(30)], "k": [i % 3 for i in range(30)], "x": range(30)})
FLOWS = ROWS.with_columns(u=pl.col("t") + 10)


def stream(name="s", **more):
    return wr.stream(ROWS, "t", slack=20, name=name, **more)


def flows(name="s"):
    return wr.stream(FLOWS, "t", slack=20, also={"u": 30}, name=name)


def pairs():
    return stream("a").join(stream("b"), on="k", within=(-3, 4))


def windows():
    return stream().window(5).group_by("k").agg(n=wr.count())


def test_a_source_progresses_on_its_attribute_first():
    assert stream().node.times == {"t": Time(0, "t")}
    assert flows().node.times == {"t": Time(0, "t"), "u": Time(0, "u")}


def test_a_projection_passes_on_what_it_keeps_under_its_new_name():
    assert flows().select("u", v="t").node.times == {"u": Time(0, "u"), "v": Time(0, "t")}
    assert flows().select("x", "u").node.times == {"u": Time(0, "u")}
    assert stream().select("x").node.times == {}


def test_a_projection_that_keeps_no_time_progresses_on_an_expression_of_it():
    node = stream().select("x", v="t + 1").node
    assert node.times == {"v": Time(0, "v")}
    assert node.retimes is not None
    assert stream().select(v="0 - t").node.times == {}
    kept = stream().select("t", v="t + 1").node
    assert (kept.times, kept.retimes) == ({"t": Time(0, "t")}, None)


def test_results_progress_on_the_last_instant_of_their_window():
    assert windows().node.times == {"window_end": Time(1, "window_end")}
    assert windows().select("k", w="window_time").node.times == {"w": Time(0, "window_end")}
    assert windows().select("k", w="window_end").node.times == {"w": Time(1, "window_end")}
    early = stream().window(5).emit_early(1).agg(n=wr.count())
    assert early.node.times == {}


def test_a_join_progresses_on_both_times_and_on_the_later_and_the_earlier():
    assert pairs().node.times == {"t": Time(0, "@left"), "t_right": Time(0, "@right")}
    both = pairs().select("t_right", a="greatest(t, t_right)", b="least(t_right, t)", c="greatest(t, x)", d="t").node
    assert both.times == {
        "t_right": Time(0, "@right"),
        "a": Time(0, "@later"),
        "b": Time(0, "@earlier"),
        "d": Time(0, "@left"),
    }
    assert pairs().select("x", a="greatest(t, t_right, 5)").node.times == {}
    assert pairs().select("x", a="greatest(t, t)").node.times == {}


def test_a_union_progresses_on_what_all_members_do():
    assert stream("a").union(stream("b")).node.times == {"t": Time(0, "t")}
    other = wr.stream(FLOWS, "t", slack=20, name="b")
    assert flows("a").union(other).node.times == {"t": Time(0, "t")}
    assert flows("a").union(flows("b")).node.times == {"t": Time(0, "t"), "u": Time(0, "u")}


def test_a_split_progresses_on_what_both_branches_do():
    assert stream().split("x > 3").node.times == {"t": Time(0, "t")}
    moved = stream().split("x > 3", lambda s: s.select(v="t"), lambda s: s.select(v="t + 1"))
    assert moved.node.times == {"v": Time(0, "v")}


def test_the_end_of_a_window_and_the_time_of_a_row_are_two_things():
    rows = stream("r").select(window_end="t", n="x")
    with pytest.raises(QueryError, match="is the end of a window on one side, and the time of a row on the other"):
        windows().select("window_end", "n").union(rows)


def counted(query, **options):
    return query.window(5, **options).agg(n=wr.count())


def at_two_times(query):
    return query.select("x", v="t").union(query.select("x", v="greatest(t, t_right)"))


# A consumer above, members and branches below: each has its own name for the same attribute.
NAMED = {
    "a union of two names": lambda: counted(
        stream("a").select("x", v="t").union(wr.stream(ROWS.select("x", v="t"), "v", slack=20, name="b"))
    ),
    "a union of a time and an expression": lambda: counted(
        stream("a").select("x", v="t").union(stream("b").select("x", v="t + 5"))
    ),
    "a union of a join and a source": lambda: counted(pairs().select("x", "t").union(stream("c").select("x", "t"))),
    "a union of two times of a join": lambda: counted(at_two_times(pairs())),
    "a union on the second attribute": lambda: counted(flows("a").union(flows("b")), on="u"),
    "a split of renamed rows": lambda: counted(
        stream().select("x", v="t").split("x > 5", otherwise=lambda s: s.where("x > 2"))
    ),
    "a split of pairs": lambda: counted(pairs().split("x > 5", otherwise=lambda s: s.where("x > 2"))),
    "a split on the later time": lambda: counted(
        pairs().select("x", v="greatest(t, t_right)").split("x > 5", lambda s: s.apply(x="x + 1"))
    ),
    "a split with times that move apart": lambda: counted(
        stream().split("x > 5", lambda s: s.select(v="t"), lambda s: s.select(v="t + 5"))
    ),
    "a split of moved times that moves them again": lambda: counted(
        stream().select("x", v="t + 1").split("x > 5", lambda s: s.select(w="v + 1"), lambda s: s.select(w="v + 2"))
    ),
    "a split of a union": lambda: counted(stream("a").union(stream("b")).select("x", v="t").split("x > 5")),
    "a split of results": lambda: counted(windows().split("n > 1").select("n", w="window_time")),
    "a function of a renamed time": lambda: counted(
        stream().select("x", v="t").apply(v=wr.udf(lambda v: v + 1, "BIGINT", "v", monotone=True))
    ),
    "the second time of a join": lambda: counted(pairs(), on="t_right"),
    "the second time of a projection": lambda: counted(flows().select("x", a="t", b="u"), on="b"),
    "times that are called left and right": lambda: counted(
        wr.stream(FLOWS.rename({"t": "left", "u": "right"}), "left", slack=20, also={"right": 20}).select(
            "left", v="greatest(left, right)"
        )
    ),
    "distinct rows of the second time": lambda: pairs().select("t_right", "k").distinct(),
    "a join of a join": lambda: counted(
        pairs().select("k", v="greatest(t, t_right)").join(stream("c"), on="k", within=(0, 3))
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_every_consumer_gets_the_attribute_that_it_names(name):
    query = NAMED[name]()
    compare(query.collect(), oracle(query), name)


@pytest.mark.parametrize("name", NAMED)
def test_promises_are_about_the_attribute_that_is_named(name):
    """Under any arrival within the slack nothing is late, and results are released when they are covered."""
    replay(NAMED[name](), runs=2)


@pytest.mark.parametrize("column", ["t_right", "v", "t"])
def test_an_order_is_by_the_time_that_it_names(column):
    query = pairs().select("t", "t_right", "x", v="greatest(t, t_right)").order_by(column, "x")
    found = query.collect()
    assert found[column].is_sorted()
    assert found.select(column, "x").equals(found.select(column, "x").sort(column, "x"))
    compare(found, oracle(query), column)
