"""Which parts of a statement are supported: everything else that the parser found is refused, underlined."""

from __future__ import annotations

from types import NoneType

from sqlglot import exp

from windrow.logical import consumed
from windrow.logical.consumed import EXPRESSIONS, Known, fail_at, find
from windrow.logical.expressions import fail
from windrow.logical.nodes import How
from windrow.sql.trees import (
    CLAUSE,
    EMIT,
    KEYS,
    MATCHED,
    PAIRING,
    PUNCTUATED,
    UNIONED,
    WITHIN,
    PromiseArgument,
    PunctuatedBy,
    Seq,
    Step,
    WindowClause,
)
from windrow.sql.trees import WindowLength as Length

SIDES: dict[str, How] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
HALVES: tuple[How, ...] = ("semi", "anti")
ADDED = {CLAUSE, UNIONED, PUNCTUATED}
STATEMENT: Known = {
    exp.Select: {
        "expressions",
        "hint",
        "distinct",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        EMIT,
    },
    exp.Union: {"this", "expression", "distinct", "order", "limit"},
    exp.Subquery: {"this", "alias", "order", "limit", "joins", *ADDED},
    exp.From: {"this"},
    # which of them are possible, ``how`` knows
    exp.Join: {"this", "on", "using", "kind", "side", "method", MATCHED, PAIRING, WITHIN, KEYS},
    Seq: set(Seq.arg_types),
    Step: set(Step.arg_types),
    exp.Table: {"this", "alias", "joins", "db", "catalog", *ADDED},  # db.s is an unknown table, which is reported later
    exp.TableAlias: {"this", "columns"},
    exp.Paren: {"this", *ADDED},
    exp.Where: {"this"},
    exp.Group: {"expressions"},
    exp.Cube: (),
    exp.Rollup: (),
    exp.GroupingSets: (),
    exp.Having: {"this"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Limit: {"expression"},
    exp.Fetch: (),
    exp.Distinct: {"expressions", "on"},
    exp.Hint: {"expressions"},
    exp.Star: {"except_"},
    exp.Alias: {"this", "alias"},
    exp.Filter: {"this", "expression"},
    exp.IgnoreNulls: {"this"},
    WindowClause: set(WindowClause.arg_types),
    Length: set(Length.arg_types),
    PunctuatedBy: set(PunctuatedBy.arg_types),
    PromiseArgument: set(PromiseArgument.arg_types),
    # aggregates, where sqlglot knows more arguments than Windrow does
    exp.Count: {"this", "expressions", "big_int"},
    exp.ApproxDistinct: {"this"},
    exp.ApproxQuantile: {"this", "quantile"},
    exp.ArrayAgg: {"this", "nulls_excluded"},
    exp.Quantile: {"this", "quantile"},
    exp.Max: {"this"},
    exp.Min: {"this"},
    exp.Mode: {"this"},
    exp.First: {"this"},
    exp.Last: {"this"},
}
NAMES = (exp.Identifier, NoneType)
HOW: dict[str, How] = {"": "inner", "INNER": "inner", "CROSS": "inner"}
HOW |= {side + outer: kind for side, kind in SIDES.items() for outer in ("", " OUTER")}
HOW |= {left + kind.upper(): kind for kind in HALVES for left in ("", "LEFT ")}
NEAREST: dict[str, How] = {"": "inner", "INNER ": "inner", "LEFT ": "left", "LEFT OUTER ": "left"}
HOW |= {kind + word: how for kind, how in NEAREST.items() for word in ("ASOF", "FOLLOWING")}
AS_OF = r"(?:FOR\s+)?(?:SYSTEM_)?(?:VERSION|TIMESTAMP|TIME)\s+AS\s+OF"
WORDS = consumed.WORDS | {
    "by_name": r"BY\s+NAME",
    EMIT: r"EMIT\s+EARLY",
    "changes": "CHANGES",
    "cluster": r"CLUSTER\s+BY",
    "connect": r"START\s+WITH|CONNECT\s+BY",
    "cube": r"WITH\s+CUBE",
    "distribute": r"DISTRIBUTE\s+BY",
    "exclude": "EXCLUDE|EXCEPT",
    "for_": "FOR",
    "format": "FORMAT",
    "grouping_sets": r"GROUPING\s+SETS",
    "hints": "WITH|USE|FORCE|IGNORE",
    "ilike": "ILIKE",
    "indexed": r"(?:NOT\s+)?INDEXED(?:\s+BY)?",
    "into": "INTO",
    "kind": r"AS\s+(?:STRUCT|VALUE)|(?:LEFT|RIGHT|FULL|INNER|OUTER)\s+(?:OUTER\s+)?(?=UNION)",
    "laterals": r"LATERAL(?:\s+VIEW)?|CROSS\s+APPLY|OUTER\s+APPLY",
    "limit_options": r"PERCENT|WITH\s+TIES|ROWS?\s+ONLY|ONLY|ROWS?",
    "locks": r"FOR\s+(?:NO\s+KEY\s+UPDATE|KEY\s+SHARE|UPDATE|SHARE)|LOCK\s+IN\s+SHARE\s+MODE",
    "match": "MATCH_RECOGNIZE",
    "nullable": r"NOT\s+NULL|NULL",
    "offset": r"OFFSET|LIMIT\s+\S+\s*,",
    "on": "ON",
    "only": "ONLY",
    "operation_modifiers": "HIGH_PRIORITY|STRAIGHT_JOIN|SQL_[A-Z_]+|ALL|DISTINCTROW",
    "options": "OPTION",
    "ordinality": r"WITH\s+ORDINALITY",
    "partition": "PARTITION",
    "pattern": "PATTERN",
    "pivots": "(?:UN)?PIVOT",
    "prewhere": "PREWHERE",
    "qualify": "QUALIFY",
    "rename": "RENAME",
    "replace": "REPLACE",
    "rollup": r"WITH\s+ROLLUP",
    "rows_from": r"ROWS\s+FROM",
    "sample": r"TABLESAMPLE|USING\s+SAMPLE",
    "settings": "SETTINGS",
    "siblings": "SIBLINGS",
    "side": "LEFT|RIGHT|FULL|INNER|OUTER",
    "sort": r"SORT\s+BY",
    "system_time": AS_OF,
    "totals": r"(?:WITH\s+)?TOTALS",
    "version": AS_OF,
    "when": "AT|BEFORE|END",
    "windows": "WINDOW",
    "with_": "WITH",
    "with_fill": r"WITH\s+FILL",
    (exp.Cube, "expressions"): "CUBE",
    (exp.Fetch, "direction"): "FETCH",
    (exp.Group, "all"): r"GROUP\s+BY\s+(?:ALL|DISTINCT)",
    (exp.GroupingSets, "expressions"): r"GROUPING\s+SETS",
    (exp.Limit, "expressions"): "BY",
    (exp.Order, "this"): r"ORDER\s+BY",
    (exp.Rollup, "expressions"): "ROLLUP",
}


def check(tree: exp.Expr, sql: str) -> None:
    """Refuse what nothing uses in a whole statement."""
    for join in tree.find_all(exp.Join):
        how(join, sql)
    for query in tree.find_all(exp.Select, exp.SetOperation):
        if not isinstance(_around(query), (exp.From, exp.Join, exp.Table, exp.CTE, Step, NoneType)):
            raise fail(query.parent or query, "a query inside an expression is not supported", sql)
    for alias in tree.find_all(exp.TableAlias, exp.Alias):
        if not isinstance(alias.this if isinstance(alias, exp.TableAlias) else alias.args["alias"], NAMES):
            raise fail(alias.parent or alias, "an alias must be a name", sql)
    for part, word in ((exp.Ordered, r"ORDER\s+BY\s+ALL"), (exp.Limit, r"LIMIT\s+ALL")):
        for node in tree.find_all(part):
            if isinstance(node.args.get("this") or node.args.get("expression"), exp.Var):
                raise fail_at(find(word, sql), "ALL is not supported here", sql)
    consumed.check(tree, sql, {**EXPRESSIONS, **STATEMENT}, WORDS)


def how(join: exp.Join, sql: str) -> How:
    """The kind of a join; every other is refused."""
    words = " ".join(filter(None, (join.method, join.side, join.kind))).upper()
    if join.method.upper() == "NATURAL":
        why = "it would compare every column of both tables that has the same name, times too: USING (..) names them"
        raise fail(join, f"not supported: {words} JOIN: {why}", sql)
    if "ASOF" in words or PAIRING in join.args:
        return _nearest(join, words, sql)
    if words not in HOW:
        there = "INNER, LEFT, RIGHT, FULL, SEMI, ANTI and CROSS joins are"
        raise fail(join, f"not supported: {words} JOIN; {there}", sql)
    return HOW[words]


def _nearest(join: exp.Join, words: str, sql: str) -> How:
    """The kind of a join by the order of times."""
    at = join.args["method"]
    if words not in HOW:
        word = "ASOF JOIN" if "ASOF" in words else f"FOLLOWING {join.args[PAIRING].name}"
        written = f"{words} {word.split()[-1]}"
        raise fail(at, f"not supported: {written}; [INNER] {word} and LEFT [OUTER] {word} are", sql)
    if "ASOF" in words and join.args.get(MATCHED) is None:
        why = "an ASOF JOIN needs MATCH_CONDITION (l.ts >= r.ts) after its right table: which rows are near"
        raise fail(at, why, sql)
    return HOW[words]


def _around(query: exp.Expr) -> exp.Expr | None:
    """What a query is inside of, apart from parentheses and set operations."""
    found = query.parent
    while isinstance(found, (exp.Subquery, exp.Paren, exp.SetOperation)):
        found = found.parent
    return found
