"""Which files fit a stream: declared columns, columns that the query needs, wider types, columns in folder names."""

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

import windrow as wr
from windrow.api.columns import columns
from windrow.errors import DataError, QueryError
from windrow.sources.widening import widens

ROWS = pl.DataFrame({"t": [1, 2, 12], "k": ["a", "b", "a"], "x": [5, 6, 7]})


def put(folder, name, frame=ROWS):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path) if name.endswith("parquet") else frame.write_ipc(path)
    return path


# -- schema= -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("read", [wr.read_parquet, wr.read_arrow])
@pytest.mark.parametrize("folder", ["", "not/yet"])
def test_a_stream_over_no_files_has_the_columns_it_declares(tmp_path, read, folder):
    s = read(tmp_path / folder, progress="t", schema="t BIGINT, k STRING")
    assert s.schema == {"t": pl.Int64(), "k": pl.String()}
    query = s.window(range=10).group_by("k").agg(n=wr.count())
    assert query.collect().rows() == []
    put(tmp_path / folder, "a.parquet" if read is wr.read_parquet else "a.arrow")
    assert query.collect().rows() == [("a", 0, 10, 1), ("b", 0, 10, 1), ("a", 10, 20, 1)]


def test_without_files_the_error_names_what_to_say(tmp_path):
    with pytest.raises(DataError, match="schema="):
        wr.read_parquet(tmp_path, progress="t")


def test_a_file_must_have_what_is_declared_not_what_another_file_has(tmp_path):
    put(tmp_path, "a.parquet")
    query = wr.read_parquet(tmp_path, progress="t", schema={"t": pl.Int64, "x": "STRING"})
    assert query.collect().height == 0
    assert "x is of type Int64, that of the stream of type String" in query.bad_rows()["reason"][0]


def test_columns_are_declared_as_sql_writes_them_or_by_name():
    text = "ts TIMESTAMP, `a, b` ARRAY<STRUCT<x: INT, y DECIMAL(10, 2)>>, n: TIMESTAMP_NTZ"
    nested = pl.List(pl.Struct({"x": pl.Int32(), "y": pl.Decimal(10, 2)}))
    expected = {"ts": pl.Datetime("us", "UTC"), "a, b": nested, "n": pl.Datetime("us")}
    assert columns(text) == expected
    given = {"ts": "TIMESTAMP", "a, b": nested, "n": pl.Datetime("ns")}
    assert columns(given) == columns(pl.Schema(expected)) == expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "no columns"),
        ({}, "no columns"),
        ("t", "'t' is not a name and a type"),
        ("t BIGINT,, k STRING", "'' is not a name"),
        ("t BIGINT,", "'' is not a name"),
        ("t nope", "nope"),
        ("t BIGINT NOT NULL", "BIGINT NOT NULL"),
        ("t STRUCT<a nope>", "nope"),
        ("t BIGINT, t STRING", "two columns 't'"),
        ({"t": int}, "SQL type, or a Polars type"),
        ({1: "INT"}, "not a string"),
        (["t"], "SQL text or a dict, .* not a list"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(tmp_path, given, says):
    with pytest.raises(QueryError, match=says):
        wr.read_parquet(tmp_path, progress="t", schema=given)


# -- columns that the query needs --------------------------------------------------------------------------------------
@pytest.mark.parametrize("other", [ROWS.drop("x"), ROWS.with_columns(pl.col("x").cast(pl.String))])
def test_a_column_that_the_query_does_not_need_may_be_missing_or_of_another_type(tmp_path, other):
    put(tmp_path, "a.parquet")
    put(tmp_path, "b.parquet", other.with_columns(pl.col("t") + 100))
    s = wr.read_parquet(tmp_path, progress="t")
    counted = s.window(range=1000).group_by("k").agg(n=wr.count())
    assert counted.collect().rows() == [("a", 0, 1000, 4), ("b", 0, 1000, 2)]
    assert counted.bad_rows().height == 0
    summed = s.window(range=1000).agg(total=wr.sum("x"))
    assert summed.collect().rows() == [(0, 1000, 18)]
    assert "does not fit the stream" in summed.bad_rows()["reason"][0]


def test_bad_rows_of_such_a_file_show_what_it_has(tmp_path):
    put(tmp_path, "a.parquet")
    put(tmp_path, "b.parquet", pl.DataFrame({"t": [None], "k": ["c"]}, schema={"t": pl.Int64, "k": pl.String}))
    query = wr.read_parquet(tmp_path, progress="t").window(range=10).agg(n=wr.count())
    bad = query.bad_rows()
    assert bad.select("t", "k", "x", "reason").rows() == [(None, "c", None, "the progress value is NULL")]


# -- wider types -------------------------------------------------------------------------------------------------------
STAMP = datetime(2024, 1, 1, 10, tzinfo=UTC)
WIDER = [
    (pl.Series([-(2**31), None], dtype=pl.Int32), "BIGINT", [-(2**31), None]),
    (pl.Series([1, 127], dtype=pl.Int8), "SMALLINT", [1, 127]),
    (pl.Series([2**32 - 1], dtype=pl.UInt32), "BIGINT", [2**32 - 1]),
    (pl.Series([2**31 - 1], dtype=pl.Int32), "DOUBLE", [float(2**31 - 1)]),
    (pl.Series([0.5], dtype=pl.Float32), "DOUBLE", [0.5]),
    (pl.Series([7], dtype=pl.Int32), "DECIMAL(12, 2)", [Decimal("7.00")]),
    (pl.Series([Decimal("1.25")], dtype=pl.Decimal(6, 2)), "DECIMAL(10, 3)", [Decimal("1.250")]),
    (pl.Series([date(2024, 1, 1)]), "TIMESTAMP_NTZ", [datetime(2024, 1, 1)]),
    (pl.Series([STAMP]).dt.cast_time_unit("ms"), "TIMESTAMP", [STAMP]),
    (pl.Series(["a", "b"], dtype=pl.Categorical), "STRING", ["a", "b"]),
    (pl.Series([[1], []], dtype=pl.List(pl.Int16)), "ARRAY<BIGINT>", [[1], []]),
    (pl.Series([{"a": 1}], dtype=pl.Struct({"a": pl.Int8})), "STRUCT<a: INT>", [{"a": 1}]),
]
NARROWER = [
    (pl.Series([1], dtype=pl.Int64), "INT"),
    (pl.Series([1], dtype=pl.Int64), "DOUBLE"),
    (pl.Series([1], dtype=pl.UInt64), "BIGINT"),
    (pl.Series([1], dtype=pl.Int32), "DECIMAL(10, 2)"),
    (pl.Series([1.0]), "BIGINT"),
    (pl.Series([1.0]), "FLOAT"),
    (pl.Series([date(2024, 1, 1)]), "TIMESTAMP"),
    (pl.Series([STAMP]), "TIMESTAMP_NTZ"),
    (pl.Series([1]), "STRING"),
    (pl.Series([True]), "INT"),
    (pl.Series([Decimal("1.25")]), "DECIMAL(10, 1)"),
    (pl.Series([{"a": 1}]), "STRUCT<b: BIGINT>"),
]


@pytest.mark.parametrize(("given", "declared", "expected"), WIDER)
def test_narrower_types_are_taken_as_the_wider_one_of_the_stream(tmp_path, given, declared, expected):
    put(tmp_path, "a.arrow", pl.DataFrame({"t": range(len(given)), "x": given}))
    s = wr.read_arrow(tmp_path, progress="t", schema=f"t BIGINT, x {declared}")
    assert s.bad_rows().height == 0
    assert s.collect()["x"].to_list() == expected
    assert s.collect().schema == s.schema


@pytest.mark.parametrize(("given", "declared"), NARROWER)
def test_a_type_that_would_lose_values_is_foreign(tmp_path, given, declared):
    put(tmp_path, "a.arrow", pl.DataFrame({"t": [1], "x": given}))
    s = wr.read_arrow(tmp_path, progress="t", schema=f"t BIGINT, x {declared}")
    assert s.collect().height == 0
    assert "does not fit the stream: its column x is of type" in s.bad_rows()["reason"][0]


def test_every_number_survives_a_cast_that_counts_as_safe():
    """All pairs of numeric types, with the ends of their ranges and what floats can just about hold (issue 11)."""
    integers = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]
    ends = {t: [pl.select(t.min()).item(), pl.select(t.max()).item()] for t in integers}
    values = {t: [v for v in (*low_high, 0, 1) if v is not None] for t, low_high in ends.items()}
    values |= {pl.Float32: [0.5, 3.0e38, float(2**24)], pl.Float64: [0.1, 1e300, float(2**53)]}
    for found, given in values.items():
        for wanted in [*values, pl.Decimal(38, 0), pl.Decimal(9, 0), pl.Decimal(10, 0)]:
            column = pl.Series(given, dtype=found)
            there = column.cast(wanted, strict=False)
            survives = not there.has_nulls() and there.cast(found, strict=False).equals(column)
            safe = widens(pl.Series(dtype=found).dtype, pl.Series(dtype=wanted).dtype)
            assert survives or not safe, (found, wanted)
            if found in ends and wanted in ends:
                assert survives == safe, (found, wanted)


# -- columns in the names of folders -----------------------------------------------------------------------------------
def test_folders_name_columns(tmp_path):
    put(tmp_path, "day=2024-01-01/host=a%2Fb/1.parquet", pl.DataFrame({"t": [1, 2]}))
    put(tmp_path, "day=2024-01-02/host=__HIVE_DEFAULT_PARTITION__/1.parquet", pl.DataFrame({"t": [3]}))
    s = wr.read_parquet(tmp_path, progress="t")
    assert s.schema == {"t": pl.Int64(), "day": pl.Date(), "host": pl.String()}
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    assert s.collect().rows() == [(1, first, "a/b"), (2, first, "a/b"), (3, second, None)]
    days = s.where("day > '2024-01-01'").window(range=10).group_by("host").agg(n=wr.count())
    assert days.collect().rows() == [(None, 0, 10, 1)]


def test_the_type_of_a_folder_column_can_be_declared_and_what_does_not_fit_is_foreign(tmp_path):
    for value in ("07", "x", ""):
        put(tmp_path, f"n={value}/1.parquet", pl.DataFrame({"t": [1]}))
    declared = wr.read_parquet(tmp_path, progress="t", schema="t BIGINT, n SMALLINT")
    assert declared.collect().rows() == [(1, 7)]
    assert ["n" in r and "does not fit" in r for r in declared.bad_rows()["reason"]] == [True, True]
    assert wr.read_parquet(tmp_path, progress="t", schema="t BIGINT, n STRING").collect().rows() == [
        (1, "07"),
        (1, "x"),
    ]
    unneeded = wr.read_parquet(tmp_path, progress="t", schema="t BIGINT, n SMALLINT")
    assert unneeded.window(range=10).agg(n=wr.count()).collect().rows() == [(0, 10, 3)]


def test_a_folder_wins_over_a_column_inside_and_a_file_beside_the_folders_lacks_it(tmp_path):
    put(tmp_path, "k=7/1.parquet")
    put(tmp_path, "2.parquet", ROWS.drop("k"))
    s = wr.read_parquet(tmp_path, progress="t")
    assert s.schema["k"] == pl.Int32()
    query = s.window(range=100).group_by("k").agg(n=wr.count())
    assert query.collect().rows() == [(7, 0, 100, 3)]
    assert "it has no column k" in query.bad_rows()["reason"][0]


def test_a_query_that_needs_nothing_from_inside_counts_its_rows(tmp_path):
    for hour, rows in ((1, 3), (2, 0), (3, 2)):
        put(tmp_path, f"hour={hour}/1.parquet", pl.DataFrame({"x": [1] * rows}, schema={"x": pl.Int64}))
    query = wr.read_parquet(tmp_path, progress="hour").window(range=1).agg(n=wr.count())
    assert query.collect().rows() == [(1, 2, 3), (3, 4, 2)]


def test_folders_that_begin_with_an_underscore_count_only_if_they_name_a_column(tmp_path):
    put(tmp_path, "_k=1/1.parquet")
    put(tmp_path, "_temporary/2.parquet")
    put(tmp_path, ".k=1/3.parquet")
    assert wr.read_parquet(tmp_path, progress="t").collect()["_k"].to_list() == [1, 1, 1]
