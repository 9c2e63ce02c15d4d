"""Comparison, logic and choice. What is not asked for a row cannot fail for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.logical.scalar import functions
from windrow.logical.scalar.strict import Both, Choice, First, applied, sheltered
from windrow.logical.scalar.translator import Translator, operands
from windrow.logical.scalar.types import (
    BOOLEAN,
    Refused,
    Typed,
)


def compared(t: Translator, compute: Callable[[pl.Expr, pl.Expr], pl.Expr], node: exp.Expr) -> Typed:
    return comparison(t, compute, node, node.this, node.args["expression"])


def comparison(
    t: Translator, compute: Callable[[pl.Expr, pl.Expr], pl.Expr], node: exp.Expr, left: exp.Expr, right: exp.Expr
) -> Typed:
    """Two values of one type."""
    a, b = t.alike(node, left, right, compared=True)
    return Typed(compute(a.expr, b.expr), BOOLEAN, a.fallible or b.fallible)


def in_(t: Translator, node: exp.Expr) -> Typed:
    items = node.args.get("expressions") or []
    if not items or any(not isinstance(i, (exp.Literal, exp.Neg, exp.Null)) for i in items):
        raise Refused(node, "IN takes a list of literals")
    value, *found = t.alike(node, node.this, *items, compared=True)
    tests = [value.expr == item.expr for item in found]
    return Typed(functions.any_of(tests), BOOLEAN, value.fallible)


def between(t: Translator, node: exp.Expr) -> Typed:
    if node.args.get("symmetric"):
        raise Refused(node, "BETWEEN SYMMETRIC is not supported")
    low = comparison(t, functions.ge, node, node.this, node.args["low"])
    high = comparison(t, functions.le, node, node.this, node.args["high"])
    return _both(low, high, False, node)


def is_(t: Translator, node: exp.Expr) -> Typed:
    this, other = t.of(node.this), node.args["expression"]
    if isinstance(other, exp.Null):
        return Typed(this.expr.is_null(), BOOLEAN, this.fallible)
    truth = t.condition(node.this, "IS TRUE and IS FALSE take conditions")
    return Typed(truth.expr.eq_missing(t.of(other).expr), BOOLEAN, truth.fallible)


def connected(t: Translator, decided: bool, node: exp.Expr) -> Typed:
    """AND, and OR: what the left side has decided the right side is not asked for."""
    sides = [t.condition(n, "AND, OR and NOT take conditions") for n in (node.this, node.args["expression"])]
    return _both(sides[0], sides[1], decided, node)


def _both(left: Typed, right: Typed, decided: bool, node: exp.Expr) -> Typed:
    if right.fallible:
        return sheltered(Both(left.expr, right.expr, decided), _columns(node), BOOLEAN)
    both = left.expr | right.expr if decided else left.expr & right.expr
    return Typed(both, BOOLEAN, left.fallible)


def _columns(node: exp.Expr) -> list[str]:
    return list(dict.fromkeys(c.name for c in node.find_all(exp.Column)))


def negated(t: Translator, node: exp.Expr) -> Typed:
    given = t.condition(node.this, "AND, OR and NOT take conditions")
    return Typed(~given.expr, BOOLEAN, given.fallible)


def case(t: Translator, node: exp.Expr) -> Typed:
    subject = node.args.get("this")
    tests, values = [], [branch.args["true"] for branch in node.args["ifs"]]
    for branch in node.args["ifs"]:
        test = branch.this
        if subject is None:
            tests.append(t.condition(test, "WHEN takes a condition"))
        else:
            tests.append(comparison(t, functions.eq, branch, subject, test))
    return _chosen(t, node, tests, values, node.args.get("default"))


def if_(t: Translator, node: exp.Expr) -> Typed:
    test = t.condition(node.this, "if() takes a condition")
    return _chosen(t, node, [test], [node.args["true"]], node.args.get("false"))


def _chosen(t: Translator, node: exp.Expr, tests: list[Typed], nodes: list[exp.Expr], other: exp.Expr | None) -> Typed:
    values = t.alike(node, *nodes, other if other is not None else exp.Null())
    dtype = values[0].dtype
    branches = [(t.expr, v.expr) for t, v in zip(tests, values, strict=False)]
    if any(v.fallible for v in (*tests[1:], *values)):
        return sheltered(Choice(tuple(branches), values[-1].expr, dtype), _columns(node), dtype)
    chain: Any = pl
    for test, value in branches:
        chain = chain.when(test).then(value)
    return Typed(chain.otherwise(values[-1].expr), dtype, tests[0].fallible)


def coalesce(t: Translator, node: exp.Expr) -> Typed:
    values = t.alike(node, *operands(node))
    dtype = values[0].dtype
    if any(v.fallible for v in values[1:]):
        return sheltered(First(tuple(v.expr for v in values), dtype), _columns(node), dtype)
    return Typed(pl.coalesce([v.expr for v in values]), dtype, values[0].fallible)


def nullif(t: Translator, node: exp.Expr) -> Typed:
    value, other = t.of(node.this), node.args["expression"]
    equal = comparison(t, functions.eq, node, node.this, other)
    return applied(functions.null_where, [value, equal], value.dtype)


def extreme(t: Translator, greatest: bool, node: exp.Expr) -> Typed:
    """greatest and least."""
    values = t.alike(node, *operands(node), promote=False)
    return applied(partial(functions.extreme, greatest), values, values[0].dtype)
