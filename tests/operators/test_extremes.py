"""Progress values at the ends of what there is: every row counts, or is bad with the reason, and nothing wraps around.

Issue 11: bounds left narrow types and 64 bits; rows at 2^63 - 1 were lost uncounted, sessions joined -2^63 with 0.
"""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.planner import ALGORITHMS
from windrow.progress import FARTHEST, LONGEST
from windrow.testing import compare, oracle, replay

CHECK = settings(deadline=None, derandomize=True, max_examples=4)
ENDS = [0, 1, -1, FARTHEST - 1, 1 - FARTHEST, FARTHEST, -FARTHEST, 2**63 - 1, -(2**63), 2**62 - 7, 7 - 2**62]
NARROW = {
    pl.Int8(): [-128, -120, 0, 120, 127],
    pl.UInt8(): [0, 5, 250, 255],
    pl.Int16(): [-(2**15), 0, 2**15 - 1],
    pl.UInt16(): [0, 2**16 - 1],
    pl.Int32(): [-(2**31), 0, 2**31 - 1],
    pl.UInt32(): [0, 2**32 - 1],
    pl.UInt64(): [0, 3, FARTHEST - 1, FARTHEST, 2**63, 2**64 - 1],
    pl.Int64(): ENDS,
}


def shapes(size=10, step=4):
    found = {using: lambda s, u=using: s.window(size, step, using=u) for using in ALGORITHMS}
    found |= {f"by tuple, {u}": lambda s, u=u: s.each_row(size, using=u) for u in ("blocks", "bins", "buffering")}
    return found | {
        "tumbling": lambda s: s.window(size),
        "gaps": lambda s: s.window(step, size),
        "origin": lambda s: s.window(size, step, origin=3),
        "session": lambda s: s.session(size),
        "early": lambda s: s.window(size, step).emit_early(3),
        "in order": lambda s: s.window(size, step, using="iop"),
        "every second row": lambda s: s.each_row(size, 2),
    }


def stream(dtype, values, **options):
    return wr.stream(pl.DataFrame({"t": pl.Series(values, dtype=dtype)}), "t", name="s", **options)


def admitted(values):
    return [v for v in values if abs(v) < FARTHEST]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", shapes())
@CHECK
@given(data=st.data(), seed=st.integers(0, 9))
def test_windows_of_any_type_at_the_ends_of_integers(name, dtype, data, seed):
    values = data.draw(st.lists(st.sampled_from(NARROW[dtype]), min_size=1, max_size=8))
    query = shapes()[name](stream(dtype, values, slack=3)).agg(n=wr.count(), least=wr.min("t"))
    replay(query, runs=1, seed=seed)
    run = query.run().push("s", pl.DataFrame({"t": pl.Series(values, dtype=dtype)})).end()
    assert run.counts["rows_bad"] == len(values) - len(admitted(values)) == run.bad_rows().height
    found = run.results()
    assert found.schema["window_start"] == found.schema["window_end"] == pl.Int64
    if name == "tumbling":
        assert found["n"].sum() + run.counts["rows_late"] == len(admitted(values))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@CHECK
@given(data=st.data())
def test_rows_in_order_and_once_at_the_ends_of_integers(dtype, data):
    values = data.draw(st.lists(st.sampled_from(NARROW[dtype]), min_size=1, max_size=8))
    for query in ("SELECT t FROM s ORDER BY t", "SELECT DISTINCT t FROM s"):
        found = wr.sql(query, s=stream(dtype, values)).collect()["t"].to_list()
        assert sorted(found) == sorted(admitted(values) if "ORDER" in query else set(admitted(values)))
        assert found == sorted(found) or "DISTINCT" in query


@CHECK
@given(st.lists(st.sampled_from(ENDS), min_size=1, max_size=6), st.sampled_from([[], ["k"]]))
def test_row_numbers_at_the_ends(numbers, parts):
    numbers = list(dict.fromkeys(numbers))
    rows = pl.DataFrame({"t": [1] * len(numbers), "n": numbers, "k": ["a"] * len(numbers)})
    query = wr.stream(rows, "t", row_num="n", name="s").rows(10, 4, partition_by=parts).agg(n=wr.count(), x=wr.max("n"))
    run = query.run().push("s", rows).end()
    assert run.counts["rows_bad"] == len(numbers) - len(admitted(numbers))
    compare(run.results(), oracle(query), "row numbers")


def test_the_most_that_is_allowed_fits_together():
    values = [FARTHEST - 1, 1 - FARTHEST, 0]
    for origin in (0, 2 * LONGEST, -2 * LONGEST):
        for size, step in ((LONGEST, LONGEST), (LONGEST, LONGEST - 1), (LONGEST - 1, LONGEST)):
            query = stream(pl.Int64(), values).window(size, step, origin=origin).agg(n=wr.count())
            compare(query.collect(), oracle(query), f"{size} {step} {origin}")
    sessions = stream(pl.Int64(), values).session(LONGEST).agg(n=wr.count())
    compare(sessions.collect(), oracle(sessions), "session")
    over = stream(pl.Int64(), values).window(LONGEST).agg(n=wr.count()).window(LONGEST).agg(s=wr.sum("n"))
    assert over.collect()["s"].sum() == 3


@pytest.mark.parametrize("what", [lambda s: s.window(LONGEST + 1), lambda s: s.session(LONGEST + 1)])
def test_lengths_that_leave_no_room_are_refused(what):
    with pytest.raises(wr.QueryError, match=r"must be at most 2\^60"):
        what(stream(pl.Int64(), [1])).agg(n=wr.count()).plan()


def test_origins_that_leave_no_room_are_refused():
    for origin in (2 * LONGEST + 1, -2 * LONGEST - 1):
        with pytest.raises(wr.QueryError, match=r"ORIGIN must be between -2\^61 and 2\^61"):
            stream(pl.Int64(), [1]).window(5, origin=origin).agg(n=wr.count()).plan()


def test_reasons_name_what_is_out_of_range():
    run = stream(pl.Int64(), [1], slack=0).window(10).agg(n=wr.count()).run()
    run.push("s", [{"t": 2**63 - 1}, {"t": -(2**63)}, {"t": 5}, {"t": None}])
    told = "the progress value is out of range: it must be between -2^62 and 2^62"
    assert run.bad_rows()["reason"].to_list() == [told, told, "the progress value is NULL"]
    assert run.end().results().rows() == [(0, 10, 1)]
    with pytest.raises(wr.QueryError, match=r"the promise is out of range.*call end\(\)"):
        run.promise("s", 2**62)


def test_markers_and_functions_out_of_range_promise_nothing():
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "m": pl.Int64}), "t", punctuation="m", name="s")
    run = s.window(10).agg(n=wr.count()).run()
    run.push("s", [{"t": 1}, {"m": 2**63 - 1}, {"m": -(2**63)}, {"m": 2**62}])
    assert set(run.bad_rows()["reason"]) == {"the marker is out of range: it must be between -2^62 and 2^62"}
    assert (run.counts["rows_bad"], run.results().height) == (3, 0)
    told = wr.stream(
        pl.DataFrame(schema={"t": pl.Int8}), "t", punctuation=wr.promise.function(lambda seen: 300), name="s"
    )
    assert told.window(10).agg(n=wr.count()).run().push("s", [{"t": 120}]).results().rows() == [(120, 130, 1)]


def test_a_narrow_column_that_rows_progress_on_by_an_expression():
    rows = pl.DataFrame({"t": pl.Series([1, 250, 255], dtype=pl.UInt8)})
    s = wr.stream(rows, "t", slack=10, name="s")
    query = wr.sql("SELECT count(*) AS n FROM (SELECT CAST(t AS BIGINT) + 7 AS u FROM s) [TUMBLING 10, WA u]", s=s)
    compare(query.collect(), oracle(query), "retimed")
    far = wr.stream([{"t": FARTHEST - 1}, {"t": 1}], "t", name="s")
    run = wr.sql("SELECT count(*) AS n FROM (SELECT t + 1 AS u FROM s) [TUMBLING 10, WA u]", s=far).run()
    run.push("s", [{"t": FARTHEST - 1}, {"t": 1}])
    assert run.bad_rows()["reason"].to_list() == [
        "the progress value is out of range: it must be between -2^62 and 2^62"
    ]
    assert run.end().results()["n"].to_list() == [1]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_and_timestamps_at_the_ends(zone):
    days = pl.Series([2**31 - 1, -(2**31), 2**30 - 1, 0], dtype=pl.Int32).cast(pl.Date)
    run = wr.stream(pl.DataFrame({"t": days}), "t", name="s").window("2 days", "1 day").agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": days}))
    assert run.counts["rows_bad"] == 2
    assert set(run.bad_rows()["reason"]) == {
        "the progress value is out of range: it must be between -2^30 and 2^30 days from 1970"
    }
    assert run.end().results()["n"].to_list() == [1] * 4
    times = pl.DataFrame({"t": pl.Series(ENDS, dtype=pl.Int64).cast(pl.Datetime("us", zone))})
    query = wr.stream(times, "t", name="s").window("1 hour").agg(n=wr.count())
    run = query.run().push("s", times).end()
    assert run.counts["rows_bad"] == len(ENDS) - len(admitted(ENDS))
    assert run.results()["n"].sum() == len(admitted(ENDS))
