"""Multi-way joins as pipelines: binary joins one after another, each with the band that follows from the ranges.

A result of a join progresses on what the consumer of the last one wants, as far as it is there: the later, or the
earlier, of the times of some inputs. Whatever a band does not say of two times is a condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from windrow.logical.checked import on_value
from windrow.logical.checked_sequence import key_type
from windrow.logical.expressions import dtype_of
from windrow.logical.join import EARLIER, LATER, LEFT, RIGHT, Join
from windrow.logical.multi_join import MultiJoin
from windrow.logical.node import Node, columns_in
from windrow.logical.rows import Project
from windrow.planner.multi import early
from windrow.windows.multiway import Moment
from windrow.windows.pairing import Side, Within

AT = "@at"  # what the results of a join progress on, where it is the later or the earlier of several times
Place = tuple[int, str]  # a column of an input


@dataclass(frozen=True)
class Joined:
    """The rows of some inputs. ``names``: what their columns are called. ``time``: the column that they progress on;
    ``moment``: the time that it is.
    """

    node: Node
    names: Mapping[Place, str]
    time: str
    moment: Moment
    inputs: tuple[int, ...]


def pipeline_of(node: MultiJoin, order: Sequence[int], wanted: Moment) -> tuple[Join, str]:
    """The last of the joins, and the attribute of its results that is the wanted time."""
    needed = _needed(node)
    left = _input(node, order[0])
    for number in order[1:-1]:
        join, of, moment = _step(node, needed, left, number, wanted)
        left = _progressing(node, join, of, moment, (*left.inputs, number))
    join, of, _ = _step(node, needed, left, order[-1], wanted, last=True)
    return join, of


def _needed(node: MultiJoin) -> dict[Place, str]:
    """The columns that results, conditions, keys and distances are over, each with one name."""
    found: dict[Place, str] = {}
    for number, member in enumerate(node.members):
        for column in sorted(columns_in(node.on[number]) | {member.progress or ""}):
            found[number, column] = f"@{number}.{column}"
    return found | {(number, column): name for name, number, column in node.columns}


def _input(node: MultiJoin, number: int) -> Joined:
    member = node.members[number]
    names = {(number, column): column for column in member.schema}
    return Joined(member, names, member.progress or "", Moment((number,)), (number,))


def _step(
    node: MultiJoin, needed: Mapping[Place, str], left: Joined, number: int, wanted: Moment, last: bool = False
) -> tuple[Join, str, Moment]:
    """The join of what is joined so far with one more input; what its results progress on, and which time it is."""
    right = _input(node, number)
    of, moment = _progress(left, number, wanted)
    carried = {place: side for side, each in enumerate((left, right)) for place in each.names if place in needed}
    columns: list[tuple[str, Side, str]] = []
    for place, name in needed.items():
        if place in carried:
            side: Side = 1 if carried[place] else 0
            columns.append((name, side, (right if side else left).names[place]))
    if left.time == AT and not last:
        columns.append((AT, 0, AT))
    shown = {place: name for place, name in needed.items() if place in carried}
    conditions = [*_distances(node, left, number, shown), *_conditions(node, left.inputs, number, last)]
    keys = tuple(
        (_key(node, key, left.inputs[0], left.names), _key(node, key, number, right.names)) for key in node.keys
    )
    join = Join(
        left.node,
        right.node,
        keys,
        _band(node, left, number),
        tuple(columns),
        exp.and_(*conditions) if conditions else None,
        test=node.test if last else None,
        late=("drop", node.late[number]) if len(left.inputs) > 1 else (node.late[left.inputs[0]], node.late[number]),
    )
    return join, of, moment


def _progress(left: Joined, number: int, wanted: Moment) -> tuple[str, Moment]:
    """What a join progresses on: the time that is wanted, of the inputs that it has; of others the later of both."""
    known = set(left.moment.inputs) & set(wanted.inputs)
    if known and number not in wanted.inputs:
        return LEFT, left.moment
    if number in wanted.inputs and not known:
        return RIGHT, Moment((number,), wanted.later)
    later = wanted.later or not known
    return (LATER if later else EARLIER), Moment((*left.moment.inputs, number), later)


def _progressing(node: MultiJoin, join: Join, of: str, moment: Moment, inputs: tuple[int, ...]) -> Joined:
    """The results of a join, progressing on one of their times."""
    names = {place: name for place, name in _needed(node).items() if name in join.schema}
    times = {of: name for name, of in join.pair_times.items()}
    if of in (LEFT, RIGHT):
        time = times[of]
        return Joined(on_value(join, time), names, time, moment, inputs)
    both = [exp.column(times[side], quoted=True) for side in (LEFT, RIGHT)]
    kind = exp.Greatest if of == LATER else exp.Least
    columns = [(name, exp.column(name, quoted=True)) for name in join.schema if name != AT]
    found = Project(join, (*columns, (AT, kind(this=both[0], expressions=both[1:]))))
    return Joined(on_value(found, AT), names, AT, moment, inputs)


def _band(node: MultiJoin, left: Joined, number: int) -> Within:
    """How far the time of a row can be from that of what is joined so far."""
    lengths = [node.ranges.lengths[i] for i in left.moment.inputs]
    return Within(1 - node.ranges.lengths[number], (min if left.moment.later else max)(lengths) - 1)


def _distances(node: MultiJoin, left: Joined, number: int, shown: Mapping[Place, str]) -> list[exp.Expr]:
    """What the band does not say of the distances between the new input and those before it."""
    lengths, of, found = node.ranges.lengths, left.moment, list[exp.Expr]()
    known = set(of.inputs)
    band = _band(node, left, number)
    for other in left.inputs:
        alone = known == {other}
        before = alone or (not of.later and other in known and lengths[other] - 1 == band.high)
        after = alone or (of.later and other in known)
        times = [(each, shown[each, node.members[each].progress or ""]) for each in (other, number)]
        found += [] if before else [_at_most(node, times[0], times[1], lengths[other] - 1)]
        found += [] if after else [_at_most(node, times[1], times[0], lengths[number] - 1)]
    return found


def _at_most(node: MultiJoin, earlier: tuple[int, str], later: tuple[int, str], most: int) -> exp.Expr:
    """``later - earlier <= most``. Integers of any size are compared as the largest."""
    dtypes = [node.members[number].schema[node.members[number].progress or ""] for number, _ in (earlier, later)]
    columns: list[exp.Expr] = [exp.column(name, quoted=True) for _, name in (earlier, later)]
    if dtypes[0].is_integer():
        columns = [exp.cast(column, "bigint") for column in columns]
        moved: exp.Expr = exp.Add(this=columns[0], expression=exp.Literal.number(most))
    else:
        unit = "DAY" if dtypes[0] == pl.Date else "MICROSECOND"
        length = exp.Interval(this=exp.Literal.string(str(most)), unit=exp.var(unit))
        moved = exp.Add(this=columns[0], expression=length)
    return exp.LTE(this=columns[1], expression=moved)


def _conditions(node: MultiJoin, before: tuple[int, ...], number: int, last: bool) -> list[exp.Expr]:
    """The conditions whose columns are there with the new input, and at the end those that had to wait for all."""
    of = {name: member for name, member, _ in node.columns}
    soon, rest = early(node)
    used = [(each, {of[name] for name in columns_in([each])}) for each in soon]
    there = {*before, number}
    new = [each for each, inputs in used if inputs <= there and (number in inputs or len(before) == 1)]
    return [*new, *(rest if last else [])]


def _key(node: MultiJoin, key: tuple[exp.Expr, ...], number: int, names: Mapping[Place, str]) -> exp.Expr:
    """A key of an input, over what its columns are called, in the type that all inputs have in common."""
    tree = key[number].transform(lambda part: _renamed(part, number, names))
    own, common = dtype_of(key[number], node.members[number].schema), key_type(node.members, key)
    if own == common:
        return tree
    return exp.cast(tree, "double" if common == pl.Float64() else "bigint")


def _renamed(part: exp.Expr, number: int, names: Mapping[Place, str]) -> exp.Expr:
    return exp.column(names[number, part.name], quoted=True) if isinstance(part, exp.Column) else part
