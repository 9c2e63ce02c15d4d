"""The compiled part of the fixed table: words in, words out, no allocation per tuple (Li 8.3.3, Figure 8-6).

An entry is a row of 64-bit words: the pane, the words of its keys, the words of its partial. Floats are kept as their
bits. Everything that changes is in the arrays that are given, so that a call can stop after any tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.operators.kernels.compiled import compiled
from windrow.windows.tuples import Ints

EMPTY = -(1 << 63)  # the pane of a slot without an entry
BLOCK = 6  # slots are counted in blocks of 2**BLOCK, so that empty ones are passed over
# What ``marks`` holds: the newest age, the entries in the table, those of an older age, where the slow flush goes on,
# the tuples since it last put one out, and what keeps touches from being optimised away. An age is a number of panes
# that grow old together.
NOW, RESIDENT, OLD, PLACE, SINCE, TOUCHED = range(6)
AHEAD = 64  # tuples whose slots are touched before the first of them is processed
# How a word of a partial is merged. MOMENTS stands for three words: count, mean, squared distances.
ADD, LEAST, MOST, ADD_FLOAT, LEAST_FLOAT, MOST_FLOAT, MOMENTS = range(7)


@compiled
def slot_of(rows: Ints, i: int, words: int, slots: int) -> Any:
    """The slot of a group: by its key words alone, so that a new window's entry takes the place of the old one."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(1, 1 + words):
        h = (h ^ np.uint64(rows[i, j])) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
    h *= np.uint64(0x94D049BB133111EB)
    return np.int64(((h >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))


@compiled
def _merge(cells: Ints, s: int, rows: Ints, i: int, ops: Ints, first: int) -> None:
    into, given = cells.view(np.float64), rows.view(np.float64)
    j = first
    while j < cells.shape[1]:
        op = ops[j - first]
        if op == ADD:
            cells[s, j] += rows[i, j]
        elif op == LEAST:
            cells[s, j] = min(cells[s, j], rows[i, j])
        elif op == MOST:
            cells[s, j] = max(cells[s, j], rows[i, j])
        elif op == ADD_FLOAT:
            into[s, j] += given[i, j]
        elif op == LEAST_FLOAT:
            into[s, j] = min(into[s, j], given[i, j])
        elif op == MOST_FLOAT:
            into[s, j] = max(into[s, j], given[i, j])
        else:
            _moments(into, s, given, i, j)
            j += 2
        j += 1


@compiled
def _moments(into: Any, s: int, given: Any, i: int, j: int) -> None:
    """The update of Chan, Golub and LeVeque; an empty side changes nothing."""
    a, b = into[s, j], given[i, j]
    if b == 0.0:
        return
    if a == 0.0:
        for k in range(j, j + 3):
            into[s, k] = given[i, k]
        return
    delta, share = given[i, j + 1] - into[s, j + 1], b / (a + b)
    into[s, j] = a + b
    into[s, j + 1] += delta * share
    into[s, j + 2] += given[i, j + 2] + delta * delta * a * share


@compiled
def _copy(source: Ints, i: int, target: Ints, at: int) -> None:
    for j in range(source.shape[1]):
        target[at, j] = source[i, j]


@compiled
def _note(tally: Ints, marks: Ints, age: Any, more: int) -> None:
    """An entry of this age has come (1) or gone (-1)."""
    marks[RESIDENT] += more
    if age < marks[NOW]:
        marks[OLD] += more
    if tally.size > 1:
        tally[age % tally.size] += more


@compiled
def _leave(cells: Ints, s: int, counts: Ints, tally: Ints, marks: Ints, out: Ints, at: int, grain: int) -> None:
    """Put an entry out, and leave its slot empty."""
    _note(tally, marks, cells[s, 0] // grain, -1)
    _copy(cells, s, out, at)
    cells[s, 0] = EMPTY
    counts[s >> BLOCK] -= 1


@compiled
def sweep(cells: Ints, counts: Ints, tally: Ints, marks: Ints, out: Ints, at: int, grain: int, limit: int) -> Any:
    """Put out all entries below an age; returns where ``out`` goes on."""
    end = limit * grain
    for block in range(counts.size):
        if counts[block] > 0:
            for s in range(block << BLOCK, min((block + 1) << BLOCK, cells.shape[0])):
                if cells[s, 0] != EMPTY and cells[s, 0] < end:
                    _leave(cells, s, counts, tally, marks, out, at, grain)
                    at += 1
    return at


@compiled
def turn(
    cells: Ints,
    counts: Ints,
    tally: Ints,
    marks: Ints,
    out: Ints,
    at: int,
    grain: int,
    late: int,
    ordered: bool,
    age: Any,
) -> Any:
    """A new age begins: what may stay no longer is put out. ``late``: ages that it may, none if negative."""
    before = marks[NOW]
    if ordered and marks[OLD] > 0:
        at = sweep(cells, counts, tally, marks, out, at, grain, before)
    marks[NOW] = age
    marks[OLD] = marks[RESIDENT]
    marks[SINCE] = 0
    if late < 0 or marks[RESIDENT] == 0:
        return at
    over = late == 0
    for other in range(before - late, min(before + 1, age - late)):  # one look at the whole table only if it must be
        over = over or tally[other % tally.size] > 0
    return sweep(cells, counts, tally, marks, out, at, grain, age - late) if over else at


@compiled
def _put_one_out(cells: Ints, counts: Ints, tally: Ints, marks: Ints, out: Ints, at: int, grain: int) -> Any:
    """The next old entry in the order of slots. There is one, or this would not end."""
    end, slots = marks[NOW] * grain, cells.shape[0]
    s = marks[PLACE]
    while True:
        if s >= slots:
            s = 0
        if counts[s >> BLOCK] == 0:
            s = ((s >> BLOCK) + 1) << BLOCK
        elif cells[s, 0] != EMPTY and cells[s, 0] < end:
            break
        else:
            s += 1
    _leave(cells, s, counts, tally, marks, out, at, grain)
    marks[PLACE] = s + 1
    return at + 1


@compiled
def _same(cells: Ints, s: int, rows: Ints, i: int, words: int) -> Any:
    for j in range(1 + words):  # noqa: SIM110 (Numba has no generators)
        if cells[s, j] != rows[i, j]:
            return False
    return True


@compiled
def _touch(rows: Ints, i: int, cells: Ints, words: int, places: Ints) -> Any:
    """The slots of the next tuples. Loads that wait for no other take as long together as one of them alone."""
    last, seen = cells.shape[1] - 1, np.int64(0)
    for k in range(min(AHEAD, rows.shape[0] - i)):
        s = slot_of(rows, i + k, words, cells.shape[0])
        places[k] = s
        seen += cells[s, 0] ^ cells[s, last]
    return seen


@compiled
def put(
    rows: Ints,
    cells: Ints,
    ops: Ints,
    words: int,
    counts: Ints,
    tally: Ints,
    marks: Ints,
    out: Ints,
    grain: int,
    late: int,
    every: int,
    ordered: bool,
    floor: int,
) -> Any:
    """ProcessTuple of Figure 8-6 for some tuples; returns how many entries are in ``out``.

    ``every``: an old entry leaves with every so many tuples; 0: only collisions and the end of an age put entries out.
    ``floor``: ages below it are promised to be over, so that nothing of them may wait here.
    """
    at, age, pane_before = 0, np.int64(0), np.int64(EMPTY)
    places = np.empty(AHEAD, np.int64)
    for i in range(rows.shape[0]):
        if i % AHEAD == 0:
            marks[TOUCHED] = _touch(rows, i, cells, words, places)
        pane = rows[i, 0]
        if pane != pane_before:
            age, pane_before = pane // grain, pane
        if age < floor or (late > 0 and age < marks[NOW] - late):
            _copy(rows, i, out, at)
            at += 1
            continue
        if age > marks[NOW]:
            at = turn(cells, counts, tally, marks, out, at, grain, late, ordered, age)
        if every > 0 and marks[OLD] > 0:
            marks[SINCE] += 1
            if marks[SINCE] >= every:
                marks[SINCE] = 0
                at = _put_one_out(cells, counts, tally, marks, out, at, grain)
        s = places[i % AHEAD]
        if cells[s, 0] == pane and _same(cells, s, rows, i, words):
            _merge(cells, s, rows, i, ops, 1 + words)
            continue
        if cells[s, 0] == EMPTY:
            counts[s >> BLOCK] += 1
        else:
            if ordered and marks[OLD] > 0 and cells[s, 0] == pane:  # two of the new window: the old one goes first
                at = sweep(cells, counts, tally, marks, out, at, grain, marks[NOW])
            _note(tally, marks, cells[s, 0] // grain, -1)
            _copy(cells, s, out, at)
            at += 1
        _copy(rows, i, cells, s)
        _note(tally, marks, age, 1)
    return at
