"""What a checkpoint belongs to, stage by stage: restoring anything else must fail, and say what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from windrow.errors import CheckpointError
from windrow.logical.explain import text
from windrow.logical.nodes import Scan
from windrow.planner import Plan, Stage

FORMAT = 2  # of the state in a checkpoint


def identity(plan: Plan, stages: Iterable[Stage], shards: int) -> dict[str, Any]:
    """Of the stages of one level. What follows a stage without state is not part of it, and may change."""
    return {"format": FORMAT, "shards": shards, "stages": {str(s.number): _of_stage(plan, s) for s in stages}}


def _of_stage(plan: Plan, stage: Stage) -> dict[str, Any]:
    scans = {n.name: n for n in stage.node.walk() if isinstance(n, Scan)}
    needed = plan.needed_by(stage)
    return {
        "query": text(stage.node),
        "algorithm": stage.algorithm,
        "source columns": {
            name: {c: str(scan.schema[c]) for c in needed[name] if c in scan.schema} for name, scan in scans.items()
        },
        "result columns": {c: str(t) for c, t in stage.node.schema.items()},
    }


def evolved(
    before: Mapping[str, Any], now: Mapping[str, Any], dormant: frozenset[int]
) -> tuple[dict[str, Any], frozenset[str]]:
    """What a checkpoint belongs to after queries came and went, and the stages whose queries were dropped.

    A stage that stays must be what it was; everything that concerns all stages must be the same.
    """
    then, here = before["stages"], now["stages"]
    shared = {number: here[number] for number in here if number in then}
    known = {**before, "stages": {number: then[number] for number in shared}}
    if known != {**now, "stages": shared}:
        raise CheckpointError(difference(known, {**now, "stages": shared}))
    kept = {number: then[number] for number in then if number in here or int(number) in dormant}
    return {**now, "stages": {**kept, **here}}, frozenset(then) - frozenset(kept)


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between the query a checkpoint was written by and the one that reads it."""
    if before.get("format") != now.get("format"):
        return (
            f"this checkpoint has format {before.get('format')}, and this version of Windrow writes format "
            f"{now.get('format')}: its state cannot be read. Continue with the version that wrote it, or start with a "
            "new checkpoint folder"
        )
    lines = ["this checkpoint was written by another query. What differs:"]
    lines += _compared({"shards": before["shards"]}, {"shards": now["shards"]})
    stages = before["stages"], now["stages"]
    for number in sorted({*stages[0], *stages[1]}, key=int):
        then, here = (given.get(number, {}) for given in stages)
        several = len(stages[0]) > 1 or len(stages[1]) > 1
        found = list(_compared(then, here))
        lines += [f"  stage {number}:"] if found and several else []
        lines += found + (_advice(then, here) if then and here else [])
    lines.append("Run the old query again, or start the new one with a new checkpoint folder.")
    return "\n".join(lines)


def _compared(then: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*then, *here}):
        if then.get(name) != here.get(name):
            yield f"  {name}:"
            yield f"    checkpoint: {_indented(then.get(name))}"
            yield f"    now:        {_indented(here.get(name))}"


def _advice(then: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    found = []
    if then["algorithm"] != here["algorithm"]:
        found.append(
            "The state of one algorithm cannot be used by another. to_spark(checkpoint=..) and windrow run keep the "
            "algorithm of the first start. To continue with this checkpoint, give "
            f"using={_using(then['algorithm'])!r} or the hint USING(..)."
        )
    if then["source columns"] != here["source columns"]:
        found.append("Over files, schema=.. declares the columns, whichever files are there.")
    return found


def _using(algorithm: str) -> str:
    """What a query says to have an algorithm: joins are named by their first word.

    >>> _using("paned"), _using("oa-join"), _using("iop, opib-join")
    ('paned', 'oa', 'iop')
    """
    return algorithm.split(", ")[0].removesuffix("-join") if algorithm.endswith("-join") else algorithm


def _indented(value: object) -> str:
    return str(value).replace("\n", "\n" + " " * 16)
