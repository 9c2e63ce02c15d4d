"""Joins that are spread over nodes as one stage: all rows go to the first node, and each shard is one node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from windrow.logical.checked_sequence import key_type
from windrow.logical.explain import multi_join_text
from windrow.logical.expressions import translate
from windrow.logical.node import columns_in
from windrow.logical.nodes import MultiJoin
from windrow.operators import Ring
from windrow.operators.ring.costs import Unit
from windrow.operators.ring.joining import Check, Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.way import WAYS
from windrow.operators.state.late import late_schema
from windrow.planner.choose import Choice, calibrated
from windrow.planner.choose.costs.spread import Spread
from windrow.planner.multi import early, key_columns, multi_arms_by
from windrow.planner.partition import ByKeys
from windrow.planner.plan import Pipeline, Stage, Step
from windrow.planner.ways import Way
from windrow.windows.multiway import Moment

SAYS = {
    "ring": "state in slices of time, one for each node; rows go round and meet each slice once",
    "atr": "segments of one input, each at one node, with copies of what of the others is near enough",
    "ctr": "segments of all inputs, each at several nodes; rows go from hop to hop along those they can meet",
}


def ring_stage(number: int, node: MultiJoin, sides: Sequence[Sequence[Pipeline]], on: Moment, choice: Choice) -> Stage:
    """``on``: which time of a result its consumer wants to progress on."""
    spread = choice.spread if isinstance(choice, Way) else None
    make = partial(_ring, _joining(node, on), node, choice.name, calibrated.found().ring, spread)
    first = node.members[0]
    late = tuple(late_schema(dict(node.schema), first.schema[first.progress or ""]).items())
    says = f"{multi_join_text(node).split(': ')[0]}; {SAYS[choice.name]}; progress on the {on.name.removeprefix('@')}"
    step = Step(
        "join", partial(make, node.nodes or 1), says, in_shard=lambda shards: make(max(shards, node.nodes or 1))
    )
    arms = multi_arms_by(node, sides, ByKeys())
    return Stage(number, node, arms, (step,), choice.name, late, choice, ring=True, nodes=node.nodes)


def _ring(joining: Joining, node: MultiJoin, way: str, unit: Unit, spread: Spread | None, most: int) -> Ring:
    """``spread``: the inputs in numbers."""
    options, segment = node.options, node.options.segment
    assert segment is None or isinstance(segment, int)  # in units of progress by now
    wishes = Wishes(
        most,
        node.nodes,
        smoothing=options.smoothing,
        relocation=options.relocation,
        objective=options.objective,
        unit=unit,
        lengths=spread.initial(node.nodes or most, node.nodes is not None, options.objective) if spread else (),
        segment=segment,
        copies=options.copies,
    )
    return Ring(joining, wishes, options.flight, way=WAYS[way])


def _joining(node: MultiJoin, on: Moment) -> Joining:
    names = [[name for name, of, _ in node.columns if of == number] for number in range(len(node.members))]
    soon, rest = early(node)
    tests = [Check(_columns(each), translate(each, node.schema)) for each in soon]
    tests += [Check(_columns(each), translate(each, node.schema), last=True) for each in rest]
    tests += [Check(test.columns, function=test) for test in node.tests]
    types = [{name: node.schema[name] for name in own} for own in names]
    for key, of in zip(key_columns(node), node.keys, strict=True):
        for own in types:
            own[key] = key_type(node.members, of)
    columns = tuple(map(tuple, names))
    return Joining(node.ranges, columns, tuple(tests), key_columns(node), on, node.late, tuple(types))


def _columns(tree: exp.Expr) -> tuple[str, ...]:
    return tuple(sorted(columns_in([tree])))
