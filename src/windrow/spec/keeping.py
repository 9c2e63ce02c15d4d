"""How a join keeps the rows of its sides: the ways there are, and their names."""

from __future__ import annotations

from itertools import product
from typing import Literal

# How a join keeps the rows of a side: in sorted runs, under a hash table, or as a list that is scanned (nested loops).
# What has expired leaves a table or list when a promise frees it; a lazy one is rid of it when a probe comes by.
Keeping = Literal["runs", "hash", "loops", "lazy hash", "lazy loops"]
RUNS: Keeping = "runs"
BY_COST = "oa"  # the way follows from what the join sees, and changes with it
LETTERS: dict[str, tuple[Keeping, Keeping]] = {"h": ("hash", "lazy hash"), "n": ("loops", "lazy loops")}
# Joins that differ only in how they keep rows, and so can go on with each other's state: by name, the way of each side.
# The first letter is about the left rows, which right rows probe (Kang et al.).
KEPT: dict[str, tuple[Keeping, Keeping]] = {
    "runs": (RUNS, RUNS),
    **{f"{a}{b}j": (LETTERS[a][0], LETTERS[b][0]) for a, b in product("hn", repeat=2)},
    **{f"{a}{b}j-lazy": (LETTERS[a][1], LETTERS[b][1]) for a, b in product("hn", repeat=2)},
}
ALIKE: tuple[str, ...] = (BY_COST, *KEPT)
