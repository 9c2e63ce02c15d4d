"""The automaton of a sequence: rows of each key, in order, make, extend and end sequences.

A sequence is known by its last row: ``prev`` leads from there to its other rows. The rows of a key that came before
(``old``) say which sequences are open: those that have a ``place``. What is open at each level (with rows of so many
steps) is a list, in the order in which sequences got there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.windows.tuples import Bools, Ints

NONE = -1
COMPARISONS = {"=": 0, "<>": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


class Pattern(NamedTuple):
    """The steps by number: ``level`` is how many steps with rows there are up to this one. ``within`` is NONE without a
    greatest distance. ``latest``: of what is open at a level only the latest is ever needed.
    """

    level: NDArray[np.int64]
    negated: Bools
    repeated: Bools
    depth: int
    recent: bool
    within: int
    past: bool
    outer: bool
    waits: bool
    latest: bool


class Conditions(NamedTuple):
    """Comparisons between a row of one step and a later one: ``values`` and ``nulls`` have a row for each of them."""

    left: NDArray[np.int64]
    comparison: NDArray[np.int64]
    right: NDArray[np.int64]
    values: NDArray[np.int64]
    nulls: NDArray[np.bool_]


class Nodes(NamedTuple):
    """Rows, sorted by group and time, old ones first. What is known of old rows is read, of all of them written.

    ``prev``: the place of the row before in its sequence, counted from the first row of its group; NONE for none.
    ``place``: where the sequence that ends with this row stands among the open ones; NONE if it is not open. ``base``:
    the ``place`` of the sequence that it was made from. ``start``: when it began. ``until``: when the last open
    sequence of the group is over. ``due``: when the first one comes out. ``matched``: whether the row is in a result.
    """

    group: Ints
    times: Ints
    steps: NDArray[np.int8]
    old: Bools
    prev: Ints
    place: Ints
    base: Ints
    start: Ints
    until: Ints
    due: Ints
    matched: Bools


def run(pattern: Pattern, conditions: Conditions, nodes: Nodes, promised: int) -> tuple[Ints, Ints, Bools]:
    """Results as pairs of a number and a row, the last row of each first; and which rows are still needed."""
    size = len(nodes.times)
    if not size:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    from windrow.operators.kernels.automaton_kernel import run_all  # Numba takes a second to import

    needed = np.zeros(size, np.bool_)
    numbers, rows = run_all(pattern, conditions, nodes, promised, needed)
    return numbers, rows, needed
