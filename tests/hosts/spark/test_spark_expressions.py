"""Spark's answers to the expressions of the reference: those we compare with are the ones it gives (issue 11)."""

import datetime as dt
import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[2] / "logical"))
from spark_cases import CASES, DIFFERENT, FAILS, FILE, REFUSED, SCHEMA, SPARK_TYPES, answers, encoded

pytestmark = pytest.mark.spark
WIDENED = {"timestamp": "unix_micros(v)", "timestamp_ntz": "unix_micros(CAST(v AS TIMESTAMP))", "date": "unix_date(v)"}


def literal(value, column):
    """A value as SQL text, of the type of its column."""
    kind = SPARK_TYPES[SCHEMA[column]]
    if value is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(value, dt.datetime):
        value = value.isoformat(sep=" ")
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'" if kind == "STRING" else f"CAST('{text}' AS {kind})"


def asked(spark, text, rows):
    values = ", ".join(f"({', '.join(literal(v, c) for c, v in row.items())})" for row in rows)
    return spark.sql(f"SELECT {text} AS v FROM VALUES {values} AS t({', '.join(rows[0])})")


def values(spark, text, rows):
    """The value of each row, FAILS where there is none."""
    from pyspark.errors import PySparkException

    query = asked(spark, text, rows)
    kind = query.schema[0].dataType.simpleString()
    try:
        found = [row[0] for row in query.selectExpr(f"{WIDENED.get(kind, 'v')} AS v").collect()]
    except PySparkException:
        return [FAILS] if len(rows) == 1 else [value for row in rows for value in values(spark, text, [row])]
    return encoded(pl.Series(found, dtype=pl.Duration("us") if kind.startswith("interval") else None, strict=False))


def answer(spark, text, rows):
    from pyspark.errors import AnalysisException, ParseException

    try:
        kind = asked(spark, text, rows[:1]).schema[0].dataType.simpleString()
    except (AnalysisException, ParseException):
        return [text, REFUSED, []]
    return [text, kind, values(spark, text, rows)]


def test_spark_gives_what_we_compare_with(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        found = [answer(spark, text, rows) for text, rows in [*CASES, *((text, rows) for text, rows, _ in DIFFERENT)]]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    if os.environ.get("WINDROW_WRITE"):
        FILE.write_text("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in found) + "\n]\n")
    assert found == answers()
