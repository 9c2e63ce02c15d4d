"""Split: two ways for rows that meet again, with one promise for both (Li, Figure 8-3)."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.operators import Retime, Select, Split
from windrow.progress import END, Punctuation
from windrow.testing import compare, replay

ROWS = st.lists(st.fixed_dictionaries({"t": st.integers(0, 40), "x": st.sampled_from([None, 1, 5, 8, 9])}), max_size=25)


def frame(rows):
    return pl.DataFrame(rows, schema={"t": pl.Int64, "x": pl.Int64})


@settings(deadline=None, derandomize=True, max_examples=12)
@given(ROWS, st.integers(0, 99))
def test_both_ways_together_are_the_rows_of_either_condition(rows, seed):
    """Cheap predicate, dear predicate, union, count: in both styles, and asked only where it must be."""
    asked = []

    def dear(x):
        asked.append(x)
        return x is not None and x % 2 == 0

    s = wr.stream(frame(rows), "t", slack=3, name="s")
    either = s.split("x > 5", otherwise=lambda rest: rest.where(wr.udf(dear, "BOOLEAN", "x")))
    counted = either.window(10, 5).agg(n=wr.count())
    compare(counted.collect(), s.where("x > 5 OR x % 2 = 0").window(10, 5).agg(n=wr.count()).collect(), "either")
    assert all(x is None or x <= 5 for x in asked)
    replay(counted, runs=2, seed=seed)
    replay(either.window(10, 5, using="iop").agg(n=wr.count()), runs=2, seed=seed)
    moved = s.split("x > 5", lambda yes: yes.select("x", t="t + 3"), lambda no: no.select("x", t="t - 2"))
    replay(moved.window(10).group_by("x").agg(n=wr.count()), runs=2, seed=seed)


def test_the_weaker_of_the_two_promises_is_the_promise():
    later = Retime("t", pl.Int64(), pl.col("t") + 3, pl.Int64())
    split = Split(pl.col("x") > 5, [later], [Select(pl.lit(True))])
    assert split.on_punctuation(0, Punctuation(10)) == [Punctuation(10)]
    assert split.on_punctuation(0, Punctuation(12)) == [Punctuation(12)]
    assert split.on_punctuation(0, Punctuation(END)) == [Punctuation(END)]


def test_ways_inside_ways_and_a_constant_condition():
    s = wr.stream(frame([{"t": 1, "x": 1}, {"t": 2, "x": 8}, {"t": 3, "x": 9}]), "t")
    inner = s.split("true", lambda each: each.split("x > 8", lambda big: big.select("t", x="CAST(0 AS BIGINT)")))
    assert sorted(inner.collect().rows()) == [(1, 1), (2, 8), (3, 0)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.split("x"), "must be true or false"),
        (lambda s: s.split("x > 1", lambda yes: yes.select("t")), "same columns on all sides"),
        (lambda s: s.split("x > 1", lambda yes: yes.distinct()), "can only use where, select and apply"),
        (lambda s: s.split("x > 1", lambda yes: s), "on the stream that it is given"),
        (lambda s: s.select("x").split("x > 1"), "needs the progressing column"),
    ],
)
def test_branches_that_do_not_fit_are_refused(make, message):
    with pytest.raises(wr.WindrowError, match=message):
        make(wr.stream(frame([{"t": 1, "x": 1}]), "t"))
