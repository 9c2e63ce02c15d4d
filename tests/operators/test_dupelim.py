"""DupElim: each row once, at once; what the promise has passed is forgotten and counted as late if it comes."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restarting import Restarting

import windrow as wr
from windrow.operators import DupElim, Side, Unique
from windrow.progress import END, START, Punctuation
from windrow.testing import replay

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
COLUMNS = ("@t", "k", "f")
SCHEMA = {"@t": pl.Int64(), "k": pl.String(), "f": pl.Float64()}
ROW = st.tuples(st.integers(0, 9), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 0.0, -0.0, math.nan]))
BATCH = st.lists(ROW, min_size=1, max_size=9)
STEPS = st.lists(st.tuples(st.one_of(BATCH, BATCH, st.integers(0, 11)), st.booleans()), max_size=20)


def same(row):
    """Zeros are equal, and so are NaNs."""
    return row[0], row[1], "NaN" if row[2] is not None and math.isnan(row[2]) else row[2]


@CHECK
@given(STEPS)
def test_each_row_once_beside_a_set_with_restarts(steps):
    once = Restarting(lambda: DupElim(COLUMNS))
    seen, promised = set(), START
    for step, restart in [*steps, (END, True)]:
        if restart:
            once.restart()
        if isinstance(step, int):
            passed = once.promise(0, step)
            assert passed == ([Punctuation(step)] if step > promised else [])
            promised = max(promised, step)
            held = len({s for s in seen if s[0] >= promised})
            assert once.operator.runs.height == held
            continue
        items = once.on_batch(0, pl.DataFrame(step, schema=SCHEMA, orient="row"))
        rows = [r for i in items if isinstance(i, pl.DataFrame) for r in i.rows()]
        news = {same(r) for r in step if r[0] >= promised} - seen
        assert len(rows) == len(news)
        assert {same(r) for r in rows} == news
        assert sum(i.count for i in items if isinstance(i, Side)) == sum(r[0] < promised for r in step)
        seen |= news
    assert once.operator.state_bytes() == 0


ROWS = st.lists(st.fixed_dictionaries({"t": st.integers(0, 9), "k": st.sampled_from(["a", "b", None])}), max_size=30)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(ROWS, ROWS, st.integers(0, 99))
def test_distinct_queries_give_what_they_mean(left, right, seed):
    schema = {"t": pl.Int64(), "k": pl.String()}
    tables = {
        name: wr.stream(pl.DataFrame(rows, schema=schema), "t", slack=3, name=name)
        for name, rows in (("a", left), ("b", right))
    }
    for query in (
        "SELECT DISTINCT t, k FROM a",
        "SELECT t, k FROM a UNION SELECT t, k FROM b",
        "SELECT DISTINCT k FROM a UNION b [RANGE 6, SLIDE 3, WA t]",
        "SELECT k, count(*) AS n FROM (SELECT t, k FROM a UNION SELECT t, k FROM b) [TUMBLING 5, WA t] GROUP BY k",
    ):
        replay(wr.sql(query, **tables), runs=2, seed=seed)


@CHECK
@given(STEPS, st.sampled_from(["drop", "error"]))
def test_rows_that_were_put_together_before_the_exchange_are_late_one_by_one(steps, late):
    """Issue 11: two equal late rows of one batch counted as one."""
    unique, together, alone = Unique(COLUMNS), DupElim(COLUMNS, late), DupElim(COLUMNS)
    for step, _ in steps:
        if isinstance(step, int):
            assert together.on_punctuation(0, Punctuation(step)) == alone.on_punctuation(0, Punctuation(step))
            continue
        batch = pl.DataFrame(step, schema=SCHEMA, orient="row")
        [once] = unique.on_batch(0, batch)
        rows, *sides = alone.on_batch(0, batch)
        count = sum(side.count for side in sides)
        if late == "error" and count:
            with pytest.raises(wr.LateError, match=f"^{count} rows came after"):
                together.on_batch(0, once)
            return
        found, *others = together.on_batch(0, once)
        assert found.equals(rows, null_equal=True)
        assert sum(side.count for side in others) == sum(side.rows["rows"].sum() for side in others) == count


@settings(deadline=None, derandomize=True, max_examples=40)
@given(ROWS, st.lists(st.integers(0, 30), max_size=4), st.sampled_from(["drop", "iop"]))
def test_distinct_queries_count_every_late_row(rows, cuts, way):
    data = pl.DataFrame(rows, schema={"t": pl.Int64(), "k": pl.String()})
    s = wr.stream(data.clear(), "t", slack=1, name="s")
    hint = "/*+ USING(iop) */" if way == "iop" else ""
    query = f"SELECT {hint} k, count(*) AS n FROM (SELECT DISTINCT t, k FROM s) [TUMBLING 1, WA t] GROUP BY k"
    run = wr.sql(query if hint else "SELECT DISTINCT t, k FROM s", s=s).run()
    late, promised, edges = 0, -99, [0, *sorted(min(c, data.height) for c in cuts), data.height]
    for a, b in zip(edges, edges[1:], strict=False):  # noqa: RUF007
        batch = data[a:b]
        run.push("s", batch)
        late += (batch["t"] < promised).sum()
        promised = max(promised, *(t - 1 for t in batch["t"])) if batch.height else promised
    assert run.counts["rows_late"] == late == run.late_rows()["rows"].sum()


def test_distinct_rows_of_a_window_are_its_groups():
    rows = [{"t": 1, "k": "a"}, {"t": 2, "k": "a"}, {"t": 3, "k": None}, {"t": 12, "k": "a"}]
    query = wr.sql("SELECT DISTINCT upper(k) AS k FROM s [TUMBLING 10, WA t]", s=wr.stream(rows, "t"))
    assert query.collect().rows() == [(None, 0, 10), ("A", 0, 10), ("A", 10, 20)]
