"""Random expressions of all types: the oracle's values against those of the translation that queries run with."""

import datetime as dt
import math
import os

import polars as pl
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from windrow.errors import QueryError, ResultError
from windrow.logical.expressions import dtype_of, parse, translate
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.values import column, rows_of_frame, values_of

EXAMPLES = int(os.environ.get("WINDROW_EXAMPLES", "200"))  # more by hand: WINDROW_EXAMPLES=20000
SCHEMA = {
    "x": pl.Int64(),
    "i": pl.Int16(),
    "f": pl.Float64(),
    "r": pl.Float32(),
    "m": pl.Decimal(10, 2),
    "s": pl.String(),
    "b": pl.Boolean(),
    "d": pl.Date(),
    "ts": pl.Datetime("us", "UTC"),
    "n": pl.Datetime("us"),
}
STAMPS = st.sampled_from(
    [None, dt.datetime(1969, 12, 31, 23, 59, 59, 5), dt.datetime(2024, 2, 29, 12), dt.datetime(1, 1, 1)]
)
ROW = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, 0, 1, -7, 10, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]),
        "i": st.sampled_from([None, 0, 3, -1, 32767, -32768]),
        "f": st.sampled_from([None, 0.0, -0.0, 1.5, -2.5, 0.285, 1e20, math.nan, math.inf, -math.inf]),
        "r": st.sampled_from([None, 0.0, 0.5, -2.25, math.nan]),
        "m": st.sampled_from([None, 0, 1, -3]),
        "s": st.sampled_from(
            [None, "", "a", "Ab ", "7", " 1.5", "true", "2024-02-29", "2024-02-29 12:30:00", "-1e3", "É%"]
        ),
        "b": st.sampled_from([None, True, False]),
        "d": st.sampled_from([None, dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
        "ts": STAMPS,
        "n": STAMPS,
    }
)
LEAVES = [*SCHEMA, "NULL", "0", "1", "-3", "2.5", "1e3", "TRUE", "'7'", "'a'", "'2024-03-01'", "INTERVAL '90' MINUTES"]
LEAVES += ["INTERVAL 2 DAYS", "DATE '2024-01-31'", "TIMESTAMP '2024-01-31 10:00:00'", "9223372036854775807"]
UNARY = [
    "-({})",
    "abs({})",
    "floor({})",
    "ceil({})",
    "round({})",
    "round({}, 1)",
    "round({}, -1)",
    "sqrt({})",
    "NOT ({})",
]
UNARY += ["({}) IS NULL", "({}) IS NOT TRUE", "upper({})", "lower({})", "length({})", "trim({})", "substring({}, 2)"]
UNARY += ["substring({}, -2, 1)", "({}) LIKE '%a_'", "({}) IN (1, 3, NULL)", "({}) IN ('a', '7')", "to_date({})"]
UNARY += [
    "year({})",
    "month({})",
    "hour({})",
    "extract(second FROM {})",
    "date_trunc('hour', {})",
    "date_trunc('week', {})",
]
UNARY += [
    f"{cast}({{}} AS {t})" for cast in ("CAST", "TRY_CAST") for t in ("INT", "BIGINT", "DOUBLE", "STRING", "BOOLEAN")
]
UNARY += [f"TRY_CAST({{}} AS {t})" for t in ("TINYINT", "FLOAT", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")]
BINARY = [f"({{}}) {symbol} ({{}})" for symbol in ("+", "-", "*", "/", "%", "DIV", "AND", "OR", "||", "<=>")]
BINARY += [f"({{}}) {symbol} ({{}})" for symbol in ("=", "<>", "<", "<=", ">", ">=")]
BINARY += [f"{name}({{}}, {{}})" for name in ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod")]
BINARY += [f"{name}({{}}, {{}})" for name in ("coalesce", "nullif", "greatest", "least", "concat")]
TERNARY = ["CASE WHEN {} THEN {} ELSE {} END", "CASE {} WHEN {} THEN {} END", "if({}, {}, {})"]
TERNARY += ["({}) BETWEEN ({}) AND ({})", "coalesce({}, {}, {})"]


def larger(smaller):
    made = [(UNARY, 1), (BINARY, 2), (BINARY, 2), (TERNARY, 3)]
    return st.one_of(*(st.builds(str.format, st.sampled_from(forms), *[smaller] * n) for forms, n in made))


def fits(text):
    """Whether a query can have this expression."""
    try:
        return dtype_of(parse(text), SCHEMA)
    except QueryError:
        return None


def known(values, dtype):
    """Values as texts, so that NaN equals itself and 0.0 is not -0.0."""
    return [None if v is None else repr(float(v)) if dtype.is_float() else str(v) for v in values]


def close(text, ours, theirs):
    if ours == theirs or None in (ours, theirs) or "sqrt" not in text:
        return ours == theirs
    return ours == theirs or math.isclose(float(ours), float(theirs), rel_tol=1e-15)


@settings(deadline=None, derandomize="WINDROW_EXAMPLES" not in os.environ, max_examples=EXAMPLES)
@given(st.recursive(st.sampled_from(LEAVES), larger, max_leaves=5), st.lists(ROW, min_size=1, max_size=4))
def test_the_oracle_and_the_translation_agree_on_types_values_and_errors(text, rows):
    dtype = fits(text)
    assume(dtype is not None)
    tree = parse(text)
    cell = evaluate(tree, SCHEMA)
    assert cell.dtype == dtype
    for row in rows:
        frame = pl.DataFrame([row], schema=SCHEMA)
        try:
            theirs = known(values_of(frame.with_columns(found=translate(tree, SCHEMA))["found"]), dtype)
        except ResultError:
            theirs = ["no value"]
        try:
            ours = known(values_of(column("", [cell.of(rows_of_frame(frame)[0])], dtype)), dtype)
        except ResultError:
            ours = ["no value"]
        assert close(text, ours[0], theirs[0]), (text, row, ours, theirs)
