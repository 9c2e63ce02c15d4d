"""What is pushed is brought to the declared columns, whole or not at all; a run that failed says so (issue 11)."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr

SCHEMA = {
    "t": pl.Int64(),
    "k": pl.String(),
    "x": pl.Int64(),
    "d": pl.Decimal(10, 2),
    "f": pl.Float64(),
    "small": pl.Int8(),
    "l": pl.List(pl.Int64()),
}
FULL = {"k": "a", "x": None, "d": None, "f": None, "small": None, "l": None}


def query(late="drop"):
    s = wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name="s")
    last = wr.last("l")
    wanted = {"n": wr.count(), "x": wr.sum("x"), "d": wr.sum("d"), "f": wr.max("f"), "small": wr.max("small")}
    return s.window(10).late(late).agg(**wanted, l=last, k=wr.min("k"))


def pushed(rows):
    """What comes out of some rows: keys, sums and greatest values, and how many rows were bad."""
    run = query().run().push("s", rows)
    [row] = run.end().results().drop("window_start", "window_end").rows(named=True) or [None]
    return row, run.counts["rows_bad"]


@pytest.mark.parametrize(
    ("column", "value", "becomes"),
    [
        ("x", 2.0, 2),
        ("x", Decimal(2), 2),
        ("f", 2, 2.0),
        ("f", Decimal("2.5"), 2.5),
        ("d", 2, Decimal("2.00")),
        ("d", Decimal("2.5"), Decimal("2.50")),
        ("d", Decimal("2.500000"), Decimal("2.50")),
        ("small", 127, 127),
        ("l", [1, 2], [1, 2]),
        ("l", (1, None), [1, None]),
        ("l", [], []),
        ("k", "b", "b"),
        *((c, None, None) for c in FULL),
    ],
)
def test_a_value_that_its_column_can_hold_is_taken(column, value, becomes):
    row = {"t": 1, column: value}
    tables = [] if value is None or isinstance(value, tuple) else [pl.DataFrame([{**FULL, **row}])]
    for rows in ([row], *tables):
        found, bad = pushed(rows)
        assert (found[column], found["n"], bad) == (becomes, 1, 0)
        assert type(found[column]) is type(becomes)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("x", 1.9),
        ("x", "5"),
        ("x", True),
        ("x", 2**63),
        ("x", float("nan")),
        ("x", Decimal("1.5")),
        ("x", date(2024, 1, 1)),
        ("x", object()),
        ("d", Decimal("1.255")),
        ("d", Decimal("123456789.5")),
        ("d", 1.5),
        ("d", 10**9),
        ("f", "1.5"),
        ("small", 128),
        ("l", [1, 2.5]),
        ("l", ["a"]),
        ("l", 7),
        ("l", [True]),
        ("k", 7),
        ("k", b"x"),
    ],
)
def test_a_value_that_does_not_fit_is_named_and_nothing_of_its_batch_is_taken(column, value):
    run = query().run().push("s", [{"t": 1, "x": 1}])
    before = dict(run.counts)
    declared, kind = re.escape(str(SCHEMA[column])), type(value).__name__
    where = rf"column '{column}' of source 's' is of type {declared}.*row 2 of the batch.*has .*{kind}"
    batches = [[{"t": 2}, {"t": 99}, {"t": 3, column: value}]]
    if kind not in ("object", "list"):  # tables have no such columns
        held = pl.Series([None, None, value], strict=True)
        batches.append(pl.DataFrame([{**FULL, "t": t} for t in (2, 99, 3)]).with_columns(held.alias(column)))
    for rows in batches:
        with pytest.raises(wr.DataError, match=where):
            run.push("s", rows)
    assert run.counts == before
    assert run.bad_rows().height == 0
    [row] = run.push("s", [{"t": 5, "x": 2}]).end().results().rows(named=True)
    assert (row["n"], row["x"]) == (2, 3)


def test_values_of_several_types_in_one_column_each_by_itself():
    rows = [{"t": 1, "x": 1, "f": 1}, {"t": 1.0, "x": 2.0, "f": 2.5}, {"t": 1, "x": Decimal(3)}, {"t": 2}]
    found, bad = pushed(rows)
    assert (found["n"], found["x"], found["f"], bad) == (4, 6, 2.5, 0)


def test_nothing_and_columns_of_nothing():
    assert pushed([]) == (None, 0)
    assert pushed(pl.DataFrame(schema=SCHEMA)) == (None, 0)
    found, bad = pushed(pl.DataFrame({"t": [1, 2], **{c: [None, None] for c in FULL}}))
    assert (found["n"], found["x"], bad) == (2, None, 0)


def test_a_table_must_have_what_the_query_needs_and_more_is_left_out():
    run = query().run()
    with pytest.raises(wr.DataError, match="the table for source 's' lacks d, x, which the query needs; it has: f"):
        run.push("s", pl.DataFrame([{**FULL, "t": 1}]).drop("x", "d"))
    with pytest.raises(wr.DataError, match="lacks t"):
        run.push("s", pl.DataFrame(FULL).drop("l").with_columns(l=pl.lit(None)))
    assert run.counts["rows_in"] == 0
    needs_little = wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name="s").window(10).agg(n=wr.count()).run()
    needs_little.push("s", pl.DataFrame({"t": [1, 11], "other": ["u", "v"]}))
    assert needs_little.results()["n"].to_list() == [1]


def test_a_progress_value_that_does_not_fit_makes_its_row_bad():
    values = ["soon", 3, 3.5, True, 2**70, None, date(2024, 1, 1), 4.0]
    run = query().run().push("s", [{"t": value, "k": "a"} for value in values])
    assert (run.counts["rows_in"], run.counts["rows_bad"]) == (8, 6)
    bad = run.bad_rows()
    assert sorted(bad["t"].cast(pl.String).fill_null("NULL").to_list()) == [
        "1180591620717411303424", "2024-01-01", "3.5", "NULL", "True", "soon",
    ]  # fmt: skip
    assert set(bad["reason"]) == {"the progress value cannot be parsed", "the progress value is NULL"}
    assert run.end().results()["n"].to_list() == [2]
    table = pl.DataFrame([{**FULL, "t": "7"}])
    assert query().run().push("s", table).counts["rows_bad"] == 1


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (pl.Datetime("us", "UTC"), datetime(2024, 1, 1, 10)),
        (pl.Datetime("us", "UTC"), datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))),
        (pl.Datetime("us"), datetime(2024, 1, 1, 10, tzinfo=UTC)),
        (pl.Datetime("us"), datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))),
        (pl.Datetime("us"), pd.Timestamp("2024-01-01 10:00")),
    ],
)
def test_instants_of_any_zone_and_unit(declared, value):
    s = wr.stream(pl.DataFrame(schema={"t": declared}), "t", name="s").window("1 hour")
    nanos = pl.DataFrame({"t": [value]}).with_columns(pl.col("t").dt.cast_time_unit("ns"))
    for rows in ([{"t": value}], nanos, nanos.to_arrow(), nanos.to_pandas()):
        found = s.agg(n=wr.count()).run().push("s", rows).end().results()
        assert [str(at)[:16] for at in found["window_start"]] == ["2024-01-01 10:00"]
        assert found.schema["window_start"] == declared


def test_dates_for_timestamps_and_midnights_for_dates():
    midnight = [{"t": date(2024, 1, 2)}, {"t": datetime(2024, 1, 2)}]
    for declared in (pl.Date(), pl.Datetime("us")):
        s = wr.stream(pl.DataFrame(schema={"t": declared}), "t", name="s").window("1 day").agg(n=wr.count())
        assert s.run().push("s", midnight).end().results()["n"].to_list() == [2]
    days = wr.stream(pl.DataFrame(schema={"t": pl.Date()}), "t", name="s").window("1 day").agg(n=wr.count())
    assert days.run().push("s", [{"t": datetime(2024, 1, 2, 5)}]).counts["rows_bad"] == 1


def test_tables_of_other_libraries_with_narrower_types():
    columns = {"t": [1, 2], "k": ["a", "b"], "x": [1, None], "d": [1, 2], "f": [1, 2], "small": [1, 2]}
    arrow = pa.table({**columns, "l": pa.array([[1], None], pa.list_(pa.int16()))})
    arrow = arrow.set_column(1, "k", arrow["k"].dictionary_encode()).set_column(0, "t", arrow["t"].cast(pa.int16()))
    for rows in (arrow, pd.DataFrame({**columns, "l": [[1], None]}), pl.DataFrame(arrow).lazy()):
        found, bad = pushed(rows)
        assert (found["n"], found["x"], found["d"], found["f"], bad) == (2, 1, Decimal("3.00"), 2.0, 0)


ODD = st.sampled_from([None, 1, 2, 2.0, 2.5, "2", True, Decimal(4), 2**64])
BATCHES = st.lists(
    st.lists(
        st.fixed_dictionaries({"t": st.one_of(st.integers(0, 30), ODD)}, optional={"x": ODD, "y": ODD}), max_size=5
    ),
    max_size=6,
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(BATCHES)
def test_whoever_goes_on_after_a_rejected_batch_has_lost_that_batch_and_nothing_else(batches):
    run, taken = query().run(), []
    for batch in batches:
        fits = all(not isinstance(x, bool) and x in (None, 1, 2, 4) for x in (row.get("x") for row in batch))
        if fits:
            run.push("s", batch)
            taken.append(batch)
        else:
            with pytest.raises(wr.DataError, match="column 'x'"):
                run.push("s", batch)
    other = query().run()
    for batch in taken:
        other.push("s", batch)
    assert run.counts == other.counts
    assert run.counts["rows_in"] == sum(map(len, taken))
    assert run.end().results().equals(other.end().results())


def test_texts_of_a_parsed_column_and_values_that_are_no_texts():
    s = wr.stream(pl.DataFrame(schema={"t": pl.String()}), "t", parse="iso8601", name="s").window("1 hour")
    run = s.agg(n=wr.count()).run()
    run.push("s", [{"t": "2024-01-01 10:00"}, {"t": 5}, {"t": "soon"}, {"t": datetime(2024, 1, 1)}])
    assert (run.counts["rows_in"], run.counts["rows_bad"]) == (4, 3)
    assert run.end().results()["n"].to_list() == [1]


def test_a_list_with_something_else_than_dicts_is_refused():
    for rows in ([{"t": 1}, 0, None], [{"t": 1}, None], [0], [""], [[]]):
        odd = next(r for r in rows if not isinstance(r, dict))
        for call in (lambda r: query().run().push("s", r), lambda r: wr.stream(r, "t")):
            with pytest.raises(wr.DataError, match=rf"rows must be dicts, and row \d.* is a {type(odd).__name__}"):
                call(rows)


# -- runs that fail ----------------------------------------------------------------------------------------------------
def test_a_run_that_failed_in_the_middle_cannot_be_used_until_it_is_restored():
    run = query("error").run().push("s", [{"t": 1, "x": 1}])
    saved = run.snapshot()
    run.push("s", [{"t": 15, "x": 7}])
    released, counts = run.results(), dict(run.counts)
    with pytest.raises(wr.LateError):
        run.push("s", [{"t": 30}, {"t": 2}])
    assert run.counts == counts
    for call in (lambda: run.push("s", []), lambda: run.promise("s", 50), run.end, run.snapshot):
        with pytest.raises(wr.CheckpointError, match=r"this run failed \(LateError: 1 late rows.*last snapshot"):
            call()
    assert run.results().height == 0
    run.restore(saved).push("s", [{"t": 15, "x": 7}])
    assert run.results().equals(released)
    assert run.end().results()["x"].to_list() == [7]


def test_a_failure_at_the_end_or_at_a_promise_is_one_too():
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "x": pl.Int64}), "t", name="s")
    for fail in (lambda run: run.promise("s", 10), lambda run: run.end()):
        run = s.window(10).agg(x=wr.sum("x")).run().push("s", [{"t": 1, "x": 2**62}, {"t": 2, "x": 2**62}])
        with pytest.raises(wr.ResultError):
            fail(run)
        with pytest.raises(wr.CheckpointError, match="this run failed"):
            run.push("s", [])


def test_what_is_refused_before_it_begins_leaves_the_run_as_it_was():
    run = query().run().push("s", [{"t": 1, "x": 1}])
    for wrong in (lambda: run.promise("s", "soon"), lambda: run.promise("nobody", 1), lambda: run.push("s", 7)):
        with pytest.raises(wr.WindrowError):
            wrong()
    assert run.end().results()["x"].to_list() == [1]
