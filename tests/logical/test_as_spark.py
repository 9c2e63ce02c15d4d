"""Expressions give what Spark SQL (ANSI) gives: the same values, types and errors (issue 11)."""

import math
import re
from pathlib import Path

import polars as pl
import pytest
from spark_cases import CASES, DIFFERENT, FAILS, REFUSED, SCHEMA, answers, encoded
from sqlglot import exp

from windrow.errors import QueryError, ResultError
from windrow.logical.expressions import dtype_of, parse, resolve, translate
from windrow.logical.scalar.tables import HANDLERS
from windrow.logical.scalar.types import type_name

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "sql.md"
ROUNDED = ("sqrt", "exp", "ln", "pow")  # libraries differ in the last bit
WHOLE_TYPES = ("tinyint", "smallint", "int")
PLACEHOLDERS = {"x", "y", "n", "t", "unit", "field", "start", "length", "literals", "FROM", "types", "date"}


def evaluated(text, rows):
    """The type and the values here, FAILS where a row stops the query; REFUSED if the expression does."""
    try:
        node = resolve(parse(text), SCHEMA, text)
        dtype = dtype_of(node, SCHEMA, text)
    except QueryError:
        return REFUSED, []
    expr = translate(node, SCHEMA)
    try:
        return dtype, of_rows(rows, expr, dtype)
    except ResultError:
        return dtype, [value for row in rows for value in of_row(row, expr, dtype)]


def of_row(row, expr, dtype):
    try:
        return of_rows([row], expr, dtype)
    except ResultError:
        return [FAILS]


def of_rows(rows, expr, dtype):
    found = pl.DataFrame(rows, schema=SCHEMA).with_columns(found=expr)["found"]
    assert found.dtype == dtype
    return encoded(found)


def same_type(ours, theirs):
    if ours == REFUSED or theirs == REFUSED:
        return ours == theirs
    name = type_name(ours)
    known = {"Null": "void", "Decimal(precision=8, scale=6)": "decimal(8,6)"}.get(name, name)
    return known in (theirs, theirs.split()[0]) or (known == "bigint" and theirs in WHOLE_TYPES)


def same_value(text, ours, theirs):
    if ours == theirs or not any(f"{f}(" in text for f in ROUNDED) or FAILS in (ours, theirs) or None in (ours, theirs):
        return ours == theirs
    return math.isclose(float(ours), float(theirs), rel_tol=1e-15)


def differences(text, rows, kind, values):
    ours, found = evaluated(text, rows)
    if not same_type(ours, kind):
        yield f"the type is {ours}, and {kind} in Spark"
    elif kind != REFUSED:
        for row, here, there in zip(rows, found, values, strict=True):
            if not same_value(text, here, there):
                yield f"{row}: {here}, and {there} in Spark"


@pytest.mark.parametrize("number", range(len(CASES)), ids=[text for text, _ in CASES])
def test_an_expression_gives_what_spark_gives(number):
    text, rows = CASES[number]
    asked, kind, values = answers()[number]
    assert asked == text, "the answers are of other cases: write them anew"
    assert list(differences(text, rows, kind, values)) == []


@pytest.mark.parametrize("number", range(len(DIFFERENT)), ids=[text for text, _, _ in DIFFERENT])
def test_what_is_said_to_differ_from_spark_does(number):
    text, rows, _ = DIFFERENT[number]
    asked, kind, values = answers()[len(CASES) + number]
    assert asked == text
    assert list(differences(text, rows, kind, values)) != []


def test_every_operator_and_function_is_compared():
    nodes = {type(node) for text, _ in CASES for node in parse(text).walk()}
    nodes.add(exp.Cast)  # the parser makes TryCast of both
    assert [n.__name__ for n in HANDLERS if n not in nodes] == []


def test_every_name_in_the_reference_is_compared():
    section = next(p for p in REFERENCE.read_text().split("\n\n") if p.startswith("| kind | available |"))
    written = " ".join(re.findall(r"`([^`]+)`", section.replace("<code>&#124;&#124;</code>", "`||`")))
    names = set(re.findall(r"[A-Za-z_]+|[^\sA-Za-z_(),\[\]]+", written)) - PLACEHOLDERS
    texts = " ".join(text for text, _ in CASES).lower()
    assert len(names) > 60
    assert [name for name in sorted(names) if name.lower() not in texts] == []
