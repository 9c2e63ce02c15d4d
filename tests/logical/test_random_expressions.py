"""Random expressions of integers against an evaluator that takes one row at a time, in Python's unlimited integers.

It would have found that arithmetic wrapped around (issue 11), and finds branches that fail for rows that need them not.
"""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import ResultError
from windrow.logical.expressions import parse, translate

SCHEMA = {"x": pl.Int64(), "y": pl.Int64()}
MIN, MAX = -(2**63), 2**63 - 1
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([MIN, MIN + 1, -(2**32), 2**31, 2**62, MAX - 1, MAX]))
ROWS = st.lists(st.fixed_dictionaries({c: st.one_of(st.none(), NUMBERS) for c in SCHEMA}), min_size=1, max_size=6)


class BeyondError(Exception):
    """There is no value."""


def fitting(value):
    if not MIN <= value <= MAX:
        raise BeyondError
    return value


def cut_off(a, b):
    if b == 0:
        raise BeyondError
    return fitting(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def remainder(a, b):
    if b == 0:
        raise BeyondError
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


CALCULATIONS = {
    "+": lambda a, b: fitting(a + b),
    "-": lambda a, b: fitting(a - b),
    "*": lambda a, b: fitting(a * b),
    "DIV": cut_off,
    "%": remainder,
}
COMPARISONS = {"<": lambda a, b: a < b, "=": lambda a, b: a == b, ">=": lambda a, b: a >= b}


def strict(compute, *operands):
    """NULL if one operand is. All are evaluated."""

    def of(row):
        values = [operand(row) for operand in operands]
        return None if None in values else compute(*values)

    return of


def lenient(compute, *operands):
    def of(row):
        values = [operand(row) for operand in operands]
        try:
            return None if None in values else compute(*values)
        except BeyondError:
            return None

    return of


def calculated(left, symbol, right):
    return f"({left[0]} {symbol} {right[0]})", strict(CALCULATIONS[symbol], left[1], right[1])


def tried(left, name, right):
    symbol = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_mod": "%"}[name]
    return f"{name}({left[0]}, {right[0]})", lenient(CALCULATIONS[symbol], left[1], right[1])


def chosen(test, yes, no):
    return (
        f"CASE WHEN {test[0]} THEN {yes[0]} ELSE {no[0]} END",
        lambda row: yes[1](row) if test[1](row) else no[1](row),
    )


def first(left, right):
    def of(row):
        value = left[1](row)
        return right[1](row) if value is None else value

    return f"coalesce({left[0]}, {right[0]})", of


def compared(left, symbol, right):
    return f"({left[0]} {symbol} {right[0]})", strict(COMPARISONS[symbol], left[1], right[1])


def connected(left, word, right):
    decided = word == "OR"

    def of(row):
        a = left[1](row)
        if a is decided:
            return decided
        b = right[1](row)
        return b if b is decided or a is not None else None

    return f"({left[0]} {word} {right[0]})", of


LEAVES = st.one_of(
    st.sampled_from([("x", lambda row: row["x"]), ("y", lambda row: row["y"])]),
    NUMBERS.map(lambda n: (str(n), lambda row: n)),
)


def larger(smaller):
    test = st.builds(compared, smaller, st.sampled_from(list(COMPARISONS)), smaller)
    tests = st.one_of(test, st.builds(connected, test, st.sampled_from(["AND", "OR"]), test))
    return st.one_of(
        st.builds(calculated, smaller, st.sampled_from(list(CALCULATIONS)), smaller),
        st.builds(tried, smaller, st.sampled_from(["try_add", "try_subtract", "try_multiply", "try_mod"]), smaller),
        st.builds(chosen, tests, smaller, smaller),
        st.builds(first, smaller, smaller),
        smaller.map(lambda e: (f"(- {e[0]})", strict(lambda a: fitting(-a), e[1]))),
        smaller.map(lambda e: (f"abs({e[0]})", strict(lambda a: fitting(abs(a)), e[1]))),
    )


def values(text, rows):
    expr = translate(parse(text), SCHEMA)
    return pl.DataFrame(rows, schema=SCHEMA).with_columns(found=expr)["found"].to_list()


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.recursive(LEAVES, larger, max_leaves=8), ROWS)
def test_an_expression_gives_its_value_or_raises_for_a_row_that_needs_what_it_has_not(expression, rows):
    text, of = expression
    expected = []
    for row in rows:
        try:
            expected.append((row, of(row)))
        except BeyondError:
            with pytest.raises(ResultError):
                values(text, [row])
    if len(expected) < len(rows):
        with pytest.raises(ResultError):
            values(text, rows)
    if expected:
        assert values(text, [row for row, _ in expected]) == [value for _, value in expected]
