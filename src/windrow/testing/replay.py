"""Replays: the same rows in many arrival orders, batch sizes and restarts must give the same answer."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from windrow.api.stream import Stream
from windrow.hosts.local import LocalRun
from windrow.logical.node import Time
from windrow.logical.nodes import (
    Filter,
    Join,
    MultiJoin,
    Node,
    Project,
    Scan,
    Top,
    WindowAggregate,
)
from windrow.operators.rows.retract import RETRACTED
from windrow.planner import Plan
from windrow.spec.names import STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.spec.time import physical
from windrow.testing.accounting import accounted, accounted_join, countable, countable_join
from windrow.testing.mismatch import Mismatch
from windrow.testing.oracle import meaning
from windrow.testing.oracle.admission import progress_values


def replay(query: Stream, runs: int = 20, seed: int = 0, restore: bool = True) -> None:
    """Run a query over its finite, in-process sources under ``runs`` random arrivals; raise Mismatch if one differs.

    Arrival is random within the declared slack (a source with a marker column arrives as it is). After every call
    the run is thrown away and a new one is restored from its snapshot.

    >>> from windrow import count, stream
    >>> rows = [{"t": t, "k": t % 3} for t in range(40)]
    >>> replay(stream(rows, progress="t", slack=7).window(range=10, slide=5).group_by("k").agg(n=count()))
    """
    expected, bad = meaning(query)
    for number in range(runs):
        rng = random.Random(f"{seed}/{number}")
        plan, again = query.plan(), query.plan()  # who restores has planned anew
        run = LocalRun(plan)
        released: list[pl.DataFrame] = []
        waiting = {
            read.scan.name: _batches(read.scan, query.sources[read.scan.name].data, read.by_rows, rng)
            for read in plan.reads()
        }
        while any(waiting.values()):
            name = rng.choice(sorted(n for n, batches in waiting.items() if batches))
            run.push(name, waiting[name].pop(0))
            released.append(_checked(run, query.node.times.get(WINDOW_END, Time()).lead, number))
            if restore:
                counts, state = run.counts, run.snapshot()
                run = LocalRun(again).restore(state)
                run.counts = counts
        released.append(run.end().results())
        if run.counts["rows_late"]:
            raise Mismatch(f"run {number} of seed {seed}: {run.counts['rows_late']} rows came later than promised")
        if _scanned_once(query) and not _tries_early(plan) and run.counts["rows_bad"] != bad.total():
            raise Mismatch(
                f"run {number} of seed {seed}: {run.counts['rows_bad']} rows were bad instead of {bad.total()}"
            )
        last = latest(pl.concat(released), query)
        compare(last, expected, f"run {number} of seed {seed}")
        if (counted := countable(query)) is not None:
            column, windows = counted
            accounted(run.counts, last, column, windows=windows, markers=_markers(query), where=f"run {number}")
        if (join := countable_join(query)) is not None:
            pairs = _bad_pairs(bad, join)
            accounted_join(run.counts, bad_pairs=pairs, markers=_markers(query), where=f"run {number}")


def _scanned_once(query: Stream) -> bool:
    names = [scan.name for scan in query.plan().scans()]
    return len(names) == len(set(names))


def _tries_early(plan: Plan) -> bool:
    """Whether a join tries functions for rows of which it does not know yet whether all other rows will come: which of
    those are bad depends on the order of its probes.
    """
    return any(stage.ring and isinstance(stage.node, MultiJoin) and stage.node.tests for stage in plan.stages())


def _bad_pairs(bad: Mapping[str, int], join: Node) -> int:
    """How many pairs its condition fails for."""
    if not isinstance(join, (Join, MultiJoin)) or join.test is None:
        return 0
    return sum(n for reason, n in bad.items() if reason.startswith(f"{join.test.name} failed: "))


def _markers(query: Stream) -> int:
    """How many rows of its sources are markers."""
    scans = query.plan().scans()
    found = [(s.source.marker, query.sources[s.name].data) for s in scans if s.source.marker is not None]
    return sum(int(data[marker].is_not_null().sum()) for marker, data in found)


def latest(results: pl.DataFrame, query: Stream) -> pl.DataFrame:
    """What a consumer has who keeps the highest version of each window and group; all rows where there are none."""
    if VERSION not in results.columns:
        return results
    node: Node = query.node
    while not isinstance(node, WindowAggregate):
        assert isinstance(node, (Filter, Project, Top))
        node = node.input
    by = [*(n for n, _ in node.keys if n in results.columns), WINDOW_START, WINDOW_END]
    kept = results.sort(VERSION).group_by(by, maintain_order=True).last().select(results.columns)
    return kept.filter(pl.col(STATUS) != RETRACTED).drop(VERSION, STATUS)


def _batches(scan: Scan, frame: pl.DataFrame, by_rows: bool, rng: random.Random) -> list[pl.DataFrame]:
    if by_rows:
        numbers = frame[scan.source.row_num[-1]].to_list()
        frame = frame[
            _arrival({r: n for r, n in enumerate(numbers) if n is not None}, frame, scan.source.row_slack, rng)
        ]
    elif scan.source.slack is not None:
        frame = frame[_arrival(progress_values(scan, frame), frame, scan.source.slack, rng)]
    batches, start = [], 0
    most = rng.choice([1, 3, 10, 1000])
    while start < frame.height:
        size = rng.randint(1, most)
        batches.append(frame[start : start + size])
        start += size
    return batches


def _arrival(at: dict[int, int], frame: pl.DataFrame, slack: int, rng: random.Random) -> list[int]:
    """A row may be delayed by up to the slack; rows without a progress value may come at any time.

    In integers: as a float, a large progress value would lose what a small slack is.
    """
    delayed = {row: (t + rng.randint(0, slack), rng.random()) for row, t in at.items()}
    anywhere = [(rng.randint(-(10**18), 10**18), 0.0) for _ in range(frame.height)]
    return sorted(range(frame.height), key=lambda row: delayed.get(row, anywhere[row]))


def _checked(run: LocalRun, lead: int, number: int) -> pl.DataFrame:
    """What was released; nothing may come out before a promise covers it. ``lead``: of window_end over promises."""
    results = run.results()
    if results.height and WINDOW_END in results.columns and VERSION not in results.columns and run.promised is not None:
        last = results.select(physical(pl.col(WINDOW_END), results.schema[WINDOW_END])).to_series().max()
        if isinstance(last, int) and last - lead >= run.promised:
            raise Mismatch(f"run {number}: a window ending at {last} was released before the promise {run.promised}")
    return results


def compare(found: pl.DataFrame, expected: pl.DataFrame, where: str = "") -> None:
    """Raise Mismatch unless both hold the same rows, in any order. Floats may differ in their last bits."""
    if found.columns != expected.columns:
        raise Mismatch(f"{where}: columns {found.columns} instead of {expected.columns}")
    left, right = _sorted(found), _sorted(expected)
    if len(left) != len(right) or any(not _same(a, b) for a, b in zip(left, right, strict=False)):
        missing = [r for r in right if not _in(r, left)] if len(left) < 2000 else []
        extra = [r for r in left if not _in(r, right)] if len(right) < 2000 else []
        raise Mismatch(
            f"{where}: {len(left)} rows instead of {len(right)}; missing {missing[:5]}, not expected {extra[:5]}"
        )


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=lambda row: [_order(v) for v in row])


def _order(value: Any) -> tuple[Any, ...]:
    if isinstance(value, float):  # last bits must not change the order
        return (1, "nan") if math.isnan(value) else (1, f"{value + 0.0:+.9e}")  # -0.0 is 0.0
    return (0, "") if value is None else (1, str(value))


def _in(row: Sequence[Any], rows: Sequence[Sequence[Any]]) -> bool:
    return any(_same(row, other) for other in rows)


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, list) and isinstance(y, list):
        return _same(x, y)
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_equal(x[k], y[k]) for k in x)
    if isinstance(x, float) and isinstance(y, float):
        return (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
    return bool(x == y)
