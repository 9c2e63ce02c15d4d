"""Spark's own batch ASOF JOIN as an opinion on ours: ties, NULL keys, all operators, and a condition in ON."""

import random

import polars as pl
import pytest
from sqlglot import exp

from test_asof_opinions import LEFT, OPERATORS, RIGHT, query, rows
from windrow.testing import compare, oracle

SWITCH = "spark.sql.join.asofJoin.enabled"
CONDITION = "x < y + 3"


def asked(operator, how, condition):
    kind = "LEFT ASOF" if how == "left" else "ASOF"
    more = f" AND {condition}" if condition else ""
    names = "x, l.t AS t, l.k AS k, z, u, y"
    return f"SELECT {names} FROM l {kind} JOIN r MATCH_CONDITION (l.t {operator} r.u) ON l.k = r.k{more}"


@pytest.mark.spark
def test_spark_takes_the_same_rows(spark):
    """Its rule for rows with equal times: the last one for >=, the first one for <=, in the order of the partition.

    One partition in the order of all columns is what the join needs, so Spark sorts nothing again.
    """
    rng = random.Random(14)
    left, right = rows(rng, LEFT, 60, 20), rows(rng, RIGHT, 60, 20)
    frames = {"l": left, "r": right.rename({"t": "u"})}
    for name, frame in frames.items():
        data = spark.createDataFrame(frame.to_arrow()).coalesce(1)
        order = ("k", "t", "x") if name == "l" else ("k", "u", "z", "y")
        data.sortWithinPartitions(*order).createOrReplaceTempView(name)
    before = spark.conf.get(SWITCH)
    spark.conf.set(SWITCH, "true")
    try:
        for (strategy, exact), operator in OPERATORS.items():
            for how in ("left", "inner"):
                for condition in (None, CONDITION):
                    theirs = pl.from_arrow(spark.sql(asked(operator, how, condition)).toArrow())
                    where = None if condition is None else exp.maybe_parse(condition, dialect="spark")
                    ours = query(left, right, strategy=strategy, exact=exact, how=how, where=where, tolerance=1000)
                    for who, answer in (("oracle", oracle(ours)), ("engine", ours.collect())):
                        compare(answer, theirs.select(answer.columns), f"{who}: {operator}, {how}, {condition}")
    finally:
        spark.conf.set(SWITCH, before)
        for name in frames:
            spark.catalog.dropTempView(name)
