"""Scalar expressions: SQL text, rows and the values they must give; texts that must be refused, and how."""

import datetime as dt
import math
import pickle
from decimal import Decimal

import polars as pl
import pytest

from windrow.errors import QueryError, ResultError
from windrow.logical.expressions import dtype_of, parse, resolve, translate
from windrow.logical.scalar.translator import Translator
from windrow.spec.units import unit

SCHEMA = {
    "x": pl.Int64(),
    "y": pl.Int64(),
    "f": pl.Float64(),
    "s": pl.String(),
    "b": pl.Boolean(),
    "c": pl.Boolean(),
    "i8": pl.Int8(),
    "i32": pl.Int32(),
    "u8": pl.UInt8(),
    "ts": pl.Datetime("us", "UTC"),
    "n": pl.Datetime("us"),
    "d": pl.Date(),
    "Len": pl.Int64(),
    "@t": pl.Int64(),
}
T, F, N = True, False, None
E = "raises"
MIN, MAX = -(2**63), 2**63 - 1
TS = dt.datetime(2020, 1, 1, 10, 30, 15, 123456, tzinfo=dt.UTC)


def typed(text, schema=SCHEMA):
    """The resolved expression and its type, as the planner gets them."""
    node = resolve(parse(text), schema, text)
    return node, dtype_of(node, schema, text)


def values(text, rows, schema=SCHEMA):
    """The values of an expression, one for each row; what it is at run time is what it was said to be."""
    node, dtype = typed(text, schema)
    found = pl.DataFrame(rows, schema=schema).with_columns(found=translate(node, schema, text))["found"]
    assert found.dtype == dtype
    return found.to_list()


def of(column, *given):
    return [{column: value} for value in given]


def pairs(a, b, *given):
    return [{a: left, b: right} for left, right in given]


BOOLS = [(T, T), (T, F), (T, N), (F, T), (F, F), (F, N), (N, T), (N, F), (N, N)]
THREE_VALUED = [
    ("b AND c", pairs("b", "c", *BOOLS), [T, F, N, F, F, F, N, F, N]),
    ("b OR c", pairs("b", "c", *BOOLS), [T, T, T, T, F, N, T, N, N]),
    ("NOT b", of("b", T, F, N), [F, T, N]),
    ("b AND NULL", of("b", T, F, N), [N, F, N]),
    ("NULL OR b", of("b", T, F, N), [T, N, N]),
    ("x = y", pairs("x", "y", (1, 1), (1, 2), (1, N), (N, N)), [T, F, N, N]),
    ("x <> y", pairs("x", "y", (1, 1), (1, 2), (1, N), (N, N)), [F, T, N, N]),
    ("x != y", pairs("x", "y", (1, 2)), [T]),
    ("x = NULL", of("x", 1, N), [N, N]),
    ("x <=> y", pairs("x", "y", (1, 1), (1, 2), (1, N), (N, N)), [T, F, F, T]),
    ("x IS DISTINCT FROM y", pairs("x", "y", (1, 1), (1, 2), (1, N), (N, N)), [F, T, T, F]),
    ("x IS NULL", of("x", 1, N), [F, T]),
    ("x IS NOT NULL", of("x", 1, N), [T, F]),
    ("b IS TRUE", of("b", T, F, N), [T, F, F]),
    ("b IS NOT TRUE", of("b", T, F, N), [F, T, T]),
    ("b IS FALSE", of("b", T, F, N), [F, T, F]),
    ("NOT x > 1", of("x", 0, 2, N), [T, F, N]),
    ("b OR c AND NOT c", pairs("b", "c", (T, F), (F, T), (F, F)), [T, F, F]),
    ("TRUE AND x >= 2 AND x <= 3", of("x", 1, 2, 3, 4, N), [F, T, T, F, N]),
]
ARITHMETIC = [
    ("x + y", pairs("x", "y", (1, 2), (MAX, 0), (1, N)), [3, MAX, N]),
    ("x - y * 2", pairs("x", "y", (10, 3)), [4]),
    ("(x - y) * 2", pairs("x", "y", (10, 3)), [14]),
    ("x / y", pairs("x", "y", (7, 2), (-7, 2), (7, 0), (0, 0), (7, N), (N, 0)), [3.5, -3.5, E, E, N, N]),
    ("f / 0.0", of("f", 1.0, -1.0, 0.0, N), [E, E, E, N]),
    ("x % y", pairs("x", "y", (7, 3), (-7, 3), (7, -3), (-7, -3), (7, 0), (N, 3), (3, N)), [1, -1, 1, -1, E, N, N]),
    ("mod(x, 2)", of("x", 5, -5), [1, -1]),
    ("f % 2", of("f", 5.5, -5.5), [1.5, -1.5]),
    ("f % 0", of("f", 5.5, N), [E, N]),
    ("x DIV y", pairs("x", "y", (7, 3), (-7, 3), (7, -3), (-7, -3), (7, 0), (N, 3), (3, N)), [2, -2, -2, 2, E, N, N]),
    ("-x", of("x", 5, N), [-5, N]),
    ("-9223372036854775808", of("x", 1), [MIN]),
    ("x + 1.5", of("x", 1), [2.5]),
    ("x + NULL", of("x", 1), [N]),
    ("abs(x)", of("x", -5, 5, N), [5, 5, N]),
    ("pow(x, 2)", of("x", 3), [9.0]),
    ("sqrt(x)", of("x", 9), [3.0]),
    ("exp(f)", of("f", 0.0), [1.0]),
    ("ln(f)", of("f", 1.0, 0.0, -1.0), [0.0, N, N]),
    ("floor(f)", of("f", 1.9, -1.1, N), [1, -2, N]),
    ("ceil(f)", of("f", 1.1, -1.9, N), [2, -1, N]),
    ("round(f)", of("f", 2.5, -2.5, 2.4), [3.0, -3.0, 2.0]),
    ("round(f, 1)", of("f", 0.25, -0.25), [0.3, -0.3]),
    ("1e3 + 0", of("x", 1), [1000.0]),
    ("x > 1.5", of("x", 1, 2), [F, T]),
    ("x / 3", of("x", -7), [-7 / 3]),  # and not times a third
    ("try_divide(x, y)", pairs("x", "y", (7, 2), (7, 0)), [3.5, N]),
    ("try_mod(x, y)", pairs("x", "y", (7, 3), (7, 0)), [1, N]),
    ("nullif(x, 0) / nullif(y, 0)", pairs("x", "y", (7, 2), (7, 0)), [3.5, N]),
]
WIDENED = [
    ("i8 + i8", of("i8", 127, -128), [254, -256]),
    ("i8 - 100", of("i8", -128), [-228]),
    ("i8 * 1000", of("i8", 100), [100_000]),
    ("i32 * i32", of("i32", 2**31 - 1), [(2**31 - 1) ** 2]),
    ("u8 - 2", of("u8", 1), [-1]),
    ("u8 + u8", of("u8", 255), [510]),
    ("i8 = 300", of("i8", 44), [F]),
    ("-i8", of("i8", -128), [128]),
    ("abs(i8)", of("i8", -128), [128]),
    ("i8 % 3", of("i8", -128), [-2]),
    ("i8 DIV 3", of("i8", -128), [-42]),
    ("u8 % 3", of("u8", 200), [2]),
    ("u8 DIV 3", of("u8", 200), [66]),
]
EDGES_OF_64_BITS = [
    ("x % y", pairs("x", "y", (MIN, 3), (MIN, -1), (MAX, MIN), (1, MIN)), [-2, 0, MAX, 1]),
    ("x DIV y", pairs("x", "y", (MIN, 3), (1, MIN), (MIN, 1), (MIN, -1)), [-3074457345618258602, 0, MIN, E]),
    ("x + y", pairs("x", "y", (MAX, 1), (MIN, -1), (MAX, MIN), (MAX, N)), [E, E, -1, N]),
    ("x - y", pairs("x", "y", (MIN, 1), (MAX, -1), (-1, MIN), (0, MIN)), [E, E, MAX, E]),
    ("x * y", pairs("x", "y", (MAX, 2), (MIN, -1), (2**32, 2**31), (-(2**32), 2**31)), [E, E, E, MIN]),
    ("-x", of("x", MIN, MAX), [E, -MAX]),
    ("abs(x)", of("x", MIN, -MAX), [E, MAX]),
    ("try_add(x, y)", pairs("x", "y", (MAX, 1), (1, 1)), [N, 2]),
    ("try_subtract(x, y)", pairs("x", "y", (MIN, 1), (1, 1)), [N, 0]),
    ("try_multiply(x, y)", pairs("x", "y", (MAX, 2), (1, 1)), [N, 1]),
    ("round(x, -1)", of("x", 15, -15, 14, MAX), [20, -20, 10, E]),
    ("CAST(x AS DOUBLE) + 1", of("x", MAX), [2.0**63]),
]
GUARDED = [  # what is not needed for a row cannot fail for it
    ("CASE WHEN x <> 0 THEN 10 / x ELSE -1 END", of("x", 0, 4, N), [-1.0, 2.5, -1.0]),
    ("CASE x WHEN 0 THEN 0 WHEN 10 DIV x THEN 1 END", of("x", 0, 3, 5), [0, 1, N]),
    ("CASE WHEN x > 0 THEN CASE WHEN y > 0 THEN x + y ELSE 0 END END", pairs("x", "y", (MAX, 0), (1, 1)), [0, 2]),
    ("if(x < 100, x + y, x)", pairs("x", "y", (MAX, 1), (1, 1)), [MAX, 2]),
    ("coalesce(x, CAST(s AS BIGINT))", pairs("x", "s", (1, "a"), (N, "7"), (N, N)), [1, 7, N]),
    ("coalesce(x, CAST(s AS BIGINT))", pairs("x", "s", (1, "a"), (N, "b")), [1, E]),
    ("x <> 0 AND 10 / x > 1", of("x", 0, 4, 20, N), [F, T, F, N]),
    ("x = 0 OR 10 / x > 1", of("x", 0, 4, 20, N), [T, T, F, N]),
    ("x = 0 OR y = 0 OR x / y / x > 1", pairs("x", "y", (0, 1), (1, 0), (4, 2)), [T, T, F]),
    ("10 / x > 1 AND x <> 0", of("x", 0, 4), [E, T]),
    ("x BETWEEN 1 AND 5 AND 10 % x = 0", of("x", 0, 5), [F, T]),
    ("CASE WHEN 1 = 0 THEN 1 / 0 ELSE 2 END", of("x", 1), [2.0]),
    ("if(x = 0, 1 / 0, 2)", of("x", 0, 1), [E, 2.0]),
]
CHOICES = [
    ("CASE WHEN x > 1 THEN 'big' WHEN x = 1 THEN 'one' END", of("x", 2, 1, 0, N), ["big", "one", N, N]),
    ("CASE WHEN x > 1 THEN 'big' ELSE 'small' END", of("x", 2, N), ["big", "small"]),
    ("CASE x WHEN 1 THEN 'one' WHEN NULL THEN 'never' ELSE 'other' END", of("x", 1, 2, N), ["one", "other", "other"]),
    ("CASE WHEN x = 1 THEN 1 ELSE 1.5 END", of("x", 1, 2), [1.0, 1.5]),
    ("CASE WHEN x > 0 THEN CASE WHEN x > 5 THEN 2 ELSE 1 END ELSE 0 END", of("x", 9, 3, -1), [2, 1, 0]),
    ("if(b, 1, 2)", of("b", T, F, N), [1, 2, 2]),
    ("coalesce(x, y, 0)", pairs("x", "y", (1, 2), (N, 2), (N, N)), [1, 2, 0]),
    ("nvl(x, 7)", of("x", 1, N), [1, 7]),
    ("nullif(x, y)", pairs("x", "y", (1, 1), (1, 2), (N, 1)), [N, 1, N]),
    ("nullif(x, y)", pairs("x", "y", (1, N)), [1]),
    ("greatest(x, y)", pairs("x", "y", (1, 2), (1, N), (N, N)), [2, 1, N]),
    ("least(x, y)", pairs("x", "y", (1, 2), (1, N)), [1, 1]),
    ("x IN (1, 2)", of("x", 1, 3, N), [T, F, N]),
    ("x IN (1, NULL)", of("x", 1, 3, N), [T, N, N]),
    ("x NOT IN (1, 2)", of("x", 1, 3, N), [F, T, N]),
    ("x NOT IN (1, NULL)", of("x", 1, 3), [F, N]),
    ("x IN (-1)", of("x", -1, 1), [T, F]),
    ("s IN ('a', 'b')", of("s", "a", "c"), [T, F]),
    ("x BETWEEN 1 AND 3", of("x", 0, 1, 3, 4, N), [F, T, T, F, N]),
    ("x NOT BETWEEN 1 AND 3", of("x", 0, 1, N), [T, F, N]),
    ("x BETWEEN 3 AND 1", of("x", 2), [F]),
    ("x BETWEEN 1 AND NULL", of("x", 0, 2), [F, N]),
]
TEXTS = [
    ("s LIKE 'a%'", of("s", "abc", "a", "ba", "", N), [T, T, F, F, N]),
    ("s LIKE 'a_c'", of("s", "abc", "ac", "abbc"), [T, F, F]),
    ("s LIKE '%b%'", of("s", "abc", "b", "a\nb\nc"), [T, T, T]),
    ("s LIKE 'b'", of("s", "abc", "b", "b\n"), [F, T, F]),
    ("s LIKE 'A%'", of("s", "abc"), [F]),
    ("s ILIKE 'A%'", of("s", "abc"), [T]),
    ("s NOT LIKE 'a%'", of("s", "abc", "b", N), [F, T, N]),
    ("s NOT ILIKE 'A%'", of("s", "abc", "b", N), [F, T, N]),
    ("NOT s LIKE 'a%'", of("s", "abc", "b", N), [F, T, N]),
    ("s LIKE 'a.c'", of("s", "abc", "a.c"), [F, T]),
    ("s LIKE '[a]^$(b)*'", of("s", "[a]^$(b)*", "a"), [T, F]),
    ("s LIKE '<%>'", of("s", "<b>", "b"), [T, F]),
    ("s LIKE '%—%'", of("s", "a—b", "ab"), [T, F]),
    ("s LIKE 'é_'", of("s", "éa", "e"), [T, F]),
    ("upper(s)", of("s", "aé", N), ["AÉ", N]),
    ("lower(s)", of("s", "AÉ"), ["aé"]),
    ("length(s)", of("s", "héllo", "", N), [5, 0, N]),
    ("trim(s)", of("s", "  a b  "), ["a b"]),
    ("s || '!'", of("s", "a", N), ["a!", N]),
    ("x || s", pairs("x", "s", (1, "a")), ["1a"]),
    ("concat(s, '-', x)", pairs("s", "x", ("a", 1), (N, 1)), ["a-1", N]),
    ("substring(s, 2, 3)", of("s", "héllo", "h", N), ["éll", "", N]),
    ("substring(s, 2)", of("s", "héllo"), ["éllo"]),
    ("substring(s, -2, 2)", of("s", "héllo"), ["lo"]),
    ("s < 'b'", of("s", "a", "b"), [T, F]),
]
CASTS = [
    ("CAST(x AS DOUBLE)", of("x", 3, N), [3.0, N]),
    ("CAST(x AS STRING)", of("x", 3), ["3"]),
    ("x::string", of("x", 3), ["3"]),
    ("CAST(x AS TINYINT)", of("x", 127, 300), [127, E]),
    ("TRY_CAST(x AS TINYINT)", of("x", 127, 300), [127, N]),
    ("CAST(f AS INT)", of("f", 1.9, -1.9, math.nan, 1e20), [1, -1, E, E]),
    ("CAST(s AS BIGINT)", of("s", "12", "-3", "abc", "", " 2 ", "1.5", N), [12, -3, E, E, 2, E, N]),
    ("CAST(s AS DOUBLE)", of("s", "1.5", "abc"), [1.5, E]),
    ("TRY_CAST(s AS INT)", of("s", "7", "x"), [7, N]),
    ("CAST(b AS INT)", of("b", T, F, N), [1, 0, N]),
    ("CAST(s AS DATE)", of("s", "2020-02-29", "2020-02-30", N), [dt.date(2020, 2, 29), E, N]),
    ("CAST(s AS TIMESTAMP)", of("s", "2020-01-01 10:30:15.123456", "soon", N), [TS, E, N]),
    ("CAST(s AS TIMESTAMP)", of("s", "2020-01-01T10:30:15.123456Z"), [TS]),
    ("CAST(s AS TIMESTAMP)", of("s", "2020-01-01 10:30:15.123456", "2020-01-01T12:30:15.123456+02:00"), [TS, TS]),
    ("CAST(s AS TIMESTAMP_NTZ)", of("s", "2020-01-01 10:30:15.123456"), [TS.replace(tzinfo=None)]),
    ("CAST(ts AS DATE)", of("ts", TS), [dt.date(2020, 1, 1)]),
    ("CAST(ts AS BIGINT)", of("ts", TS, dt.datetime(1969, 12, 31, 23, 59, 59, 500000, dt.UTC)), [1577874615, -1]),
    ("CAST(ts AS DOUBLE)", of("ts", TS), [1577874615.123456]),
    ("CAST(x AS TIMESTAMP)", of("x", 1577874615), [TS.replace(microsecond=0)]),
    ("CAST(f AS TIMESTAMP)", of("f", 1.5, math.nan), [dt.datetime(1970, 1, 1, 0, 0, 1, 500000, dt.UTC), E]),
    (
        "CAST(ts AS STRING)",
        of("ts", TS, TS.replace(microsecond=0)),
        [f"{TS:%Y-%m-%d %H:%M:%S.%f}", "2020-01-01 10:30:15"],
    ),
    (
        "CAST(f AS STRING)",
        of("f", 1.0, 1e10, 1e-5, math.nan, -math.inf),
        ["1.0", "1.0E10", "1.0E-5", "NaN", "-Infinity"],
    ),
    ("CAST(d AS TIMESTAMP)", of("d", dt.date(2020, 1, 1)), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
]
TIMES = [
    ("ts = '2020-01-01 10:30:15.123456'", of("ts", TS, N), [T, N]),
    ("ts = '2020-01-01T10:30:15.123456Z'", of("ts", TS), [T]),
    ("ts = '2020-01-01T12:30:15.123456+02:00'", of("ts", TS), [T]),
    ("'2020-01-01' < ts", of("ts", TS), [T]),
    ("ts >= '2020-01-02'", of("ts", TS, TS + dt.timedelta(days=1)), [F, T]),
    ("ts BETWEEN '2020-01-01' AND '2020-01-02'", of("ts", TS, TS + dt.timedelta(days=1)), [T, F]),
    ("ts IN ('2020-01-01', '2020-01-01 10:30:15.123456')", of("ts", TS), [T]),
    ("n = '2020-01-01 10:30:15.123456'", of("n", TS.replace(tzinfo=None)), [T]),
    ("d = '2020-01-01'", of("d", dt.date(2020, 1, 1), dt.date(2020, 1, 2)), [T, F]),
    ("ts > TIMESTAMP '2020-01-01 10:30:15'", of("ts", TS), [T]),
    ("d < DATE '2020-01-02'", of("d", dt.date(2020, 1, 1)), [T]),
    ("ts + INTERVAL '1' DAY", of("ts", TS), [TS + dt.timedelta(days=1)]),
    ("ts - INTERVAL 90 SECONDS", of("ts", TS), [TS - dt.timedelta(seconds=90)]),
    ("ts - INTERVAL '2 hours'", of("ts", TS), [TS - dt.timedelta(hours=2)]),
    ("ts + INTERVAL '-1' SECOND", of("ts", TS), [TS - dt.timedelta(seconds=1)]),
    ("ts + INTERVAL '1.001' SECOND", of("ts", TS), [TS + dt.timedelta(milliseconds=1001)]),
    ("INTERVAL '1' WEEK + ts", of("ts", TS), [TS + dt.timedelta(weeks=1)]),
    ("ts - ts", of("ts", TS), [dt.timedelta(0)]),
    ("d + INTERVAL 36 HOURS", of("d", dt.date(2020, 1, 1)), [dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)]),
    ("d + INTERVAL 2 DAYS", of("d", dt.date(2020, 1, 1)), [dt.date(2020, 1, 3)]),
    ("d - 1", of("d", dt.date(2020, 1, 1)), [dt.date(2019, 12, 31)]),
    ("d - DATE '2019-12-30'", of("d", dt.date(2020, 1, 1)), [dt.timedelta(days=2)]),
    ("ts > n", [{"ts": TS, "n": TS.replace(tzinfo=None)}, {"ts": TS, "n": dt.datetime(1999, 1, 1)}], [F, T]),
    ("ts > d", [{"ts": TS, "d": TS.date()}], [T]),
    ("x = s", pairs("x", "s", (1, " 1 "), (1, "2"), (1, "a")), [T, F, E]),
    ("s + 1", of("s", "41", "a"), [42, E]),
    ("s BETWEEN 1 AND 2", of("s", "2", "10"), [T, F]),
    ("date_trunc('minute', ts)", of("ts", TS), [TS.replace(second=0, microsecond=0)]),
    ("date_trunc('HOUR', ts)", of("ts", TS), [TS.replace(minute=0, second=0, microsecond=0)]),
    ("date_trunc('week', ts)", of("ts", TS), [dt.datetime(2019, 12, 30, tzinfo=dt.UTC)]),
    ("date_trunc('millisecond', ts)", of("ts", TS), [TS.replace(microsecond=123000)]),
    ("extract(minute FROM ts)", of("ts", TS), [30]),
    ("extract(YEAR FROM d)", of("d", dt.date(2020, 1, 1)), [2020]),
    ("hour(ts)", of("ts", TS), [10]),
    ("minute(ts) + second(ts)", of("ts", TS), [45]),
    ("year(ts)", of("ts", TS), [2020]),
    ("to_date(ts)", of("ts", TS), [TS.date()]),
    ("to_date(to_date(ts))", of("ts", TS), [TS.date()]),
    ("month(d)", of("d", dt.date(2020, 3, 1)), [3]),
    ("day(ts)", of("ts", TS), [1]),
]
# What a text says beyond the plain form must count; an expression that cannot honour it has to refuse it.
HONOURED_OR_REFUSED = [
    ("ltrim(s)", of("s", "  a  "), ["a  "]),
    ("to_date(s, 'yyyy')", of("s", "2024"), [dt.date(2024, 1, 1)]),
    ("rtrim(s)", of("s", "  a  "), ["  a"]),
    ("trim(BOTH 'x' FROM s)", of("s", "xaxx"), ["a"]),
    ("round(f, -1)", of("f", 123.0), [120.0]),
    ("floor(f, 1)", of("f", 1.29), [1.2]),
    ("ceil(f, 1)", of("f", 1.21), [1.3]),
    ("x BETWEEN SYMMETRIC 3 AND 1", of("x", 2, 4), [T, F]),
    (r"s LIKE '10\%'", of("s", "10%", "10x"), [T, F]),
    ("s LIKE '10!%' ESCAPE '!'", of("s", "10%", "10x"), [T, F]),
    ("CAST(s AS BOOLEAN)", of("s", "true", "false"), [T, F]),
    ("CAST(x AS DECIMAL(10, 2))", of("x", 1), [1]),
    ("-u8", of("u8", 1), [-1]),
    ("d = '2020-01-01 10:00:00'", of("d", dt.date(2020, 1, 1)), [F]),
    ("d < '2020-01-01 10:00:00'", of("d", dt.date(2020, 1, 1)), [T]),
    ("CASE ts WHEN '2020-01-01 10:30:15.123456' THEN 1 END", of("ts", TS), [1]),
]
ALL = THREE_VALUED + ARITHMETIC + WIDENED + EDGES_OF_64_BITS + GUARDED + CHOICES + TEXTS + CASTS + TIMES


@pytest.mark.parametrize(("text", "rows", "expected"), ALL)
def test_the_values_of_an_expression(text, rows, expected):
    """Those of each row alone, and of all of them at once: one that fails stops the query."""
    right = [value for value in expected if value is not E]
    found = values(text, [row for row, value in zip(rows, expected, strict=True) if value is not E])
    assert found == right
    assert [type(v) for v in found] == [type(v) for v in right]
    for failing in [[row] for row, value in zip(rows, expected, strict=True) if value is E]:
        with pytest.raises(ResultError):
            values(text, failing)
    if E in expected:
        with pytest.raises(ResultError):
            values(text, rows)


@pytest.mark.parametrize(
    ("text", "row", "said"),
    [
        (
            "x + 1",
            {"x": MAX},
            f"x + 1 does not fit into 64 bits, for {MAX}, 1. try_add gives NULL there; CAST to DOUBLE",
        ),
        (
            "x / y",
            {"x": 1, "y": 0},
            "x / y divides by zero, for 1.0, 0.0. try_divide, or nullif(divisor, 0), gives NULL",
        ),
        (
            "CAST(s AS INT)",
            {"s": "{a}"},
            "CAST(s AS INT) has no value of type int, for '{a}'. try_cast gives NULL there",
        ),
    ],
)
def test_an_error_names_the_expression_the_values_and_what_to_do(text, row, said):
    with pytest.raises(ResultError) as error:
        values(text, [row])
    assert said in str(error.value)
    assert "python_udf" not in str(error.value), "how we wrote the expression is nobody's business"


def test_an_expression_survives_the_way_to_a_worker():
    """Spark pickles it."""
    node = resolve(parse("CASE WHEN x > 0 THEN x + CAST(s AS INT) END"), SCHEMA)
    moved = pickle.loads(pickle.dumps(translate(node, SCHEMA)))
    frame = pl.DataFrame(pairs("x", "s", (1, "2"), (0, "a")), schema=SCHEMA)
    assert frame.select(moved.alias("v"))["v"].to_list() == [3, None]


@pytest.mark.parametrize(("text", "rows", "expected"), HONOURED_OR_REFUSED)
def test_what_an_expression_says_is_honoured_or_refused_but_never_ignored(text, rows, expected):
    try:
        typed(text)
    except QueryError:
        return
    assert values(text, rows) == expected


@pytest.mark.parametrize(("text", "rows"), [("x + 1", []), ("s LIKE 'a%'", []), ("CAST(s AS TIMESTAMP)", [])])
def test_no_rows_give_no_values(text, rows):
    assert values(text, rows) == []


def test_nan_equals_itself_and_is_the_greatest_value():
    assert values("f = f", of("f", math.nan)) == [True]
    assert values("f > 1e308", of("f", math.nan, math.inf, 1.0)) == [True, True, False]


OTHERS = {"p": pl.Decimal(10, 2), "q": pl.Decimal(38, 10), "u": pl.UInt64(), "x": pl.Int64(), "k": pl.Categorical()}
LARGE = Decimal("9" * 28)


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("p * p", of("p", Decimal("1.25"), N), [Decimal("1.5625"), N]),
        ("-p", of("p", Decimal("1.25")), [Decimal("-1.25")]),
        ("p + 1", of("p", Decimal("1.25")), [Decimal("2.25")]),
        ("p / 2", of("p", Decimal("1.25")), [0.625]),
        ("round(p, 1)", of("p", Decimal("1.25")), [Decimal("1.3")]),
        ("q + q", of("q", Decimal("0.5"), LARGE), [Decimal(1), E]),
        ("try_add(q, q)", of("q", Decimal("0.5"), LARGE), [Decimal(1), N]),
        ("u > 5", of("u", 5, 2**64 - 1, N), [F, T, N]),
        ("u = x", pairs("u", "x", (5, 5), (2**64 - 1, -1)), [T, F]),
        ("u + 1", of("u", 5, 2**64 - 1), [6, E]),
        ("k = 'a' OR upper(k) = 'B'", of("k", "a", "b", "c", N), [T, T, F, N]),
    ],
)
def test_types_that_sql_does_not_write(text, rows, expected):
    right = [row for row, value in zip(rows, expected, strict=True) if value is not E]
    assert values(text, right, OTHERS) == [value for value in expected if value is not E]
    if E in expected:
        with pytest.raises(ResultError):
            values(text, rows, OTHERS)


# -- types -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("i8 + i8", pl.Int64()),
        ("i8", pl.Int8()),
        ("x / y", pl.Float64()),
        ("x > y", pl.Boolean()),
        ("x + f", pl.Float64()),
        ("s || x", pl.String()),
        ("CAST(x AS SMALLINT)", pl.Int16()),
        ("CAST(x AS FLOAT)", pl.Float32()),
        ("ts + INTERVAL '1' DAY", pl.Datetime("us", "UTC")),
        ("n - INTERVAL '1' DAY", pl.Datetime("us")),
        ("ts - ts", pl.Duration("us")),
        ("length(s)", pl.Int64()),
        ("floor(f)", pl.Int64()),
        ("TRUE", pl.Boolean()),
    ],
)
def test_the_type_is_known_without_rows(text, dtype):
    assert typed(text)[1] == dtype


@pytest.mark.parametrize("operator", [" AND ", " + "])
def test_the_work_grows_with_the_length_of_a_chain_and_not_with_its_power(operator, monkeypatch):
    calls = []
    of_node = Translator.of
    monkeypatch.setattr(Translator, "of", lambda self, node: calls.append(1) or of_node(self, node))

    def work(terms):
        calls.clear()
        typed(operator.join(["x > 0" if "AND" in operator else "x"] * terms))
        return len(calls)

    assert work(8) <= 6 * work(4)  # twice the terms: even a quadratic translator makes four times the calls


# -- names -----------------------------------------------------------------------------------------------------------
def test_names_match_exactly_or_else_without_regard_to_case():
    assert values("X + len", pairs("x", "Len", (1, 2))) == [3]
    assert values("Len", of("Len", 2)) == [2]
    both = {"a": pl.Int64(), "A": pl.Int64()}
    assert values("a - A", pairs("a", "A", (5, 3)), both) == [2]


def test_resolving_leaves_the_tree_it_was_given():
    node = parse("X > 1")
    resolved = resolve(node, SCHEMA)
    assert (node.sql(), resolved.sql()) == ("X > 1", "x > 1")


def test_a_quoted_name_is_a_column_and_a_quoted_text_is_a_text():
    assert values("`x`", of("x", 1)) == [1]
    assert values("'x'", of("x", 1)) == ["x"]


# -- what is refused, and how ----------------------------------------------------------------------------------------
REFUSED = [
    (
        "zz > 1",
        "unknown column 'zz'; available: Len, b, c, d, f, i32, i8, n, s, ts, u8, x, y\n  zz > 1\n  ^^",
    ),
    (
        "x > 1 AND\n  nope = 2",
        "unknown column 'nope'; available: Len, b, c, d, f, i32, i8, n, s, ts, u8, x, y\n    nope = 2\n    ^^^^",
    ),
    ("x AND b", "AND, OR and NOT take conditions, and this is of type bigint\n  x AND b\n  ^"),
    (
        "b OR (c AND x)",
        "AND, OR and NOT take conditions, and this is of type bigint\n  b OR (c AND x)\n              ^",
    ),
    ("b AND s", "AND, OR and NOT take conditions, and this is of type string\n  b AND s\n        ^"),
    ("1 + soundex(s)", "'soundex' is not supported in expressions\n  1 + soundex(s)\n"),
    ("my_function(x)", "'my_function' is not supported in expressions\n  my_function(x)\n  ^^^^^^^^^^^^"),
    ("count(x)", "'count' is not supported in expressions"),
    ("x = 'abc'", "'abc' is not a bigint\n  x = 'abc'\n      ^^^^^"),
    ("s + s", "the types in s + s do not fit: both sides are texts"),
    ("b BETWEEN 1 AND 2", "the types in b BETWEEN 1 AND 2 do not fit: boolean and int have no common type"),
    ("ts > x", "the types in ts > x do not fit: timestamp and bigint have no common type"),
    ("b = 1", "the types in b = 1 do not fit: boolean and int have no common type"),
    ("greatest(x, s)", "the types in greatest(x, s) do not fit: bigint and string have no common type"),
    ("CAST(d AS BIGINT)", "cannot cast date to bigint"),
    ("CAST(x AS DATE)", "cannot cast bigint to date"),
    ("CAST(b AS TIMESTAMP)", "cannot cast boolean to timestamp"),
    ("CAST(n AS BIGINT)", "cannot cast timestamp_ntz to bigint"),
    ("f DIV 2", "DIV divides integers"),
    ("ts + ts", "there is no timestamp + timestamp"),
    ("sqrt(ts)", "a number is needed here, and this is of type timestamp"),
    ("hour(x)", "needed here, and this is of type bigint"),
    ("9223372036854775808", "9223372036854775808 is beyond 64 bits"),
    (r"s LIKE 'a\\b'", "a backslash stands before"),
    ("CASE WHEN x THEN 1 END", "WHEN takes a condition, and this is of type bigint"),
    ("NOT x", "bigint"),
    (
        "ts > 'yesterday'",
        "'yesterday' is not a timestamp or date\n  ts > 'yesterday'\n       ^^^^^^^^^^^",
    ),
    ("d = '2020-13-01'", "'2020-13-01' is not a timestamp or date\n  d = '2020-13-01'\n      ^^^^^^^^^^^^"),
    ("x IN (y)", "IN takes a list of literals\n  x IN (y)"),
    ("x IN ()", "IN takes a list of literals"),
    ("s LIKE s", "LIKE takes a literal pattern\n  s LIKE s\n  ^^^^^^^^"),
    ("CAST(x AS DECIMAL(10, 2))", "cannot cast to DECIMAL(10, 2)"),
    (
        "ts + INTERVAL '1' MONTH",
        "an interval needs one of the units day, hour, microsecond, millisecond, minute, second, week",
    ),
    ("ts + INTERVAL x SECOND", "interval"),
    ("ts + INTERVAL 'soon' SECOND", "interval"),
    ("date_trunc('year', ts)", "date_trunc takes one of the units day, hour"),
    ("extract(dow FROM ts)", "cannot extract 'dow'"),
    ("round(f, x)", "round"),
    ("x +", "cannot read 'x +': "),
    ("x y", "cannot read 'x y': "),
    ("", "cannot read '': "),
    ("x = 'unclosed", "cannot read"),
    ("(SELECT 1)", "'(SELECT 1)' is not supported in expressions"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_means_nothing_is_a_query_error_that_says_why_and_where(text, said):
    with pytest.raises(QueryError) as error:
        typed(text)
    assert said in str(error.value)


def test_an_ambiguous_name_lists_the_candidates():
    with pytest.raises(QueryError, match="ambiguous column 'AB'; available: Ab, aB"):
        typed("AB > 1", {"aB": pl.Int64(), "Ab": pl.Int64(), "x": pl.Int64()})


def test_without_the_text_there_is_no_underline():
    with pytest.raises(QueryError) as error:
        resolve(parse("zz > 1"), {"x": pl.Int64()})
    assert str(error.value) == "unknown column 'zz'; available: x"


# -- units -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("second", "second"),
        ("SECONDS", "second"),
        ("s", "second"),
        ("secs", "second"),
        ("min", "minute"),
        ("mins", "minute"),
        ("m", "minute"),
        ("hrs", "hour"),
        ("h", "hour"),
        ("ms", "millisecond"),
        ("us", "microsecond"),
        ("d", "day"),
        ("days", "day"),
        ("w", "week"),
        ("month", None),
        ("year", None),
        ("", None),
        ("fortnight", None),
    ],
)
def test_units_of_time_by_any_of_their_names(name, expected):
    assert unit(name) == expected
