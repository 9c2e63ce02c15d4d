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


class Rules(NamedTuple):
    """``depth``: how many steps have rows. ``within`` is NONE without a greatest distance. ``latest``: of what is open
    at a level only the latest is ever needed. ``compares``: how many conditions there are.
    """

    depth: int
    recent: bool
    within: int
    past: bool
    outer: bool
    waits: bool
    latest: bool
    compares: int


class Pattern(NamedTuple):
    """``plan``: for each step its level (how many steps with rows there are up to it), and whether it is negated and
    repeated, as numbers: a kernel that takes few arrays is faster than one that takes many.
    """

    rules: Rules
    plan: NDArray[np.int64]


class Conditions(NamedTuple):
    """Comparisons between a row of one step and a later one: ``values`` and ``nulls`` have a row for each of them."""

    left: NDArray[np.int64]
    comparison: NDArray[np.int64]
    right: NDArray[np.int64]
    values: NDArray[np.int64]
    nulls: NDArray[np.bool_]


# Rows of the array of nodes. They are sorted by group and time, old ones first. Of old ones all is given, and of all of
# them it is written. ``PREV``: the place of the row before in its sequence, counted from the first row of its group;
# NONE for none. ``PLACE``: where the sequence that ends with this row stands among the open ones; NONE if it is not
# open. ``BASE``: the place of the sequence that it was made from. ``START``: when it began. ``UNTIL``: when the last
# open sequence of the group is over. ``DUE``: when the first comes out. ``MATCHED``: whether the row is in a result.
GROUP, TIMES, STEP, OLD, PREV, PLACE, BASE, START, UNTIL, DUE, MATCHED = range(11)
FIELDS = 11
LEVEL, NEGATED, REPEATED = range(3)  # rows of a plan


def run(pattern: Pattern, conditions: Conditions, nodes: NDArray[np.int64], promised: int) -> tuple[Ints, Ints, Bools]:
    """Results as pairs of a number and a row, the last row of each first; and which rows are still needed."""
    size = nodes.shape[1]
    if not size:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    from windrow.operators.kernels.automaton_kernel import run_all  # Numba takes a second to import

    needed = np.zeros(size, np.bool_)
    out, count = run_all(pattern.rules, pattern.plan, conditions, nodes, promised, needed)
    return out[0, :count], out[1, :count], needed
