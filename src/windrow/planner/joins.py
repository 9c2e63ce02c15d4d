"""Joins as stages: two arms whose keys have one type, and the operator that takes one arm on each port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError
from windrow.logical.checked_join import common_type
from windrow.logical.explain import join_text
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import LATER, LEFT, UNMATCHED, AsOf, Join, Side
from windrow.operators import Operator, OpibJoin, OpobJoin, WindowJoin, WithKeys
from windrow.operators import Project as ProjectOperator
from windrow.operators.joins.finished import Named
from windrow.operators.joins.opib_join import refused
from windrow.operators.joins.window_join import Kind, On
from windrow.operators.state.late import late_schema
from windrow.planner.keeping import Kept
from windrow.planner.limited import limited_step
from windrow.planner.ordered_joins import making
from windrow.planner.partition import ByKeys, BySlice, Partition
from windrow.planner.plan import MELD, Arm, Pipeline, Stage, Step
from windrow.planner.rows import merging
from windrow.spec.keeping import ALIKE, BY_COST
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import SameWindow, Within

SIDES: tuple[Side, Side] = (0, 1)
KEPT = "a row is kept until the other side has promised past its last partner"
Physical = Callable[[WindowJoin], Operator]
PHYSICAL: dict[str, tuple[Physical | None, str]] = {
    "oa": (None, KEPT),
    "opob": (OpobJoin, f"{KEPT}; results in order, each held until no earlier one can come"),
    "opib": (OpibJoin, "rows are held, and joined so that results come out in order"),
}
IN_ORDER: dict[str, str] = {
    "sync-filter": "rows wait until no earlier one can come, and are joined in that order",
    "filter-order": "rows are joined as they come; results are held until no earlier one can come",
    "adaptive": "rows wait, or results do, whichever is better at the present rates; results in order",
}
SLICES = 8  # slices of time are so many times as long as the band, so that few rows lie near a border


def join_arms(node: Join, sides: Sequence[Sequence[Pipeline]], order: Sequence[str] | None = None) -> tuple[Arm, ...]:
    """The two sides, ready to meet: keys of a common type, columns under their names in the result.

    ``order``: rows come in order, and that is what it costs on each side.
    """
    spread = _partitions(node) if order is None and node.limits is None else _by_keys(node)
    meetings = [MELD if order is None else merging(late=node.late[side], cost=order[side]) for side in SIDES]
    return tuple(
        Arm(tuple(p.then(*_prepared(node, side)) for p in pipelines), spread[side], meetings[side])
        for side, pipelines in zip(SIDES, sides, strict=True)
    )


def _by_keys(node: Join) -> tuple[Partition, Partition]:
    """A row is in one shard."""
    return ByKeys(key_columns(node)), ByKeys(key_columns(node))


def _partitions(node: Join) -> tuple[Partition, Partition]:
    """Pairs meet in one shard: by their keys and the time of one side, near which the other side is copied.

    A row of the copied side does not know in one slice whether it has a partner in another: so the other side is the
    one whose rows come out without a partner. If both do, rows are spread by their keys alone.
    """
    keys, window = key_columns(node), node.window
    if isinstance(window, SameWindow):  # slices that are windows need no copies
        whole = BySlice(window.length, window.origin, keys=keys)
        return whole, whole
    assert isinstance(window, Within)
    if node.how == "full":
        return _by_keys(node)
    length = SLICES * window.width
    here = BySlice(length, keys=keys)
    if node.how == "right":
        return BySlice(length, before=-window.low, after=window.high, keys=keys), here
    return here, BySlice(length, before=window.high, after=-window.low, keys=keys)


def key_columns(node: Join | AsOf) -> tuple[str, ...]:
    """The columns of both arms that must be equal."""
    return tuple(f"@key{i}" for i in range(len(node.on)))


def _prepared(node: Join, side: Side) -> list[Step]:
    renames = {name: column for name, from_side, column in node.columns if from_side == side}
    return keyed_rows(node, side, renames, side in UNMATCHED[node.how])


def keyed_rows(node: Join | AsOf, side: Side, renames: dict[str, str], all_rows: bool) -> list[Step]:
    """The rows of a side with its keys, and columns under the names in ``renames``; all, or those without NULL keys."""
    given = node.inputs[side].schema
    renames = dict(renames)
    columns: list[Any] = [pl.col(column).alias(name) for name, column in renames.items()]
    keys = dict(zip(key_columns(node), node.on, strict=True))
    for name, pair in keys.items():
        columns.append(translate(pair[side], given).cast(_key_type(node, pair)).alias(name))
        if isinstance(pair[side], exp.Column):
            renames[name] = pair[side].name
    kept = partial(ProjectOperator, [*columns, pl.col(PROGRESS)])
    steps = [Step("prepare", kept, "the keys, and the columns of the result", renames=renames)]
    if keys and not all_rows:
        steps.append(Step("keys", partial(WithKeys, list(keys)), "rows with a key: NULL equals nothing"))
    return steps


def _key_type(node: Join | AsOf, pair: tuple[exp.Expr, exp.Expr]) -> pl.DataType:
    a, b = pair
    return common_type(a, dtype_of(a, node.left.schema), b, dtype_of(b, node.right.schema))


def named_keys(node: Join | AsOf, side: Side) -> Named | None:
    """How promises of a side name keys of the join, if they are about single ones and name all of its keys."""
    by, given = node.inputs[side].promised_by, node.inputs[side].schema
    keys = {e.name: name for name, pair in zip(key_columns(node), node.on, strict=True) if _is_column(e := pair[side])}
    if not by or set(by) != set(keys) or len(keys) != len(node.on):
        return None
    types = {name: _key_type(node, pair) for name, pair in zip(key_columns(node), node.on, strict=True)}
    return Named(tuple((keys[c], given[c]) for c in by), tuple(types.items()))


def _is_column(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column)


def join_stage(
    number: int,
    node: Join,
    arms: tuple[Arm, ...],
    on: str | None,
    named: Sequence[Named | None] = (None, None),
    joint: bool = False,
    in_order: bool = False,
    kept: Kept | None = None,
) -> Stage:
    """``on``: which time of a result its consumer wants to progress on; the later one if it does not say. ``joint``: it
    wants promises about both times, too; a join that holds results back has none. ``kept``: how it keeps rows, if that
    is not in sorted runs throughout.
    """
    time = time_of(node, on)
    name = _physical(node, time, in_order)
    ordered, holds = (making(node), IN_ORDER[name]) if name in IN_ORDER else PHYSICAL[name]
    joint = joint and ordered is None
    types = [{name: node.pairs[name] for name, from_side, _ in node.columns if from_side == side} for side in SIDES]
    join = partial(
        WindowJoin,
        key_columns(node),
        node.window,
        (types[0], types[1]),
        on=time,
        how=node.how,
        where=translate(node.where, node.pairs) if node.where is not None else None,
        test=node.test,
        late=node.late,
        named=(named[0], named[1]),
        joint=joint,
    )
    plain: Callable[[], WindowJoin] = join if kept is None else kept.making(join)
    make = plain if ordered is None else partial(_ordered, ordered, join)
    bound = pl.Int64() if node.by_rows else node.left.schema[node.left.progress or ""]
    late = tuple(late_schema(dict(node.pairs), bound).items())
    if node.limits is not None:
        return Stage(number, node, arms, (limited_step(node, plain, time),), "limited-join", late, kept)
    says = f"{join_text(node).split(': ')[0]}; {holds}; progress on the {time} time{', and on both' if joint else ''}"
    algorithm = f"{'iop, ' if in_order else ''}{name}-join"
    return Stage(number, node, arms, (Step("join", make, says),), algorithm, late, kept)


def time_of(node: Join, on: str | None) -> On:
    """The time that its results progress on, for a consumer that wants this one, or says nothing."""
    usual = LEFT if node.how in ("semi", "anti") else LATER  # their results have no other time
    return cast("On", (on or usual).removeprefix("@"))


def _physical(node: Join, time: On, in_order: bool) -> str:
    """Rows in order are joined in order, without a buffer of results where that is possible."""
    reason = refused(Kind.of(node.how), time, node.using or "opib")
    if node.using in ("opib", *IN_ORDER) and reason is not None:
        raise PlanError(reason)
    if in_order:
        return "opib" if reason is None else "opob"
    return BY_COST if node.using is None or node.using in ALIKE else node.using


def _ordered(kind: Physical, join: Callable[[], WindowJoin]) -> Operator:
    return kind(join())
