"""As-of joins as stages: the left rows on port 0, the right ones with what orders them on port 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from windrow.logical.explain import as_of_text
from windrow.logical.expressions import translate
from windrow.logical.nodes import AsOf, Side
from windrow.operators import AsOfJoin, Shift
from windrow.operators.joins.finished import Named
from windrow.operators.sequences.as_of_join import Nearness
from windrow.operators.state.late import late_schema
from windrow.planner.joins import SLICES, key_columns, keyed_rows
from windrow.planner.partition import ByKeys, BySlice, Partition
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.spec.time import forever

WAITS = {
    "backward": "a row is paired when the right side has promised beyond it",
    "forward": "a row is paired when the right side has promised beyond its partner",
    "nearest": "a row is paired when the right side has promised that no nearer row comes",
}


def as_of_arms(node: AsOf, sides: Sequence[Sequence[Pipeline]]) -> tuple[Arm, ...]:
    """Both sides, ready to meet."""
    left = keyed_rows(node, 0, _names(node, 0), node.how == "left")
    right = keyed_rows(node, 1, {**_names(node, 1), **_ties(node)}, False)
    if node.shift:
        right.append(Step("shift", partial(Shift, node.shift), "times as they are compared"))
    spread = _partitions(node)
    return tuple(
        Arm(tuple(p.then(*steps) for p in pipelines), partition)
        for steps, pipelines, partition in zip((left, right), sides, spread, strict=True)
    )


def _names(node: AsOf, side: Side) -> dict[str, str]:
    return {name: column for name, from_side, column in node.columns if from_side == side}


def _ties(node: AsOf) -> dict[str, str]:
    """The right columns that results do not have: they order rows with equal times all the same."""
    shown = set(_names(node, 1).values())
    return {f"@tie{i}": column for i, column in enumerate(node.right.schema) if column not in shown}


def _tie_order(node: AsOf) -> list[str]:
    """All columns of right rows, in the order of their schema, by their names in the join."""
    named = {column: name for name, column in {**_ties(node), **_names(node, 1)}.items()}
    return [named[column] for column in node.right.schema]


def _partitions(node: AsOf) -> tuple[Partition, Partition]:
    """By keys. Without keys left rows are spread by slices of time, if right rows reach only so far."""
    far = node.tolerance
    if node.on or far is None:
        return ByKeys(key_columns(node)), ByKeys(key_columns(node))
    before = far if node.strategy != "backward" else 0
    after = far if node.strategy != "forward" else 0
    length = SLICES * (before + after + 1)
    return BySlice(length), BySlice(length, before=before, after=after)


def as_of_stage(number: int, node: AsOf, arms: tuple[Arm, ...], named: Sequence[Named | None]) -> Stage:
    """The stage of an as-of join."""
    types = [{n: t for n, t in node.schema.items() if n in _names(node, side)} for side in (0, 1)]
    time = node.left.schema[node.left.progress or ""]
    make = partial(
        AsOfJoin,
        key_columns(node),
        (types[0], types[1]),
        Nearness(node.strategy, node.exact, node.tolerance),
        ties=_tie_order(node),
        outer=node.how == "left",
        where=translate(node.where, node.schema) if node.where is not None else None,
        most_keys=node.most_keys,
        late=node.late,
        named=(named[0], named[1]),
        forever=forever(time),
    )
    says = f"{as_of_text(node).split(': ')[0]}; {WAITS[node.strategy]}; memory is bounded by {', '.join(node.bounds())}"
    late = tuple(late_schema(dict(node.schema), time).items())
    return Stage(number, node, arms, (Step("as-of", make, says),), "as-of-join", late, spread=_spread(node))


def _spread(node: AsOf) -> tuple[str, ...] | None:
    """The result columns that have the keys, if all of them are there, so that what follows can stay in the shard."""
    shown = {column: name for name, column in _names(node, 0).items()}
    names = [shown.get(a.name) if isinstance(a, exp.Column) else None for a, _ in node.on]
    return tuple(n for n in names if n) if names and None not in names else None
