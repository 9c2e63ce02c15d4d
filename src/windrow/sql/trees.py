"""The trees of what Spark SQL does not have: window clauses, PUNCTUATED BY, and where each is kept."""

from __future__ import annotations

from sqlglot import exp

CLAUSE = "windrow_clause"  # the argument of a table or subquery that holds its window clause
UNIONED = "windrow_union"  # the further tables of a FROM a UNION b
PUNCTUATED = "windrow_punctuated"  # the argument of a table that holds its PUNCTUATED BY
COMMA = "windrow_comma"  # in the meta of a join: it is written as a comma
EMIT = "windrow_emit"  # the argument of a SELECT that holds the length of EMIT EARLY EVERY


class WindowClause(exp.Expression):
    """``[RANGE .., SLIDE .., ..]``: lengths are WindowLength, attributes identifiers; ``rank`` marks rank(attr)."""

    arg_types = {  # noqa: RUF012 (as sqlglot declares them)
        "range": False,
        "slide": False,
        "wa": False,
        "rattr": False,
        "sattr": False,
        "pa": False,
        "tumbling": False,
        "session": False,
        "rank": False,
        "origin": False,
        "zone": False,
        "empty": False,
        "whole": False,
        "late": False,
        "keep": False,
        "slack": False,
    }


class WindowLength(exp.Expression):
    """A number and a unit of time, ROWS, or ALL."""

    arg_types = {"this": True, "unit": False}  # noqa: RUF012


class PunctuatedBy(exp.Expression):
    """``PUNCTUATED BY this(expressions)``: a promise rule."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012


class PromiseArgument(exp.Expression):
    """``this`` or ``name => this``: a string, a number, an identifier, or a tuple of identifiers."""

    arg_types = {"this": True, "name": False}  # noqa: RUF012
