"""The oracle's expressions: what Spark gave for them, and the translation that queries run with, drawn at random."""

import math
import sys
from pathlib import Path

import polars as pl
import pytest

from windrow.errors import ResultError
from windrow.logical.expressions import parse, resolve
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.values import column, rows_of_frame

sys.path.append(str(Path(__file__).parents[1] / "logical"))
from spark_cases import CASES, FAILS, REFUSED, SCHEMA, answers, encoded

ROUNDED = ("sqrt", "exp", "ln", "pow")  # libraries differ in the last bit
ANSWERED = [n for n in range(len(CASES)) if answers()[n][1] != REFUSED]


def values(text, rows):
    """The values of the oracle as texts, FAILS where a row has none."""
    cell = evaluate(resolve(parse(text), SCHEMA, text), SCHEMA)
    found = []
    for row in rows_of_frame(pl.DataFrame(rows, schema=SCHEMA)):
        try:
            found += encoded(column("", [cell.of(row)], cell.dtype))
        except ResultError:
            found.append(FAILS)
    return found


def same(text, ours, theirs):
    if ours == theirs or not any(f"{f}(" in text for f in ROUNDED) or FAILS in (ours, theirs) or None in (ours, theirs):
        return ours == theirs
    return math.isclose(float(ours), float(theirs), rel_tol=1e-15)


@pytest.mark.parametrize("number", ANSWERED, ids=[CASES[n][0] for n in ANSWERED])
def test_an_expression_gives_what_spark_gives(number):
    text, rows = CASES[number]
    _, _, expected = answers()[number]
    found = values(text, rows)
    assert [(r, a, b) for r, a, b in zip(rows, found, expected, strict=True) if not same(text, a, b)] == []
