"""Spark's answers to the expressions of the reference: those we compare with are the ones it gives (issue 11)."""

import datetime as dt
import itertools
import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

import windrow as wr
from windrow.hosts.spark.schema import to_dataframe

sys.path.append(str(Path(__file__).parents[2] / "logical"))
from spark_cases import CASES, DIFFERENT, FAILS, FILE, REFUSED, SCHEMA, SPARK_TYPES, answers, encoded

pytestmark = pytest.mark.spark
ALL = [*CASES, *((text, rows) for text, rows, _ in DIFFERENT)]
AT_ONCE = 25
TIME_ALONE = [{"s": "10:00:00"}]
NUMBERS = {
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST({} AS TIMESTAMP))",
    "date": "unix_date({})",
}


def literal(value, column):
    """A value as SQL text, of the type of its column."""
    kind = SPARK_TYPES[SCHEMA[column]]
    if value is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(value, dt.datetime):
        value = value.isoformat(sep=" ")
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'" if kind == "STRING" else f"CAST('{text}' AS {kind})"


def table(spark, rows):
    values = ", ".join(f"({', '.join(literal(v, c) for c, v in row.items())})" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {values} AS t({', '.join(rows[0])})")


def tried(spark, text, name):
    """The value in a struct, which is NULL where Spark raises: so one query gives the values and errors of all rows.

    SQL has no such function; try_add and others are made of this expression.
    """
    from pyspark.sql.classic.column import Column

    jvm = spark._jvm.org.apache.spark.sql
    inner = jvm.classic.ExpressionUtils.expression(jvm.functions.expr(f"named_struct('v', {text})"))
    return Column(jvm.classic.ExpressionUtils.column(jvm.catalyst.expressions.TryEval(inner))).alias(name)


def kinds(frame, texts):
    """The type of each expression; None if Spark refuses one of them."""
    try:
        fields = frame.selectExpr(*(f"{text} AS v{i}" for i, text in enumerate(texts))).schema
    except (AnalysisException, ParseException, IllegalArgumentException):
        return None
    return [field.dataType.simpleString() for field in fields]


def answered(spark, texts, rows):
    """What Spark says to these expressions over these rows."""
    frame = table(spark, rows)
    found = kinds(frame, texts)
    if found is None and len(texts) > 1:
        return [answer for text in texts for answer in answered(spark, [text], rows)]
    if found is None:
        return [[texts[0], REFUSED, []]]
    plain = [NUMBERS.get(kind, "{}").format(f"({text})") for text, kind in zip(texts, found, strict=True)]
    values = frame.select(*(tried(spark, text, f"v{i}") for i, text in enumerate(plain))).collect()
    columns = [column(kind, [row[i] for row in values]) for i, kind in enumerate(found)]
    return [list(answer) for answer in zip(texts, found, columns, strict=True)]


def column(kind, structs):
    dtype = pl.Duration("us") if kind.startswith("interval") else None
    known = encoded(pl.Series([s.v for s in structs if s is not None], dtype=dtype, strict=False))
    values = iter(known)
    return [FAILS if s is None else next(values) for s in structs]


def test_spark_gives_what_we_compare_with(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = []
    try:
        for _, cases in itertools.groupby(ALL, key=lambda case: repr(case[1])):
            for some in chunks(list(cases)):
                found += answered(spark, [text for text, _ in some], some[0][1])
        found = [timeless(entry, given) for entry, (_, given) in zip(found, ALL, strict=True)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        if os.environ.get("WINDROW_WRITE"):
            FILE.write_text("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in found) + "\n]\n")
    assert found == answers()


def timeless(entry, given):
    """A text that is a time alone is that time of today: the answer must not change at midnight."""
    return [*entry[:2], ["today"]] if given == TIME_ALONE and entry[2] else entry


def chunks(cases):
    return [cases[i : i + AT_ONCE] for i in range(0, len(cases), AT_ONCE)]


def test_what_can_fail_travels_to_the_workers_and_fails_there_as_here(spark):
    rows = pl.DataFrame({"t": [1, 2], "x": [1, 2**63 - 1], "s": ["1", "a"]})
    s = wr.stream(to_dataframe(spark, rows), progress="t", name="s")
    guarded = s.select("t", v="CASE WHEN x < 5 THEN x + CAST(s AS INT) END")
    assert sorted(tuple(row) for row in guarded.to_spark().collect()) == [(1, 2), (2, None)]
    with pytest.raises(PySparkException, match="x \\+ 1 does not fit into 64 bits, for 9223372036854775807, 1"):
        s.select("t", v="x + 1").to_spark().collect()
