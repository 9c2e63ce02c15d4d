"""Checked as-of joins and sequences: streams that progress, keys of all of them, and a bound on what is held."""

from __future__ import annotations

from collections.abc import Sequence as Many

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError, QueryError
from windrow.logical.asof import AsOf, AsOfHow, Strategy
from windrow.logical.checked import on_value
from windrow.logical.checked_join import Columns, all_columns, check_conditions, check_names, common_type
from windrow.logical.expressions import dtype_of, fail
from windrow.logical.nodes import Node
from windrow.logical.sequence import OF_STEP, Compared, Matching, Measure, SeqStep, Sequence, Skip
from windrow.progress import LONGEST
from windrow.spec.options import Policy

MOST_STEPS = 16


def as_of(
    left: Node,
    right: Node,
    on: Many[tuple[exp.Expr, exp.Expr]],
    columns: Columns | None = None,
    sql: str | None = None,
    *,
    strategy: Strategy = "backward",
    exact: bool = True,
    shift: int = 0,
    tolerance: int | None = None,
    how: AsOfHow = "inner",
    where: exp.Expr | None = None,
    most_keys: int | None = None,
    late: tuple[Policy, Policy] = ("drop", "drop"),
    at: exp.Expr | None = None,
) -> AsOf:
    """An as-of join of streams that progress. ``at``: where the query says it, for errors."""
    left, right = timed(left, "the left side of the as-of join"), timed(right, "the right side of the as-of join")
    check_times([left, right], at, sql)
    _check_distance(tolerance, at, sql)
    _check_late(late)
    for a, b in on:
        common_type(a, dtype_of(a, left.schema, sql), b, dtype_of(b, right.schema, sql), sql)
    columns = all_columns(left, right) if columns is None else columns
    check_names(columns)
    node = AsOf(left, right, tuple(on), columns, strategy, exact, shift, tolerance, how, where, _most(most_keys), late)
    check_conditions(node.schema, where, None, sql)
    if where is not None and tolerance is None:
        raise _fail(
            where,
            "a condition on pairs needs a greatest distance, or all right rows would have to be kept: give a tolerance "
            "(in SQL a bound on the distance of both times in ON, or WITHIN)",
            sql,
        )
    if most_keys is not None and (strategy == "forward" or not on):
        why = "there are no keys" if not on else "left rows wait for the next right row, however few keys there are"
        raise QueryError(f"a number of keys bounds nothing here: {why}; leave it out")
    if not node.bounds():
        raise _unbounded(_bounds_of(node), at, sql)
    return node


def _bounds_of(node: AsOf) -> str:
    """What would bound an as-of join."""
    found = ["a greatest distance (tolerance=, in SQL WITHIN or a bound in ON)"]
    sides = {"backward": "left", "forward": "right"}.get(node.strategy, "both")
    whose = f"of the {sides} stream" if sides != "both" else "of both streams"
    found.append(f"promises {whose} about single keys (markers that name the keys of the join)")
    if node.strategy == "backward":
        found.append("a number of keys that you accept (max_keys=, in SQL KEYS n)")
    return "; ".join(found)


def sequence(
    members: Many[Node],
    steps: Many[SeqStep],
    on: Many[tuple[exp.Expr, ...]],
    measures: Many[Measure],
    sql: str | None = None,
    *,
    matching: Matching = "recent",
    within: int | None = None,
    conditions: Many[Compared] = (),
    skip: Skip = "to next row",
    outer: bool = False,
    most_keys: int | None = None,
    late: Many[Policy] | None = None,
    at: exp.Expr | None = None,
) -> Sequence:
    """A sequence of streams that progress. ``at``: where the query says it, for errors."""
    check_steps(steps, at, sql)
    _check_ends(steps, outer, skip, at, sql)
    nodes = [timed(node, f"step {step.name}") for node, step in zip(members, steps, strict=True)]
    check_times(nodes, at, sql)
    _check_distance(within, at, sql)
    policies: Many[Policy] = ["drop"] * len(nodes) if late is None else late
    _check_late(policies)
    for key in on:
        key_type(nodes, key, sql)
    node = Sequence(
        tuple(nodes),
        tuple(steps),
        tuple(on),
        tuple(measures),
        matching,
        within,
        tuple(conditions),
        skip,
        outer,
        _most(most_keys),
        tuple(policies),
    )
    for condition in node.conditions:
        _check_condition(node, condition, sql)
    _check_measures(node)
    if not node.bounds():
        raise _unbounded(_bounds_of_sequence(node), at, sql)
    if most_keys is not None and not node.by_latest:
        raise QueryError("a number of keys bounds nothing here: a key can have many rows; leave it out")
    return node


def key_type(nodes: Many[Node], key: Many[exp.Expr], sql: str | None = None) -> pl.DataType:
    """The type in which the keys of all steps are compared."""
    types = [dtype_of(tree, node.schema, sql) for tree, node in zip(key, nodes, strict=True)]
    found = types[0]
    for tree, dtype in zip(key[1:], types[1:], strict=True):
        found = common_type(key[0], found, tree, dtype, sql)
    return found


def compared_type(node: Sequence, condition: Compared, sql: str | None = None) -> pl.DataType:
    """The type in which both sides of a condition are compared."""
    a, b = condition.left, condition.right
    types = (
        dtype_of(a, node.members[condition.left_step].schema, sql),
        dtype_of(b, node.members[condition.right_step].schema, sql),
    )
    return common_type(a, types[0], b, types[1], sql)


def _bounds_of_sequence(node: Sequence) -> str:
    if node.waits:
        return "a greatest distance (WITHIN), which also says when the sequence is over"
    found = ["a greatest distance (WITHIN)", "promises of all streams about single keys (markers that name the keys)"]
    if node.by_latest:
        found.append("a number of keys that you accept (max_keys=, in SQL KEYS n)")
    return "; ".join(found)


def _unbounded(bounds: str, at: exp.Expr | None, sql: str | None) -> QueryError | PlanError:
    message = f"nothing bounds what this query must remember, and its state would grow forever. What can: {bounds}"
    return PlanError(message) if at is None else fail(at, message, sql)


def _fail(at: exp.Expr | None, message: str, sql: str | None) -> QueryError:
    return QueryError(message) if at is None else fail(at, message, sql)


def _most(most_keys: int | None) -> int | None:
    if most_keys is not None and not 0 < most_keys <= LONGEST:
        raise QueryError(f"the number of keys must be 1 or more, not {most_keys}")
    return most_keys


def check_steps(steps: Many[SeqStep], at: exp.Expr | None, sql: str | None) -> None:
    """Refuse sequences of steps that mean nothing."""
    if not 2 <= len(steps) <= MOST_STEPS:
        raise _fail(at, f"a sequence has 2 to {MOST_STEPS} steps, not {len(steps)}", sql)
    if both := [step.name for step in steps if step.negated and step.repeated]:
        raise _fail(at, f"step {both[0]} is negated: that says already that there is no row of it, leave out +", sql)
    if steps[0].negated:
        raise _fail(
            at,
            f"a sequence cannot begin with the negated step {steps[0].name}: rows without an earlier one are an anti "
            "join with a band, such as LEFT ANTI JOIN .. ON .. AND r.ts BETWEEN l.ts - INTERVAL 5 MINUTES AND l.ts",
            sql,
        )
    names = [step.name.lower() for step in steps]
    if twice := [n for n in names if names.count(n) > 1]:
        raise _fail(at, f"two steps are called {twice[0]}: give them different names", sql)


def _check_ends(steps: Many[SeqStep], outer: bool, skip: Skip, at: exp.Expr | None, sql: str | None) -> None:
    waits = steps[-1].negated or steps[-1].repeated
    if outer and (waits or any(step.repeated for step in steps)):
        why = "rows that find no sequence can come out only where no step is repeated and the last one is not negated"
        raise _fail(at, why, sql)
    if waits and skip == "past last row":
        why = f"the sequence is not over with its last row, as step {steps[-1].name} may come: use SKIP TO NEXT ROW"
        raise _fail(at, why, sql)


def _check_condition(node: Sequence, condition: Compared, sql: str | None) -> None:
    if condition.left_step >= condition.right_step:
        raise _fail(condition.left, "a condition compares a step with a later one", sql)
    if node.steps[condition.left_step].negated:
        name = node.steps[condition.left_step].name
        raise _fail(condition.left, f"step {name} is negated, so later steps have no row of it to compare with", sql)
    compared_type(node, condition, sql)


def _check_measures(node: Sequence) -> None:
    names = [m.name for m in node.measures]
    if twice := {n for n in names if names.count(n) > 1}:
        raise QueryError(f"output columns need different names; given twice: {', '.join(sorted(twice))}")
    for measure in node.measures:
        step = node.steps[measure.step]
        if step.negated:
            raise QueryError(f"step {step.name} is negated: a sequence has no row of it to select from")
        if step.repeated and measure.function not in OF_STEP:
            raise QueryError(
                f"step {step.name} has one or more rows: select one of {', '.join(OF_STEP)} of {measure.column}"
            )
        if not step.repeated and measure.function:
            raise QueryError(f"step {step.name} has one row: select {measure.column}, without {measure.function}")
    _ = node.schema  # checks the types of functions


def timed(node: Node, name: str) -> Node:
    """An input whose progress values are the values of its progressing column."""
    if node.versioned:
        raise PlanError(f"{name} has results with versions, which is not supported yet")
    if node.progress is None:
        raise PlanError(f"{name} does not progress: keep its progressing column in the SELECT list")
    return on_value(node, node.progress)


def check_times(nodes: Many[Node], at: exp.Expr | None, sql: str | None) -> None:
    first = nodes[0]
    a = first.schema[first.progress or ""]
    for node in nodes[1:]:
        b = node.schema[node.progress or ""]
        if a != b and not (a.is_integer() and b.is_integer()):
            raise _fail(
                at, f"times must be of one type: {first.progress} is {a}, and {node.progress} is {b}. Cast one", sql
            )


def _check_distance(distance: int | None, at: exp.Expr | None, sql: str | None) -> None:
    if distance is not None and not 0 <= distance <= LONGEST:
        raise _fail(at, "the greatest distance must not be negative, and at most 2^60", sql)


def _check_late(late: Many[Policy]) -> None:
    if "revise" in late:
        raise QueryError("late rows cannot revise these results: choose drop, side or error")
