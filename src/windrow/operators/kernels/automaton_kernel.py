"""The compiled half of ``automaton``: one pass over the rows of each group."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.operators.kernels.compiled import compiled

NEVER = (1 << 63) - 1  # END, as a number that Numba knows


@compiled
def run_all(pattern: Any, conditions: Any, nodes: Any, promised: int, needed: Any) -> Any:
    """Results as pairs of a number and a row; says of each row whether it is still needed."""
    size = len(nodes.times)
    most, first = 0, 0
    for row in range(1, size + 1):
        if row == size or nodes.group[row] != nodes.group[first]:
            most, first = max(most, row - first), row
    lists = np.empty((pattern.depth + 1, most), np.int64)  # what is open at each level; -1 where it has left
    ends = np.zeros((pattern.depth + 1, 2), np.int64)  # where each list begins and ends
    out = np.empty((2, 1024), np.int64)
    count, results, after = 0, 0, 0
    while after < size:
        first = after
        while after < size and nodes.group[after] == nodes.group[first]:
            after += 1
        ends[:] = 0
        counter = _loaded(pattern, nodes, lists, ends, first, after)
        for row in range(first, after):
            if nodes.old[row]:
                continue
            done = _step(pattern, conditions, nodes, lists, ends, row, counter)
            counter += 1
            if done:
                out, count = _emitted(nodes, out, count, results, row)
                results += 1
                if pattern.past and nodes.prev[row] >= 0:
                    _forget(pattern, nodes, lists, ends)
        out, count, results = _over(pattern, nodes, lists, ends, first, after, promised, out, count, results)
        _keep(nodes, needed, lists, first, after)
    return out[0, :count], out[1, :count]


@compiled
def _loaded(pattern: Any, nodes: Any, lists: Any, ends: Any, first: int, after: int) -> int:
    """Read what is open; returns a place that is after all others."""
    counter = 0
    for row in range(first, after):
        if not nodes.old[row]:
            break
        if nodes.prev[row] >= 0:
            nodes.prev[row] += first
        counter = max(counter, nodes.place[row] + 1, nodes.base[row] + 1)
        if nodes.place[row] >= 0:
            here = pattern.level[nodes.steps[row]]
            at = ends[here, 1]
            while at > 0 and nodes.place[lists[here, at - 1]] > nodes.place[row]:
                lists[here, at] = lists[here, at - 1]
                at -= 1
            lists[here, at] = row
            ends[here, 1] += 1
    return counter


@compiled
def _step(pattern: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, counter: int) -> bool:
    """One row. True if a result ends with it."""
    step = nodes.steps[row]
    here = pattern.level[step]
    nodes.prev[row], nodes.place[row], nodes.base[row], nodes.start[row] = -1, -1, -1, nodes.times[row]
    _expire(pattern, nodes, lists, ends, nodes.times[row])
    if pattern.negated[step]:
        _negate(pattern, conditions, nodes, lists, ends, row, here)
        return False
    extended = _found(pattern, conditions, nodes, lists, ends, row, here) if pattern.repeated[step] else -1
    taken = -1
    if here > 1 and (pattern.recent or extended < 0):
        taken = _found(pattern, conditions, nodes, lists, ends, row, here - 1)
    if extended >= 0 and taken >= 0 and nodes.base[lists[here, extended]] < nodes.place[lists[here - 1, taken]]:
        extended = -1  # a newer sequence is there to begin with
    if extended >= 0:
        _extend(nodes, lists, row, here, extended)
        return False
    if taken >= 0:
        _take(pattern, nodes, lists, row, here - 1, taken)
    elif here > 1:
        return bool(pattern.outer and here == pattern.depth)
    if here == pattern.depth and not pattern.waits:
        return True
    if pattern.latest and here < pattern.depth:
        _clear(nodes, lists, ends, here)
    nodes.place[row] = counter
    lists[here, ends[here, 1]] = row
    ends[here, 1] += 1
    return False


@compiled
def _expire(pattern: Any, nodes: Any, lists: Any, ends: Any, time: int) -> None:
    """What is over leaves from the front of its list, except what waits to come out."""
    for level in range(1, pattern.depth + 1):
        if pattern.waits and level == pattern.depth:
            continue
        while ends[level, 0] < ends[level, 1]:
            entry = lists[level, ends[level, 0]]
            if entry >= 0 and (pattern.within < 0 or time - nodes.start[entry] <= pattern.within):
                break
            if entry >= 0:
                nodes.place[entry] = -1
            ends[level, 0] += 1


@compiled
def _negate(pattern: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, here: int) -> None:
    """A row of a negated step ends what stands before it: all that fits, or the earliest."""
    for at in range(ends[here, 0], ends[here, 1]):
        entry = lists[here, at]
        if entry >= 0 and _fits(pattern, conditions, nodes, entry, row):
            nodes.place[entry] = -1
            lists[here, at] = -1
            if not pattern.recent:
                break


@compiled
def _found(pattern: Any, conditions: Any, nodes: Any, lists: Any, ends: Any, row: int, level: int) -> int:
    """Where in a list the latest or the earliest sequence is that can take a row; -1 for nowhere."""
    low, high = ends[level, 0], ends[level, 1]
    for number in range(high - low):
        at = high - 1 - number if pattern.recent else low + number
        entry = lists[level, at]
        if entry >= 0 and _fits(pattern, conditions, nodes, entry, row):
            return int(at)
    return -1


@compiled
def _fits(pattern: Any, conditions: Any, nodes: Any, entry: int, row: int) -> bool:
    """Whether a sequence can take a row: in time, and with all comparisons."""
    if pattern.within >= 0 and nodes.times[row] - nodes.start[entry] > pattern.within:
        return False
    for number in range(len(conditions.left)):
        if conditions.right[number] != nodes.steps[row]:
            continue
        at = entry
        while at >= 0:
            if nodes.steps[at] == conditions.left[number]:
                if conditions.nulls[number, at] or conditions.nulls[number, row]:
                    return False
                a, b = conditions.values[number, at], conditions.values[number, row]
                if not _holds(conditions.comparison[number], a, b):
                    return False
            at = nodes.prev[at]
    return True


@compiled
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


@compiled
def _extend(nodes: Any, lists: Any, row: int, here: int, at: int) -> None:
    """A sequence gets one more row of its last step, and stays where it is."""
    entry = lists[here, at]
    nodes.prev[row], nodes.start[row] = entry, nodes.start[entry]
    nodes.base[row], nodes.place[row] = nodes.base[entry], nodes.place[entry]
    nodes.place[entry] = -1
    lists[here, at] = row


@compiled
def _take(pattern: Any, nodes: Any, lists: Any, row: int, level: int, at: int) -> None:
    """A row follows a sequence; in a chronicle nothing else can."""
    entry = lists[level, at]
    nodes.prev[row], nodes.start[row], nodes.base[row] = entry, nodes.start[entry], nodes.place[entry]
    if not pattern.recent:
        nodes.place[entry] = -1
        lists[level, at] = -1


@compiled
def _clear(nodes: Any, lists: Any, ends: Any, level: int) -> None:
    for at in range(ends[level, 0], ends[level, 1]):
        if lists[level, at] >= 0:
            nodes.place[lists[level, at]] = -1
    ends[level, 0] = ends[level, 1]


@compiled
def _forget(pattern: Any, nodes: Any, lists: Any, ends: Any) -> None:
    """Everything that is open."""
    for level in range(1, pattern.depth + 1):
        _clear(nodes, lists, ends, level)


@compiled
def _emitted(nodes: Any, out: Any, count: int, number: int, row: int) -> Any:
    """A result: all rows of the sequence that ends with a row, that one first."""
    at = row
    while at >= 0:
        if count == out.shape[1]:
            grown = np.empty((2, 2 * count), np.int64)
            grown[:, :count] = out
            out = grown
        out[0, count], out[1, count] = number, at
        count += 1
        nodes.matched[at] = True
        at = nodes.prev[at]
    return out, count


@compiled
def _over(
    pattern: Any,
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
    for level in range(1, pattern.depth + 1):
        for at in range(ends[level, 0], ends[level, 1]):
            entry = lists[level, at]
            if entry < 0:
                continue
            end = nodes.start[entry] + pattern.within if pattern.within >= 0 else NEVER
            waits = pattern.waits and level == pattern.depth
            if promised != NEVER and end >= promised:
                last = max(last, end)
                soon = min(soon, end) if waits else soon
                continue
            nodes.place[entry] = -1
            if waits:
                out, count = _emitted(nodes, out, count, results, entry)
                results += 1
    for row in range(first, after):
        nodes.until[row], nodes.due[row] = last, soon
    return out, count, results


@compiled
def _keep(nodes: Any, needed: Any, ranks: Any, first: int, after: int) -> None:
    """Which rows open sequences have; ``prev`` becomes a place among them."""
    for row in range(after - 1, first - 1, -1):
        needed[row] = needed[row] or nodes.place[row] >= 0
        if needed[row] and nodes.prev[row] >= 0:
            needed[nodes.prev[row]] = True
    rank = 0
    for row in range(first, after):
        if needed[row]:
            ranks[0, row - first] = rank
            rank += 1
            if nodes.prev[row] >= 0:  # it comes before this row, so its rank is known
                nodes.prev[row] = ranks[0, nodes.prev[row] - first]
