"""How a report comes about: each graph makes its own after a micro-batch, and those of all shards are put together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from windrow.graph import Graph
from windrow.hosts.outline import NOTHING, Outline
from windrow.hosts.report import FORMAT, Held, Part, Report, Source, operator_of, stage_of
from windrow.hosts.tally import OF, SLOWEST, Seen, Tally
from windrow.operators import Judge
from windrow.operators.operator import Wait
from windrow.operators.windows.window_operator import WindowOperator
from windrow.progress import START
from windrow.spec.names import PROGRESS
from windrow.spec.rules import Asked, BySource
from windrow.spec.rules.asked import INNER
from windrow.spec.rules.by_source import PART

RUNS = 16  # of windows, whose ends are named


# -- in a shard, or in one process -------------------------------------------------------------------------------------
def part_report(graph: Graph, outline: Outline, tally: Tally, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What one graph knows after a micro-batch, as JSON. ``before``: its last report."""
    known = {} if before is None else {_place(w): w for w in before["waits"]}
    waits = [_wait_json(wait, outline, tally.batch, known) for wait in graph.waits_for() if wait.holds != "promises"]
    windows = {node.name: op for node in graph.nodes if isinstance(op := node.operator, WindowOperator)}
    for wait in waits:
        if (window := windows.get(wait["at"])) is not None:
            wait["groups"], wait["ends"] = window.slowest(SLOWEST), window.open_ends(RUNS)
    state = {node.name: size for node in graph.nodes if (size := node.operator.state_bytes())}
    return {"format": FORMAT, "tally": tally.to_json(), "waits": waits, "state": state}


def note_judge(tally: Tally, source: str, judge: Judge, asked: int | None = None) -> None:
    """What a source has promised by its rule, and how far its partitions have come, if it promises for each. ``asked``:
    when it was, if that is new.
    """
    tally.note_promise(source, judge.promises.low)
    seen = tally.sources.setdefault(source, Seen())
    seen.asked = asked
    reached = _reached(judge)
    seen.parts = tuple(sorted(reached.items(), key=lambda each: (each[1], each[0]))[:SLOWEST])
    seen.parts_there = sum(at > START for at in reached.values())


def _reached(judge: Judge) -> dict[str, int]:
    """How far each partition has come: by its rows, or by an answer that says as much."""
    rule, memory = judge.rule, judge.memory
    inner = INNER if isinstance(rule, Asked) else ""
    by = rule.rule if isinstance(rule, Asked) else rule
    if not isinstance(by, BySource):
        return {}
    tops = memory.get(f"{inner}tops")
    known = [] if tops is None else tops.select(PART, pl.col(PROGRESS).fill_null(START)).rows()
    found = {str(part): int(top) for part, top in known}  # from some nothing has come
    asked = memory.get("asked")
    for part, floor in () if asked is None else asked.select(PART, "floor").drop_nulls().rows():
        name = str(json.loads(part))
        found[name] = max(found.get(name, START), floor + by.slack if floor > START else START)
    return found


def _place(wait: Mapping[str, Any]) -> tuple[Any, ...]:
    return wait["at"], wait["port"], wait["promise"]


def _wait_json(wait: Wait, outline: Outline, batch: int, known: Mapping[tuple[Any, ...], Any]) -> dict[str, Any]:
    stage, operator = stage_of(wait.at), operator_of(wait.at)
    before = known.get((wait.at, wait.port, wait.promise))
    found = {**asdict(wait), "stage": stage, "operator": operator, "groups": [], "ends": []}
    if before is not None:
        return {**found, "asks": before["asks"], "batch": before["batch"]}
    ways = outline.ways.get(stage)
    asks = {} if ways is None else ways.asks(operator, wait.port, wait.promise)
    return {**found, "asks": asks, "batch": batch}


# -- of all shards -----------------------------------------------------------------------------------------------------
def merged(parts: Iterable[Mapping[str, Any]], times: Mapping[int, int] | None = None) -> Report:
    """The report of a query from those of its shards."""
    found = [part for part in parts if part.get("format") == FORMAT]
    outlines = [Outline.from_json(part["outline"]) for part in found if part.get("outline")]
    outline = outlines[0] if outlines else NOTHING
    total, last = Tally(), max((part["tally"]["batch"] for part in found), default=-1)
    recent: dict[str, list[int]] = {}
    for part in found:
        tally = Tally.from_json(part["tally"])
        total.join(tally)
        for key, seen in tally.sources.items():
            total.sources[key] = seen  # only one shard knows about sources
        for name, (taken, given) in tally.recent.items() if tally.batch == last else ():
            counts = recent.setdefault(name, [0, 0])
            counts[0], counts[1] = counts[0] + taken, counts[1] + given
        total.recent_results += tally.recent_results if tally.batch == last else 0
    for name in ("late", "bad"):
        for key, aside in getattr(total, name).items():
            own = [getattr(Tally.from_json(part["tally"]), name).get(key) for part in found]
            aside.batch = max(a.batch for a in own if a is not None)
            aside.recent = sum(a.recent for a in own if a is not None and a.batch == aside.batch)
    sources = tuple(
        Source(each, total.sources.get(each.key, Seen()), total.rows.get(each.name, 0)) for each in outline.sources
    )
    state: dict[str, int] = {}
    for part in found:
        for name, size in part["state"].items():
            state[name] = state.get(name, 0) + size
    lines = _parts(total.flows, recent, state)
    held = _held([wait for part in found for wait in part["waits"]])
    return Report(
        outline,
        last,
        sources,
        held,
        lines,
        total.late,
        total.bad,
        total.results,
        total.recent_results,
        len(found),
        dict(times or {}),
    )


def _parts(
    flows: Mapping[str, Sequence[int]], recent: Mapping[str, Sequence[int]], state: Mapping[str, int]
) -> tuple[Part, ...]:
    """A line for each operator: rows are counted under its name, or under its source and its name."""
    found, left = [], dict(state)
    for key in flows:
        source, _, name = key.rpartition(OF)
        (taken, given), (taken_now, given_now) = flows[key], recent.get(key, (0, 0))
        found.append(Part(name, source, taken, given, taken_now, given_now, left.pop(name, 0)))
    return *found, *(Part(name, bytes=size) for name, size in left.items())


def _held(waits: Sequence[Mapping[str, Any]]) -> tuple[Held, ...]:
    """The waits of all shards, together where they are of the same operator."""
    by: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for wait in waits:
        by.setdefault((wait["stage"], wait["at"], wait["port"]), []).append(wait)
    found = []
    for (stage, at, port), same in by.items():
        first = min(same, key=lambda wait: int(wait["promise"]))
        groups = sorted(((g, v) for wait in same for g, v in wait["groups"]), key=lambda pair: int(pair[1]))
        found.append(
            Held(
                stage,
                operator_of(at),
                port,
                first["holds"],
                sum(wait["count"] for wait in same),
                sum(wait["bytes"] for wait in same),
                first["promise"],
                min(wait["since"] for wait in same),
                first["asks"],
                first["batch"],
                tuple((str(group), int(value)) for group, value in groups[:SLOWEST]),
                tuple(sorted({(int(low), int(high)) for wait in same for low, high in wait["ends"]})),
            )
        )
    return tuple(sorted(found, key=lambda each: (each.stage, each.port)))
