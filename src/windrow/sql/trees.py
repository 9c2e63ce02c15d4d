"""The trees of what Spark SQL does not have: window clauses, PUNCTUATED BY, sequences, and where each is kept."""

from __future__ import annotations

from sqlglot import exp

CLAUSE = "windrow_clause"  # the argument of a table or subquery that holds its window clause
UNIONED = "windrow_union"  # the further tables of a FROM a UNION b
PUNCTUATED = "windrow_punctuated"  # the argument of a table that holds its PUNCTUATED BY
COMMA = "windrow_comma"  # in the meta of a join: it is written as a comma
EMIT = "windrow_emit"  # the argument of a SELECT that holds the length of EMIT EARLY EVERY
MATCHED = "match_condition"  # the argument of a join that holds its MATCH_CONDITION
PAIRING = "windrow_pairing"  # the argument of a join that holds RECENT or CHRONICLE
WITHIN = "windrow_within"  # the argument of a join that holds its greatest distance
KEYS = "windrow_keys"  # the argument of a join that holds the number of keys


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
    """``PUNCTUATED BY this(expressions) IDLE AFTER idle``: a promise rule, and when a silent source counts as idle."""

    arg_types = {"this": True, "expressions": False, "idle": False}  # noqa: RUF012


class PromiseArgument(exp.Expression):
    """``this`` or ``name => this``: a string, a number, an identifier, or a tuple of identifiers."""

    arg_types = {"this": True, "name": False}  # noqa: RUF012


class Seq(exp.Expression):
    """``SEQ(expressions) matching WITHIN within KEYS keys ON on | USING using AFTER MATCH SKIP skip``."""

    arg_types = {  # noqa: RUF012
        "expressions": True,
        "matching": False,
        "within": False,
        "keys": False,
        "on": False,
        "using": False,
        "skip": False,
        CLAUSE: False,
    }


class Step(exp.Expression):
    """``NOT this``, ``this`` or ``this+``: a step of a sequence."""

    arg_types = {"this": True, "negated": False, "repeated": False}  # noqa: RUF012
