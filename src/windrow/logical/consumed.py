"""The parser's tree, checked as a whole: a part that nothing here consumes is an error that underlines it.

sqlglot reads far more SQL than Windrow runs, and stores what it read in arguments of its nodes. The code that builds a
plan looks at the arguments that it knows; without this check the others would be accepted and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from windrow.errors import QueryError, underline
from windrow.logical.reading import SparkSql, place, written

Known = Mapping[type[exp.Expr], Collection[str]]
OPERANDS = frozenset({"this", "expression", "expressions"})  # what a class without an entry has
# What the translation of expressions consumes. Some arguments the parser sets by itself, whatever was written: safe,
# coalesce and the like say how other dialects differ.
EXPRESSIONS: Known = {
    exp.Between: {"this", "low", "high", "symmetric"},
    exp.Case: {"this", "ifs", "default"},
    exp.Cast: {"this", "to", "safe"},
    exp.TryCast: {"this", "to", "safe", "requires_string"},
    exp.Coalesce: {"this", "expressions", "is_nvl", "is_null"},
    exp.Column: {"this", "table", "db", "catalog"},  # whether a table is the right one, the resolution says
    exp.Concat: {"expressions", "safe", "coalesce"},
    exp.DataType: {"this", "expressions", "nested"},
    exp.Div: {"this", "expression", "typed", "safe"},
    exp.DPipe: {"this", "expression", "safe"},
    exp.Ceil: {"this"},
    exp.Floor: {"this"},
    exp.Length: {"this"},
    exp.In: {"this", "expressions", "query"},
    exp.Is: {"this", "expression", "negate"},
    exp.Greatest: {"this", "expressions", "ignore_nulls"},
    exp.Least: {"this", "expressions", "ignore_nulls"},
    exp.Identifier: {"this", "quoted"},
    exp.If: {"this", "true", "false"},
    exp.Interval: {"this", "unit", "fraction_in_string"},
    exp.Like: {"this", "expression", "negate"},
    exp.ILike: {"this", "expression", "negate"},
    exp.Literal: {"this", "is_string"},
    exp.Round: {"this", "decimals", "casts_non_integer_decimals"},
    exp.Substring: {"this", "start", "length"},
    exp.TimestampTrunc: {"this", "unit", "input_type_preserved"},
    exp.Trim: {"this", "expression", "position"},
    exp.TsOrDsToDate: {"this", "format", "safe"},
}
NEEDED: Known = {exp.Substring: ("start",)}  # what sqlglot can do without, and the translation cannot
SIZED = (exp.DType.DECIMAL, exp.DType.ARRAY, exp.DType.STRUCT, exp.DType.MAP)
WORDS = {  # arguments without a place of their own in the text: how they are written
    (exp.Cast, "format"): "FORMAT",
    (exp.TryCast, "format"): "FORMAT",
    (exp.Trim, "collation"): "COLLATE",
}


def check(tree: exp.Expr, sql: str | None, known: Known = EXPRESSIONS, words: Mapping[Any, str] = WORDS) -> None:
    """Refuse the first argument of a node that is not among the ``known`` ones of its class.

    Classes that are not in ``known`` are left to the code that builds the plan, which refuses what it does not know.
    ``words``: regular expressions that find an argument in the text, where it has no place of its own.
    """
    for node in tree.walk():
        if isinstance(node, exp.Literal) and node.is_int and int(node.name) > _most(node):
            raise fail_at(place(node), f"{node.name} is beyond 64 bits: write it with a dot for a double", sql)
        if missing := [n for n in NEEDED.get(type(node), ()) if node.args.get(n) is None]:
            raise fail_at(place(node), f"{written(node, sql)} needs more arguments: {', '.join(missing)}", sql)
        allowed = _allowed(node, known)
        for name, value in node.args.items() if allowed is not None else ():
            if name not in (allowed or ()) and _is_set(value, type(node), name):
                raise _unread(node, name, value, sql, words)


def _most(literal: exp.Literal) -> int:
    """The greatest whole number: after a minus there is one more."""
    return 2**63 if isinstance(literal.parent, exp.Neg) else 2**63 - 1


def _allowed(node: exp.Expr, known: Known) -> Collection[str] | None:
    if isinstance(node, exp.DataType) and node.this not in SIZED:  # VARCHAR(2) and TIMESTAMP(3) would be cut off
        return {"this", "nested"}
    return known.get(type(node))


def _is_set(value: Any, kind: type[exp.Expr], name: str) -> bool:
    if kind is exp.Group and name == "all":  # false: GROUP BY DISTINCT
        return value is not None
    return value is not None and value is not False and value != []


def _unread(node: exp.Expr, name: str, value: Any, sql: str | None, words: Mapping[Any, str]) -> QueryError:
    """What it is in the words of the query, underlined."""
    values = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
    places = [p for v in values if (p := place(v)) is not None]
    pattern = words.get((type(node), name)) or words.get(name)
    if sql is not None and pattern is not None and (found := find(pattern, sql, place(node))) is not None:
        what = re.sub(r"\s+", " ", sql[found[0] : found[1] + 1]).upper()
        end = max([found[1], *(p[1] for p in places)])
        return QueryError(f"{what} is not supported\n{underline(sql, found[0], end)}")
    around = f" in {written(node, sql)}" if place(node) is not None else ""
    if not places:
        return fail_at(place(node), f"{written(node, sql)} is not supported", sql)
    message = f"{written(values[0], sql)} is not supported{around}"
    return fail_at((min(p[0] for p in places), max(p[1] for p in places)), message, sql)


def fail_at(found: tuple[int, int] | None, message: str, sql: str | None) -> QueryError:
    return QueryError(message if sql is None or found is None else f"{message}\n{underline(sql, *found)}")


def find(pattern: str, sql: str, near: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Where words of SQL stand: the first from a place on, or else the last before it."""
    found = [(m.start(), m.end() - 1) for m in re.finditer(rf"\b(?:{pattern})", masked(sql), re.IGNORECASE)]
    after = [f for f in found if near is None or f[0] >= near[0]]
    return after[0] if after else found[-1] if found else None


def masked(sql: str) -> str:
    """The text with blanks instead of texts, quoted names and comments, so that a word that is found is one of SQL.

    >>> masked("SELECT 'WITH' -- WITH")
    'SELECT               '
    """
    found = [" "] * len(sql)
    for token in SparkSql().tokenize(sql):
        if token.token_type not in (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER, TokenType.HINT):
            found[token.start : token.end + 1] = sql[token.start : token.end + 1]
    return "".join(found)
