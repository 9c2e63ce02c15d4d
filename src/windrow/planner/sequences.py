"""Sequences as stages: one arm for each step, all with the same columns, and the automaton over them."""

from __future__ import annotations

from collections.abc import Sequence as Many
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from windrow.aggregates import Partials, make
from windrow.logical.checked_sequence import compared_type, key_type
from windrow.logical.explain import sequence_text
from windrow.logical.expressions import translate
from windrow.logical.nodes import Sequence
from windrow.operators import Matcher, WithKeys
from windrow.operators import Project as ProjectOperator
from windrow.operators.joins.finished import Named
from windrow.operators.kernels.automaton import NONE, Pattern, Rules
from windrow.operators.sequences.matcher import Compare
from windrow.operators.sequences.measured import STEP, Measured, Value
from windrow.operators.state.late import late_schema
from windrow.planner.partition import ByKeys
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.spec.names import PROGRESS

Slots = list[dict[str, str]]  # for each step, where each of its columns is kept


def key_columns(node: Sequence) -> tuple[str, ...]:
    """The columns of all arms that must be equal."""
    return tuple(f"@key{i}" for i in range(len(node.on)))


def slots_of(node: Sequence) -> tuple[Slots, dict[str, pl.DataType]]:
    """Columns of the same type share a place, so that rows of all steps are one frame with few NULLs."""
    types: dict[str, pl.DataType] = {}
    found: Slots = []
    for member in node.members:
        used: set[str] = set()
        own = {}
        for column, dtype in member.schema.items():
            free = next((s for s, t in types.items() if t == dtype and s not in used), None)
            slot = free or f"@slot{len(types)}"
            types[slot] = dtype
            used.add(slot)
            own[column] = slot
        found.append(own)
    return found, types


def sequence_arms(node: Sequence, sides: Many[Many[Pipeline]]) -> tuple[Arm, ...]:
    """The rows of each step, ready to meet."""
    slots, types = slots_of(node)
    spread = ByKeys(key_columns(node))
    return tuple(
        Arm(tuple(p.then(*_prepared(node, step, slots[step], types)) for p in pipelines), spread)
        for step, pipelines in enumerate(sides)
    )


def _prepared(node: Sequence, step: int, slots: dict[str, str], types: dict[str, pl.DataType]) -> list[Step]:
    given = node.members[step].schema
    own = {slot: column for column, slot in slots.items()}
    columns: list[Any] = [
        pl.col(own[slot]).alias(slot) if slot in own else pl.lit(None, dtype).alias(slot)
        for slot, dtype in types.items()
    ]
    renames = dict(own)
    for name, key in zip(key_columns(node), node.on, strict=True):
        columns.append(translate(key[step], given).cast(key_type(node.members, key)).alias(name))
        if isinstance(key[step], exp.Column):
            renames[name] = key[step].name
    for number, condition in enumerate(node.conditions):
        sides = {condition.left_step: condition.left, condition.right_step: condition.right}
        dtype = compared_type(node, condition)
        value = translate(sides[step], given).cast(dtype) if step in sides else pl.lit(None, dtype)
        columns.append(value.alias(f"@value{number}"))
    columns += [pl.lit(step, pl.Int8).alias(STEP), pl.col(PROGRESS)]
    says = f"rows of step {node.steps[step].name}, with the keys"
    steps = [Step("prepare", partial(ProjectOperator, columns), says, renames=renames)]
    if node.on and not (node.outer and step == len(node.steps) - 1):
        keys = partial(WithKeys, list(key_columns(node)))
        steps.append(Step("keys", keys, "rows with a key: NULL equals nothing"))
    return steps


def named_steps(node: Sequence) -> list[Named | None]:
    """How the promises of each stream name single keys; for none of them unless all do."""
    found = [_named(node, step) for step in range(len(node.steps))]
    return found if all(name is not None for name in found) else [None] * len(found)


def _named(node: Sequence, step: int) -> Named | None:
    member = node.members[step]
    keys = {key[step].name: name for name, key in zip(key_columns(node), node.on, strict=True)}
    plain = all(isinstance(key[step], exp.Column) for key in node.on)
    if not member.promised_by or not plain or set(member.promised_by) != set(keys) or len(keys) != len(node.on):
        return None
    types = {name: key_type(node.members, key) for name, key in zip(key_columns(node), node.on, strict=True)}
    return Named(tuple((keys[c], member.schema[c]) for c in member.promised_by), tuple(types.items()))


def sequence_stage(number: int, node: Sequence, arms: tuple[Arm, ...], named: Many[Named | None]) -> Stage:
    """The stage of a sequence."""
    slots, _ = slots_of(node)
    compares = [Compare(c.left_step, c.comparison, c.right_step, f"@value{i}") for i, c in enumerate(node.conditions)]
    make_it = partial(
        Matcher,
        key_columns(node),
        _pattern(node),
        [[slots[step][column] for column in member.schema] for step, member in enumerate(node.members)],
        _measured(node, slots),
        compares=compares,
        strict=node.strict,
        most_keys=node.most_keys,
        late=node.late,
        named=named,
        last=node.taken[-1],
    )
    waits = "when its time is over" if node.waits else "when all streams have promised beyond its last row"
    says = (
        f"{sequence_text(node).split(': ')[0]}; a sequence comes out {waits}; memory is bounded by "
        f"{', '.join(node.bounds())}"
    )
    time = node.members[0].schema[node.members[0].progress or ""]
    late = tuple(late_schema(dict(node.schema), time).items())
    return Stage(number, node, arms, (Step("match", make_it, says),), "automaton", late, spread=_spread(node))


def _pattern(node: Sequence) -> Pattern:
    levels = np.cumsum([not step.negated for step in node.steps])
    plan = [levels, [step.negated for step in node.steps], [step.repeated for step in node.steps]]
    rules = Rules(
        len(node.taken),
        node.matching == "recent",
        NONE if node.within is None else node.within,
        node.skip == "past last row",
        node.outer,
        node.waits,
        node.by_latest,
        len(node.conditions),
    )
    return Pattern(rules, np.array(plan, np.int64))


def _measured(node: Sequence, slots: Slots) -> Measured:
    values, functions = [], dict[int, list[Any]]()
    for m in node.measures:
        slot = None if m.column is None else slots[m.step][m.column]
        if m.function in ("", "first", "last"):
            values.append(Value(m.name, m.step, slot or "", m.function == "first"))
        else:
            dtype = pl.Int64() if m.column is None else node.members[m.step].schema[m.column]
            functions.setdefault(m.step, []).append(make(m.function, m.name, slot, dtype, (), None))
    return Measured(node.schema, values, {step: Partials(each) for step, each in functions.items()})


def _spread(node: Sequence) -> tuple[str, ...] | None:
    """The result columns that have the keys, if all of them are there, so that what follows can stay in the shard."""
    shown = {(m.step, m.column): m.name for m in node.measures if not m.function}
    names = [
        next((shown[s, e.name] for s, e in enumerate(key) if isinstance(e, exp.Column) and (s, e.name) in shown), None)
        for key in node.on
    ]
    return tuple(n for n in names if n) if names and None not in names and not node.outer else None
