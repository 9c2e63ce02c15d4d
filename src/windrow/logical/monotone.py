"""Expressions that never give less for more: what a promise about a column says about them (Li 8.2, Apply)."""

from __future__ import annotations

from sqlglot import exp

KEEPING = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
    exp.DataType.Type.TIMESTAMPLTZ,
    exp.DataType.Type.TIMESTAMPNTZ,
    exp.DataType.Type.BIGINT,
)
TRUNCATIONS = (exp.TimestampTrunc, exp.DateTrunc, exp.Floor, exp.Ceil, exp.TsOrDsToDate, exp.Date)


def monotone(tree: exp.Expr, attribute: str | None) -> bool:
    """Whether an expression is of one column alone, and never smaller for a greater value of it.

    >>> from windrow.logical.expressions import parse
    >>> [monotone(parse(e), "ts") for e in ("ts + 5", "date_trunc('hour', ts)", "5 - ts", "ts + other")]
    [True, True, False, False]
    """
    match tree:
        case exp.Column():
            return attribute is not None and tree.name == attribute
        case exp.Paren():
            return monotone(tree.this, attribute)
        case exp.Cast():  # as text the order is another one
            return tree.to.this in KEEPING and monotone(tree.this, attribute)
        case exp.Add():
            return _moved(tree.this, tree.expression, attribute) or _moved(tree.expression, tree.this, attribute)
        case exp.Sub():
            return _moved(tree.this, tree.expression, attribute)
        case exp.Mul():
            return _scaled(tree.this, tree.expression, attribute) or _scaled(tree.expression, tree.this, attribute)
        case exp.IntDiv() | exp.Div():
            return _scaled(tree.this, tree.expression, attribute)
        case _ if isinstance(tree, TRUNCATIONS):
            return monotone(tree.this, attribute)
    return False


def _moved(tree: exp.Expr, by: exp.Expr, attribute: str | None) -> bool:
    return monotone(tree, attribute) and not list(by.find_all(exp.Column)) and not list(by.find_all(exp.Func))


def _scaled(tree: exp.Expr, by: exp.Expr, attribute: str | None) -> bool:
    positive = isinstance(by, exp.Literal) and not by.is_string and float(by.name) > 0
    return monotone(tree, attribute) and positive
