"""Every operator and function of the SQL reference with values that are hard: what Spark SQL (ANSI) gives for them.

Spark's answers are in ``tests/data/spark_expressions.json``, so that a difference shows without Spark;
``tests/hosts/spark/test_spark_expressions.py`` asks Spark again, and writes the file anew if WINDROW_WRITE is set.
"""

import datetime as dt
import itertools
import json
from pathlib import Path

import polars as pl

FILE = Path(__file__).parents[1] / "data" / "spark_expressions.json"
FAILS, REFUSED = "fails", "refused"
SCHEMA = {
    "x": pl.Int64(),
    "y": pl.Int64(),
    "i": pl.Int32(),
    "j": pl.Int8(),
    "f": pl.Float64(),
    "g": pl.Float64(),
    "r": pl.Float32(),
    "s": pl.String(),
    "u": pl.String(),
    "b": pl.Boolean(),
    "c": pl.Boolean(),
    "d": pl.Date(),
    "e": pl.Date(),
    "ts": pl.Datetime("us", "UTC"),
    "tt": pl.Datetime("us", "UTC"),
    "n": pl.Datetime("us"),
}
SPARK_TYPES = {
    pl.Int64(): "BIGINT",
    pl.Int32(): "INT",
    pl.Int8(): "TINYINT",
    pl.Float64(): "DOUBLE",
    pl.Float32(): "FLOAT",
    pl.String(): "STRING",
    pl.Boolean(): "BOOLEAN",
    pl.Date(): "DATE",
    pl.Datetime("us", "UTC"): "TIMESTAMP",
    pl.Datetime("us"): "TIMESTAMP_NTZ",
}
MIN, MAX = -(2**63), 2**63 - 1
NAN, INF = float("nan"), float("inf")
INTEGERS = [0, 1, -1, 3, -7, 2**31, MIN, MAX, None]
FEW = [0, 2, -3, MIN, MAX, None]
FLOATS = [0.0, -0.0, 1.5, -2.5, 0.285, 2.675, 1e-5, 123456789.125, 2.0**53, 1e18, 1e19, 1e300, NAN, INF, -INF, None]
FEW_FLOATS = [0.0, -0.0, 2.5, -7.25, NAN, INF, -INF, None]
SINGLES = [0.0, 0.1, -2.5, 16777216.0, 3e38, NAN, INF, None]
TEXTS = ["", " ", "a", "Ab c", "  x ", "xyaxy", "straße", "É_%", "a\nb", "10%", "<b>", "日本語", None]
NUMBERS = ["0", " 2 ", "+5", "-3", "1.5", "1e3", ".5", "5.", "", " ", "abc", "1 2", "127", "128", "2147483648", "1_0"]
NUMBERS += ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "1d", "1.5f", "1L", "0x1", "\t7\n"]
NUMBERS += ["NaN", "nan", "inf", "-Infinity", "+INF", "1e400", "1e-400", "--1", "1e", "٣", None]
TRUTHS = ["true", " T ", "yes", "Y", "1", "FALSE", "f", "no", "n", "0", "2", "on", "", None]
DAYS = ["2024", "2024-2", "2024-2-3", " 2024-02-29 ", "2023-02-29", "2024-02-03 what", "2024-02-03Tthat", "2024-02-03x"]
DAYS += ["20240203", "99-01-01", "2024-13-01", "2024-04-31", "2024-00-10", "0001-01-01", "9999-12-31", "", "x", None]
STAMPS = [
    f"2024-01-02{rest}" for rest in ("", " ", "T", " 3", " 03:04", "T3:4:5", " 03:04:05.6", " 03:04:05.", " 24:00:00")
]
STAMPS += [
    f"2024-01-02 03:04:05{zone}" for zone in ("Z", " Z", "z", "+2", "+02", "+0200", "+2:00", "+02:00", " +02:00")
]
STAMPS += [
    f"2024-01-02 03:04:05{zone}" for zone in (".123456789", ".1234567891", "-02:30:15", " UTC", " UTC+3", "+19:00")
]
STAMPS += [
    f"2024-01-02 03:04:05{zone}" for zone in (" GMT-02:00", " Europe/Berlin", "America/New_York", " Mars/X", "+18")
]
STAMPS += ["2024-01-02  03:04:05", "2024-01-02 03:04Z", "2024-01-02Z", "2024-01-02 23:59:60", "2024-01-02 23:60:00"]
STAMPS += ["2024-07-02 03:04:05 Europe/Berlin", "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00", "2024-02-30 1:2:3"]
STAMPS += ["2024-03-31 02:30:00 Europe/Berlin", "2024-10-27 02:30:00 Europe/Berlin", "294247-01-10 04:00:54.775807"]
STAMPS += ["294248-01-01", "294247-01-10 04:00:54.775808", "-290308-12-21 19:59:05.224192", "10000-01-01 00:00:00 Z"]
STAMPS += ["2024", "2024-05", " 2024-05-06 07:08:09 ", "", "soon", None]
AT = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    dt.datetime(2024, 2, 29, 10, 30, 5, 250_000),
]
AT += [dt.datetime(2024, 1, 1), dt.datetime(1, 1, 1, 12), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]
AT += [dt.datetime(2038, 1, 19, 3, 14, 8), None]
ON = [None if at is None else at.date() for at in AT]
FEW_TIMES = [AT[1], AT[2], AT[3], None]
BOOLS = [True, False, None]
CAST_TO = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP"]
CAST_TO += ["TIMESTAMP_NTZ"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def of(column, values):
    return [{column: value} for value in values]


def grid(**columns):
    return [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]


def of_both(left, values, right, texts):
    """Without texts that cannot be read beside NULL: Spark does not look at them."""
    readable = ("2", " 0 ", "1", " 9 ", "true", "0", None)
    return [row for row in grid(**{left: values, right: texts}) if row[left] is not None or row[right] in readable]


ONE = [{"x": 1}]
WHOLE, REAL, SINGLE = of("x", INTEGERS), of("f", FLOATS), of("r", SINGLES)
PAIRS, REALS = grid(x=FEW, y=FEW), grid(f=FEW_FLOATS, g=FEW_FLOATS)
TRIPLES = grid(x=[0, 5, None], y=[0, 2, None])
WORDS, STAMPED, DATED, NAIVE = of("s", TEXTS), of("ts", AT), of("d", ON), of("n", AT)
INSTANTS = grid(ts=FEW_TIMES, n=FEW_TIMES)
TIMED = [("ts", STAMPED), ("d", DATED), ("n", NAIVE)]
EVERYTHING = [("x", WHOLE), ("f", REAL), ("r", SINGLE), ("b", of("b", BOOLS)), *TIMED]
MIXED = [{"ts": AT[2], "n": AT[1], "d": ON[3]}, {"ts": None, "n": AT[1], "d": ON[1]}]
UNITS = ["WEEK", "day", "hour", "minute", "second", "millisecond", "microsecond"]
FIELDS = ["year", "month", "day", "hour", "minute", "second"]
LENGTHS = [
    "1 DAY",
    "36 HOURS",
    "90 SECONDS",
    "'1' WEEK",
    "2 MINUTES",
    "'1.5' SECOND",
    "'5' MILLISECOND",
    "3 MICROSECONDS",
]

CASES = [
    # arithmetic
    *((f"x {o} y", PAIRS) for o in ("+", "-", "*", "/", "%", "DIV")),
    *((f"f {o} g", REALS) for o in ("+", "-", "*", "/", "%")),
    *((f"{name}(x, y)", PAIRS) for name in ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod", "mod")),
    *((f"x {o} 3", WHOLE) for o in ("+", "-", "*", "/", "%", "DIV")),
    *((f"x {o} -1", WHOLE) for o in ("*", "%", "DIV")),
    *((f"x {o} 0", of("x", [1, None])) for o in ("/", "%", "DIV")),
    *((f"x {o} f", grid(x=[0, 2, None], f=[0.0, 1.5, NAN, None])) for o in ("+", "-", "*", "/", "%")),
    *(
        (f"x {o} s", of_both("x", [1, None], "s", ["2", " 0 ", "1.5", "a", None]))
        for o in ("+", "-", "*", "/", "%", "DIV")
    ),
    *((f"r {o} x", grid(r=[0.5, 0.1, None], x=[1, 16777217])) for o in ("+", "*", "/")),
    *((f"r {o} r", SINGLE) for o in ("+", "*")),
    *((f"{f}(f)", REAL) for f in ("-", "abs", "floor", "ceil", "round", "sqrt", "exp", "ln")),
    *((f"{f}(x)", WHOLE) for f in ("-", "abs", "floor", "ceil", "round", "sqrt", "ln")),
    *((f"{f}(r)", SINGLE) for f in ("-", "abs", "floor", "ceil", "round")),
    *((f"{f}(s)", of("s", ["1.5", "-2", "a", None])) for f in ("-", "abs", "floor", "ceil", "round", "sqrt")),
    *((f"round(f, {n})", REAL) for n in (0, 1, 2, 5, -1, -3)),
    *((f"round(x, {n})", of("x", [0, 5, 15, -15, 149, MIN, None])) for n in (2, -1, -2)),
    ("round(x, -1)", of("x", [MAX])),
    ("round(r, 1)", SINGLE),
    ("pow(f, g)", grid(f=[0.0, 2.5, -8.0, INF, NAN, None], g=[0.0, 2.0, -1.0, 0.5, NAN, None])),
    ("pow(f, g)", grid(f=[1.0, -1.0, 0.5, -0.0], g=[NAN, INF, -INF, -1.0])),
    *((f"round(x, {n})", of("x", [4 * 10**18, 5 * 10**18, MIN, MAX])) for n in (-18, -19, -20)),
    *((f"round(f, {n})", of("f", [1.5, 1e300, 5e-324])) for n in (400, -301, -400)),
    ("(x + y) * 2 - x % 3", TRIPLES),
    ("-9223372036854775808", ONE),
    ("5 / 2", ONE),
    ("1e3 + 0", ONE),
    # comparison
    *((f"x {o} y", PAIRS) for o in COMPARISONS),
    *((f"f {o} g", REALS) for o in COMPARISONS),
    *((f"s {o} u", grid(s=["", "a", "B", "é", None], u=["a", "b", None])) for o in COMPARISONS),
    *((f"b {o} c", grid(b=BOOLS, c=BOOLS)) for o in COMPARISONS),
    *((f"x {o} f", grid(x=[0, 2**53 + 1, MAX, None], f=[0.0, 2.0**53, 2.0**63, NAN, None])) for o in COMPARISONS),
    *((f"x {o} s", of_both("x", [1, 10, None], "s", ["1", " 9 ", "1.0", "abc", "", None])) for o in COMPARISONS),
    *((f"f {o} s", grid(f=[1.0, NAN], s=["1", " 1.5 ", "nan", "abc", None])) for o in COMPARISONS),
    *((f"ts {o} n", INSTANTS) for o in COMPARISONS),
    *((f"ts {o} d", grid(ts=FEW_TIMES, d=[ON[2], ON[3]])) for o in COMPARISONS),
    *((f"n {o} d", grid(n=FEW_TIMES, d=[ON[2], ON[3]])) for o in COMPARISONS),
    *((f"ts {o} tt", grid(ts=FEW_TIMES, tt=FEW_TIMES)) for o in COMPARISONS),
    *((f"ts {o} s", grid(ts=FEW_TIMES[:2], s=["2024-02-29 10:30:05.25", "1969", "x", None])) for o in COMPARISONS),
    *((f"ts {o} '2024-02-29 10:30:05.25'", STAMPED) for o in COMPARISONS),
    *((f"d {o} '2024-02-29'", DATED) for o in COMPARISONS),
    *((f"n {o} '2024-02-29T10:30:05.25Z'", NAIVE) for o in COMPARISONS),
    *((f"x {o} '1'", WHOLE) for o in COMPARISONS),
    *((f"b {o} s", of_both("b", BOOLS, "s", ["true", "0", "x"])) for o in ("=", "<")),
    *((f"r {o} 0.1", SINGLE) for o in ("=", ">")),
    *((f"x {o} 1.5", of("x", [1, 2, None])) for o in ("=", "<")),
    ("x IS DISTINCT FROM y", PAIRS),
    ("x IS NOT DISTINCT FROM s", grid(x=[1, None], s=["1", "2", None])),
    ("x BETWEEN 0 AND y", PAIRS),
    ("x NOT BETWEEN -3 AND 2", WHOLE),
    ("f BETWEEN 0 AND 10", REAL),
    ("s BETWEEN 1 AND 10", of("s", ["5", "11", " 1 ", "a", None])),
    ("ts BETWEEN '2024-01-01' AND '2024-12-31 23:59:59'", STAMPED),
    ("d BETWEEN ts AND n", [{"d": ON[2], "ts": AT[1], "n": AT[2]}, {"d": ON[3], "ts": AT[2], "n": AT[2]}]),
    ("x IN (0, 3, -7)", WHOLE),
    ("x IN (1, NULL)", WHOLE),
    ("x NOT IN (1, 3)", WHOLE),
    ("x IN ('1', 3)", WHOLE),
    ("s IN ('a', '', 'É_%')", WORDS),
    ("s IN (1, 2)", of("s", ["1", " 2 ", "3", "a", None])),
    ("f IN (0, 1.5e0)", REAL),
    ("ts IN ('1970-01-01', '2024-02-29 10:30:05.25')", STAMPED),
    *((f"{column} IS NULL", rows) for column, rows in (("x", WHOLE), ("f", REAL), ("s", WORDS), ("ts", STAMPED))),
    ("x IS NOT NULL", WHOLE),
    *((f"b IS {word}", of("b", BOOLS)) for word in ("TRUE", "FALSE", "NOT TRUE", "NOT FALSE", "NULL")),
    # logic
    *((f"b {o} c", grid(b=BOOLS, c=BOOLS)) for o in ("AND", "OR")),
    ("NOT b", of("b", BOOLS)),
    ("b AND NULL", of("b", BOOLS)),
    ("x <> 0 AND 10 / x > y", TRIPLES),
    ("x = 0 OR 10 % x > y", TRIPLES),
    # texts
    *((f"{f}(s)", WORDS) for f in ("upper", "lower", "length", "trim", "ltrim", "rtrim")),
    *((f"{f}(x)", WHOLE) for f in ("upper", "length", "trim")),
    ("length(f)", REAL),
    ("trim(BOTH 'xy' FROM s)", WORDS),
    ("trim(LEADING 'xy' FROM s)", WORDS),
    ("trim(TRAILING '' FROM s)", WORDS),
    ("ltrim('x', s)", WORDS),
    ("s || '-' || u", grid(s=["a", "", None], u=["b", None])),
    ("x || 'a'", WHOLE),
    ("concat(s, x, f, b)", [{"s": "a", "x": 1, "f": 1e10, "b": True}, {"s": None, "x": 1, "f": 0.5, "b": False}]),
    ("concat(ts, ' ', n, ' ', d)", [{"ts": AT[2], "n": AT[1], "d": ON[3]}]),
    ("f || ''", REAL),
    *((f"substring(s, {n})", WORDS) for n in (0, 1, 2, -1, -2, 9, -9)),
    *((f"substring(s, {n}, {k})", WORDS) for n in (0, 2, -2, -9) for k in (0, 1, 3, -1, 2147483647)),
    ("substring(s, x, y)", [{"s": "héllo", "x": x, "y": y} for x in (0, 2, -3, None) for y in (2, -1, None)]),
    ("substring(x, 1, 2)", WHOLE),
    *((f"s {like} '{p}'", WORDS) for like in ("LIKE", "ILIKE") for p in ("a%", "%b%", "a_b", "", "%", "É%", "x.*")),
    *(
        (f"s ILIKE '{p}'", of("s", ["\u0130", "\u017f", "\u03c3", "\u212a", "ẞ", "ß", "I"]))
        for p in ("i", "s", "\u03c2", "k", "ß", "_")
    ),
    (r"s LIKE '%\_\%'", WORDS),
    (r"s LIKE '10\%'", WORDS),
    ("s NOT LIKE 'a%'", WORDS),
    ("x LIKE '%7%'", WHOLE),
    # choice
    ("CASE WHEN x > 0 THEN 'p' WHEN x < 0 THEN 'm' END", WHOLE),
    ("CASE WHEN x > 0 THEN x ELSE f END", grid(x=[1, 0, None], f=[1.5, NAN, None])),
    ("CASE x WHEN 1 THEN 'one' WHEN '3' THEN 'three' ELSE 'other' END", WHOLE),
    ("CASE WHEN b THEN d ELSE ts END", grid(b=BOOLS, d=[ON[3]], ts=[AT[2], None])),
    ("CASE WHEN b THEN x ELSE s END", grid(b=BOOLS, x=[1], s=["7", "a"])),
    ("CASE WHEN x <> 0 THEN 10 / x ELSE -1 END", of("x", [0, 4, None])),
    ("CASE WHEN b THEN 1 / 0 ELSE 2 END", of("b", BOOLS)),
    ("if(x > y, x, y)", PAIRS),
    ("if(b, x + 1, y)", grid(b=BOOLS, x=[MAX, 1], y=[5])),
    ("coalesce(x, y, 0)", PAIRS),
    ("coalesce(x, f)", grid(x=[1, None], f=[1.5, None])),
    ("coalesce(x, CAST(s AS BIGINT))", grid(x=[1, None], s=["2", "a", None])),
    ("coalesce(d, ts)", grid(d=[ON[2], None], ts=[AT[1], None])),
    ("nvl(s, 'none')", WORDS),
    ("nullif(x, y)", PAIRS),
    ("nullif(f, g)", REALS),
    ("nullif(x, '1')", WHOLE),
    ("10 / nullif(x, 0)", WHOLE),
    *((f"{f}(x, y, 1)", PAIRS) for f in ("greatest", "least")),
    *((f"{f}(f, g)", REALS) for f in ("greatest", "least")),
    *((f"{f}(x, f)", grid(x=[1, None], f=[0.5, NAN, None])) for f in ("greatest", "least")),
    *((f"{f}(ts, n, d)", MIXED) for f in ("greatest", "least")),
    *((f"{f}(s, 'b', 'É')", WORDS) for f in ("greatest", "least")),
    # time
    *((f"ts {o} INTERVAL {n}", STAMPED[:4]) for o in "+-" for n in LENGTHS),
    *((f"d {o} INTERVAL {n}", DATED[:4]) for o in "+-" for n in LENGTHS),
    *((f"n {o} INTERVAL {n}", NAIVE[:4]) for o in "+-" for n in LENGTHS),
    ("INTERVAL '1' HOUR + ts", STAMPED[:4]),
    ("INTERVAL '1' DAY + d", DATED[:4]),
    ("ts + INTERVAL '-1' SECOND", STAMPED[:4]),
    ("ts + INTERVAL '2 hours'", STAMPED[:4]),
    ("ts - INTERVAL '1' HOUR * 3", STAMPED[:4]),
    ("ts + (INTERVAL '1' HOUR - INTERVAL '1' DAY)", STAMPED[:4]),
    ("-INTERVAL '1' HOUR + ts", STAMPED[:4]),
    ("INTERVAL '24' HOURS = INTERVAL '1' DAY", ONE),
    ("abs(INTERVAL '-1' HOUR)", ONE),
    ("try_add(ts, INTERVAL 1 DAY)", STAMPED[:4]),
    ("d + i", grid(d=ON[:3], i=[0, 5, -400, None])),
    ("d - 1", DATED[:4]),
    ("1 + d", DATED[:4]),
    ("ts - tt", grid(ts=FEW_TIMES, tt=FEW_TIMES)),
    ("ts - n", INSTANTS),
    ("d - e", grid(d=ON[:3], e=ON[1:4])),
    ("d - ts", grid(d=ON[:3], ts=FEW_TIMES)),
    *((f"date_trunc('{u}', {c})", rows) for u in UNITS for c, rows in TIMED),
    ("date_trunc('hour', s)", of("s", ["2024-01-02 03:04:05", "x", None])),
    *((f"{u}({c})", rows) for u in FIELDS for c, rows in TIMED),
    *((f"{u}(s)", of("s", ["2024-03-04 05:06:07", "2024", "x", None])) for u in (*FIELDS, "dayofmonth")),
    *((f"extract({u} FROM {c})", rows) for u in FIELDS for c, rows in TIMED),
    *((f"to_date({c})", rows) for c, rows in (*TIMED, ("s", of("s", DAYS)))),
    # types
    *((f"CAST({c} AS {t})", rows) for t in CAST_TO for c, rows in EVERYTHING),
    *((f"CAST(s AS {t})", of("s", NUMBERS)) for t in ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")),
    *((f"TRY_CAST(s AS {t})", of("s", NUMBERS)) for t in ("TINYINT", "INT", "BIGINT", "DOUBLE")),
    ("CAST(s AS BOOLEAN)", of("s", TRUTHS)),
    ("CAST(s AS DATE)", of("s", DAYS)),
    ("CAST(s AS TIMESTAMP)", of("s", STAMPS)),
    ("TRY_CAST(s AS TIMESTAMP)", of("s", STAMPS)),
    ("CAST(s AS TIMESTAMP_NTZ)", of("s", STAMPS)),
    ("CAST(f AS TIMESTAMP)", of("f", [9223372036854.775807, -9223372036854.775808, 9223372036855.0])),
    ("CAST(CAST(f AS STRING) AS DOUBLE) = f", REAL),
    ("s::int", of("s", ["1", "x"])),
    ("x::string", WHOLE),
    ("TRY_CAST(x AS TINYINT)", WHOLE),
    ("TRY_CAST(f AS INT)", REAL),
    ("CAST(NULL AS INT)", ONE),
    ("DATE '2024-02-29'", ONE),
    ("TIMESTAMP '2024-02-29 10:00:00.5'", ONE),
    ("TRUE", ONE),
    ("NULL", ONE),
    ("'text'", ONE),
    ("5L", ONE),
    ("1.5D", ONE),
]

# Where Windrow is not as Spark, and the reference says so.
DIFFERENT = [
    ("x + s", [{"x": None, "s": "a"}], "all operands are evaluated, though one of them is NULL"),
    ("j + j", of("j", [127]), "integers are computed in 64 bits"),
    ("i * i", of("i", [2**31 - 1]), "integers are computed in 64 bits"),
    ("abs(j)", of("j", [-128]), "integers are computed in 64 bits"),
    ("0.1 + 0.2 = 0.3", ONE, "a literal with a point is a double"),
    ("x + 1.5", ONE, "a literal with a point is a double"),
    ("d = '2024-02-29 10:00:00'", of("d", [ON[2]]), "a literal with a time of day is no date"),
    ("x = 'abc'", of("x", [None]), "a literal that is no number is found before any row is read"),
    ("d + x", grid(d=[ON[2]], x=[1]), "days can be of any integer type"),
    ("ts + INTERVAL '1.5' HOUR", of("ts", [AT[2]]), "every unit can have a fraction"),
    ("INTERVAL '1' HOUR * f", of("f", [1.5]), "intervals are multiplied by integers only"),
    ("INTERVAL '1' HOUR / 2", ONE, "intervals are not divided"),
    ("CAST(ts - ts AS BIGINT)", of("ts", [AT[2]]), "intervals are not cast"),
    ("s + INTERVAL '1' DAY", of("s", ["2024-01-01"]), "a text in arithmetic is a number"),
    ("b AND s", grid(b=[True], s=["true"]), "a text is no condition"),
    ("x IN (y)", grid(x=[1], y=[1]), "IN takes literals"),
    ("s LIKE u", grid(s=["a"], u=["a"]), "LIKE takes a literal"),
    ("date_trunc('year', ts)", of("ts", [AT[2]]), "date_trunc goes up to weeks"),
    ("extract(week FROM ts)", of("ts", [AT[2]]), "extract knows six fields"),
    ("CAST(x AS DECIMAL(10, 2))", ONE, "there is no cast to decimals"),
    ("CAST(s AS TIMESTAMP)", of("s", ["10:00:00"]), "nothing reads a clock"),
    ("CAST(s AS DOUBLE)", of("s", ["0x1p3"]), "hexadecimal floats are no numbers"),
]


def answers():
    """Spark's, case by case: its type, and the value of each row."""
    return json.loads(FILE.read_text())


def encoded(values):
    """A column as texts that can be compared and stored: instants and intervals in microseconds, dates in days."""
    values = values.to_physical() if values.dtype.is_temporal() else values
    return [None if v is None else repr(v) if isinstance(v, float) else str(v) for v in values]
