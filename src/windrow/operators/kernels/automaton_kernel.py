"""The compiled half of ``automaton``: one pass over the rows of each group."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.operators.kernels.automaton import (
    BASE,
    DUE,
    GROUP,
    LEVEL,
    MATCHED,
    NEGATED,
    OLD,
    PLACE,
    PREV,
    REPEATED,
    START,
    STEP,
    TIMES,
    UNTIL,
)
from windrow.operators.kernels.compiled import compiled, inlined

NEVER = (1 << 63) - 1  # END, as a number that Numba knows


@compiled
def run_all(rules: Any, plan: Any, conditions: Any, nodes: Any, promised: int, needed: Any) -> Any:
    """Results as pairs of a number and a row; says of each row whether it is still needed."""
    size = nodes.shape[1]
    most, first = 0, 0
    for row in range(1, size + 1):
        if row == size or nodes[GROUP, row] != nodes[GROUP, first]:
            most, first = max(most, row - first), row
    lists = np.empty((rules.depth + 1, most), np.int64)  # what is open at each level; -1 where it has left
    ends = np.zeros((rules.depth + 1, 2), np.int64)  # where each list begins and ends
    out = np.empty((2, 1024), np.int64)
    count, results, after = 0, 0, 0
    while after < size:
        first = after
        while after < size and nodes[GROUP, after] == nodes[GROUP, first]:
            after += 1
        for level in range(rules.depth + 1):
            ends[level, 0] = ends[level, 1] = 0
        counter = _loaded(plan, nodes, lists, ends, first, after)
        for row in range(first, after):
            if nodes[OLD, row]:
                continue
            done = _step(rules, plan, conditions, nodes, lists, ends, row, counter)
            counter += 1
            if done:
                out, count = _emitted(nodes, out, count, results, row)
                results += 1
                if rules.past and nodes[PREV, row] >= 0:
                    _forget(rules, nodes, lists, ends)
        out, count, results = _over(rules, nodes, lists, ends, first, after, promised, out, count, results)
        _keep(nodes, needed, lists, first, after)
    return out, count


@inlined
def _loaded(plan: Any, nodes: Any, lists: Any, ends: Any, first: int, after: int) -> int:
    """Read what is open; returns a place that is after all others."""
    counter = 0
    for row in range(first, after):
        if not nodes[OLD, row]:
            break
        if nodes[PREV, row] >= 0:
            nodes[PREV, row] += first
        counter = max(counter, nodes[PLACE, row] + 1, nodes[BASE, row] + 1)
        if nodes[PLACE, row] >= 0:
            here = plan[LEVEL, nodes[STEP, row]]
            at = ends[here, 1]
            while at > 0 and nodes[PLACE, lists[here, at - 1]] > nodes[PLACE, row]:
                lists[here, at] = lists[here, at - 1]
                at -= 1
            lists[here, at] = row
            ends[here, 1] += 1
    return counter


@inlined
def _step(rules: Any, plan: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, counter: int) -> bool:
    """One row. True if a result ends with it."""
    step = nodes[STEP, row]
    here = plan[LEVEL, step]
    nodes[PREV, row], nodes[PLACE, row], nodes[BASE, row], nodes[START, row] = -1, -1, -1, nodes[TIMES, row]
    _expire(rules, nodes, lists, ends, nodes[TIMES, row])
    if plan[NEGATED, step]:
        _negate(rules, conditions, nodes, lists, ends, row, here)
        return False
    extended = _found(rules, conditions, nodes, lists, ends, row, here) if plan[REPEATED, step] else -1
    taken = -1
    if here > 1 and (rules.recent or extended < 0):
        taken = _found(rules, conditions, nodes, lists, ends, row, here - 1)
    if extended >= 0 and taken >= 0 and nodes[BASE, lists[here, extended]] < nodes[PLACE, lists[here - 1, taken]]:
        extended = -1  # a newer sequence is there to begin with
    if extended >= 0:
        _extend(nodes, lists, row, here, extended)
        return False
    if taken >= 0:
        _take(rules, nodes, lists, row, here - 1, taken)
    elif here > 1:
        return bool(rules.outer and here == rules.depth)
    if here == rules.depth and not rules.waits:
        return True
    if rules.latest and here < rules.depth:
        _clear(nodes, lists, ends, here)
    nodes[PLACE, row] = counter
    lists[here, ends[here, 1]] = row
    ends[here, 1] += 1
    return False


@inlined
def _expire(rules: Any, nodes: Any, lists: Any, ends: Any, time: int) -> None:
    """What is over leaves from the front of its list, except what waits to come out."""
    for level in range(1, rules.depth + 1):
        if rules.waits and level == rules.depth:
            continue
        while ends[level, 0] < ends[level, 1]:
            entry = lists[level, ends[level, 0]]
            if entry >= 0 and (rules.within < 0 or time - nodes[START, entry] <= rules.within):
                break
            if entry >= 0:
                nodes[PLACE, entry] = -1
            ends[level, 0] += 1


@inlined
def _negate(rules: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, here: int) -> None:
    """A row of a negated step ends what stands before it: all that fits, or the earliest."""
    for at in range(ends[here, 0], ends[here, 1]):
        entry = lists[here, at]
        if entry >= 0 and _fits(rules, conditions, nodes, entry, row):
            nodes[PLACE, entry] = -1
            lists[here, at] = -1
            if not rules.recent:
                break


@inlined
def _found(rules: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, level: int) -> int:
    """Where in a list the latest or the earliest sequence is that can take a row; -1 for nowhere."""
    low, high = ends[level, 0], ends[level, 1]
    for number in range(high - low):
        at = high - 1 - number if rules.recent else low + number
        entry = lists[level, at]
        if entry >= 0 and _fits(rules, conditions, nodes, entry, row):
            return int(at)
    return -1


@inlined
def _fits(rules: Any, conditions: Any, nodes: Any, entry: int, row: int) -> bool:
    """Whether a sequence can take a row: in time, and with all comparisons."""
    if rules.within >= 0 and nodes[TIMES, row] - nodes[START, entry] > rules.within:
        return False
    for number in range(rules.compares):
        if conditions.right[number] != nodes[STEP, row]:
            continue
        at = entry
        while at >= 0:
            if nodes[STEP, at] == conditions.left[number]:
                if conditions.nulls[number, at] or conditions.nulls[number, row]:
                    return False
                a, b = conditions.values[number, at], conditions.values[number, row]
                if not _holds(conditions.comparison[number], a, b):
                    return False
            at = nodes[PREV, at]
    return True


@inlined
def _holds(comparison: int, a: int, b: int) -> bool:
    if comparison == 0:
        return a == b
    if comparison == 1:
        return a != b
    if comparison == 2:
        return a < b
    if comparison == 3:
        return a <= b
    return a > b if comparison == 4 else a >= b


@inlined
def _extend(nodes: Any, lists: Any, row: int, here: int, at: int) -> None:
    """A sequence gets one more row of its last step, and stays where it is."""
    entry = lists[here, at]
    nodes[PREV, row], nodes[START, row] = entry, nodes[START, entry]
    nodes[BASE, row], nodes[PLACE, row] = nodes[BASE, entry], nodes[PLACE, entry]
    nodes[PLACE, entry] = -1
    lists[here, at] = row


@inlined
def _take(rules: Any, nodes: Any, lists: Any, row: int, level: int, at: int) -> None:
    """A row follows a sequence; in a chronicle nothing else can."""
    entry = lists[level, at]
    nodes[PREV, row], nodes[START, row], nodes[BASE, row] = entry, nodes[START, entry], nodes[PLACE, entry]
    if not rules.recent:
        nodes[PLACE, entry] = -1
        lists[level, at] = -1


@inlined
def _clear(nodes: Any, lists: Any, ends: Any, level: int) -> None:
    for at in range(ends[level, 0], ends[level, 1]):
        if lists[level, at] >= 0:
            nodes[PLACE, lists[level, at]] = -1
    ends[level, 0] = ends[level, 1]


@inlined
def _forget(rules: Any, nodes: Any, lists: Any, ends: Any) -> None:
    """Everything that is open."""
    for level in range(1, rules.depth + 1):
        _clear(nodes, lists, ends, level)


@inlined
def _emitted(nodes: Any, out: Any, count: int, number: int, row: int) -> Any:
    """A result: all rows of the sequence that ends with a row, that one first."""
    at = row
    while at >= 0:
        if count == out.shape[1]:
            grown = np.empty((2, 2 * count), np.int64)
            for i in range(count):
                grown[0, i], grown[1, i] = out[0, i], out[1, i]
            out = grown
        out[0, count], out[1, count] = number, at
        count += 1
        nodes[MATCHED, at] = 1
        at = nodes[PREV, at]
    return out, count


@inlined
def _over(
    rules: Any,
    nodes: Any,
    lists: Any,
    ends: Any,
    first: int,
    after: int,
    promised: int,
    out: Any,
    count: int,
    results: int,
) -> Any:
    """What no row to come can join leaves, and comes out if it has waited for that."""
    last, soon = -(1 << 62), NEVER
    for level in range(1, rules.depth + 1):
        for at in range(ends[level, 0], ends[level, 1]):
            entry = lists[level, at]
            if entry < 0:
                continue
            end = nodes[START, entry] + rules.within if rules.within >= 0 else NEVER
            waits = rules.waits and level == rules.depth
            if promised != NEVER and end >= promised:
                last = max(last, end)
                soon = min(soon, end) if waits else soon
                continue
            nodes[PLACE, entry] = -1
            if waits:
                out, count = _emitted(nodes, out, count, results, entry)
                results += 1
    for row in range(first, after):
        nodes[UNTIL, row], nodes[DUE, row] = last, soon
    return out, count, results


@inlined
def _keep(nodes: Any, needed: Any, ranks: Any, first: int, after: int) -> None:
    """Which rows open sequences have; ``prev`` becomes a place among them."""
    for row in range(after - 1, first - 1, -1):
        needed[row] = needed[row] or nodes[PLACE, row] >= 0
        if needed[row] and nodes[PREV, row] >= 0:
            needed[nodes[PREV, row]] = True
    rank = 0
    for row in range(first, after):
        if needed[row]:
            ranks[0, row - first] = rank
            rank += 1
            if nodes[PREV, row] >= 0:  # it comes before this row, so its rank is known
                nodes[PREV, row] = ranks[0, nodes[PREV, row] - first]
