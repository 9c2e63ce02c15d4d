"""Multi-way joins as one stage: an arm for each input, all spread by their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.logical.checked_sequence import key_type
from windrow.logical.explain import multi_join_text
from windrow.logical.expressions import translate
from windrow.logical.node import columns_in
from windrow.logical.nodes import MultiJoin
from windrow.operators import MultiJoin as Operator
from windrow.operators import Project as ProjectOperator
from windrow.operators import WithKeys
from windrow.operators.state.late import late_schema
from windrow.planner.choose import Choice
from windrow.planner.joins import IN_ORDER
from windrow.planner.ordered_joins import making
from windrow.planner.partition import ByKeys
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.planner.rules.push_filters import conjuncts, harmless
from windrow.spec.names import PROGRESS, TIE
from windrow.windows.multiway import Moment

KEPT = "a row probes one input after another; it is kept until all others have promised past what it can be joined with"


def key_columns(node: MultiJoin) -> tuple[str, ...]:
    """The columns of all arms that must be equal."""
    return tuple(f"@key{i}" for i in range(len(node.keys)))


def multi_arms(node: MultiJoin, sides: Sequence[Sequence[Pipeline]]) -> tuple[Arm, ...]:
    """The inputs, ready to meet: keys of a common type, columns under their names in the result."""
    return multi_arms_by(node, sides, ByKeys(key_columns(node)))


def multi_arms_by(node: MultiJoin, sides: Sequence[Sequence[Pipeline]], spread: ByKeys) -> tuple[Arm, ...]:
    """The same with rows that are spread by other columns, or by none."""
    return tuple(
        Arm(tuple(p.then(*_prepared(node, number)) for p in pipelines), spread)
        for number, pipelines in enumerate(sides)
    )


def _prepared(node: MultiJoin, number: int) -> list[Step]:
    given = node.members[number].schema
    renames = {name: column for name, member, column in node.columns if member == number}
    columns: list[Any] = [pl.col(column).alias(name) for name, column in renames.items()]
    for name, key in zip(key_columns(node), node.keys, strict=True):
        columns.append(translate(key[number], given).cast(key_type(node.members, key)).alias(name))
        if isinstance(key[number], exp.Column):
            renames[name] = key[number].name
    if node.ranges.counts(number):
        columns += [pl.col(column).alias(f"{TIE}{at}") for at, column in enumerate(given)]
    kept = partial(ProjectOperator, [*columns, pl.col(PROGRESS)])
    steps = [Step("prepare", kept, "the keys, and the columns of the result", renames=renames)]
    if node.keys and not node.ranges.counts(number):  # where rows are counted, those without a key count
        keys = partial(WithKeys, list(key_columns(node)))
        steps.append(Step("keys", keys, "rows with a key: NULL equals nothing"))
    return steps


def early(node: MultiJoin) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conditions that can be tried as soon as their columns are there, as they never fail; and the others."""
    every = [] if node.where is None else conjuncts(node.where)
    soon = [each for each in every if columns_in([each]) and harmless(each, node.schema)]
    return soon, [each for each in every if each not in soon]


def multi_stage(
    number: int,
    node: MultiJoin,
    arms: tuple[Arm, ...],
    on: Moment,
    choice: Choice,
    orders: tuple[tuple[int, ...], ...] = (),
) -> Stage:
    """``on``: which time of a result its consumer wants to progress on. ``orders``: of the probes of each input."""
    soon, rest = early(node)
    join = partial(
        Operator,
        key_columns(node),
        node.ranges,
        [{name: node.schema[name] for name, of, _ in node.columns if of == i} for i in range(len(node.members))],
        on=on,
        tests=[translate(each, node.schema) for each in soon],
        where=translate(exp.and_(*rest), node.schema) if rest else None,
        test=node.test,
        late=node.late,
        orders=orders,
    )
    make, order = join, ""
    if node.using in IN_ORDER:
        make, order = partial(_ordered, making(node), join), f"{IN_ORDER[node.using]}; "
    says = f"{multi_join_text(node).split(': ')[0]}; {order}{KEPT}; progress on the {on.name.removeprefix('@')}"
    first = node.members[0]
    late = tuple(late_schema(dict(node.schema), first.schema[first.progress or ""]).items())
    return Stage(number, node, arms, (Step("join", make, says),), choice.name, late, choice)


def _ordered(kind: Callable[[Operator], Any], join: Callable[[], Operator]) -> Any:
    return kind(join())
