"""What it costs to keep the rows of a side of a join in one way or another: Kang et al.'s model, by the batch.

Eqs. 2 and 3 count the tuples that a probe, an insertion and an invalidation touch. Here a batch has fixed costs, too,
a bucket is in the order of time, so that what expires costs no more than what is put in, and sorted runs are a third
way. The unit costs are nanoseconds on the running machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2

from windrow.spec.keeping import RUNS, Keeping


@dataclass(frozen=True)
class Unit:
    """Nanoseconds. ``scan`` is C_n, a row that nested loops look at; ``chase`` C_h, one in a bucket. ``enter``: to find
    a bucket; ``chain``: to put a row into one, and to take it out; ``pair``: what a pair costs more if pairs are not
    found in the order of runs; ``keep``: to put a row behind others. ``sort``: a
    row of a batch, for each doubling of the batch; ``gallop``: a step of the search in a run, ``merge``: to write a row
    into a larger run. ``call``, ``run``: a batch, and each run that it is compared with.
    """

    scan: float = 0.9
    chase: float = 4.5
    enter: float = 12.0
    chain: float = 20.0
    pair: float = 12.0
    keep: float = 100.0
    sort: float = 5.0
    gallop: float = 4.0
    merge: float = 90.0
    call: float = 13_000.0
    run: float = 5_000.0


@dataclass(frozen=True)
class Probe:
    """A batch of the other side against the rows that are held: its ``rows``, how many are ``held``, and ``alike``, the
    share of these with the key of a row. ``near``: how many of them are near in time, too, for a row on average.
    """

    rows: int
    held: int
    alike: float
    near: float


def probed(way: Keeping, unit: Unit, probe: Probe) -> float:
    """What a batch costs that looks for partners in rows that are kept so."""
    return _PROBED[way](unit, probe)


def _by_loops(unit: Unit, probe: Probe) -> float:
    return unit.call + probe.rows * (probe.held * unit.scan + probe.near * unit.pair)


def _by_hash(unit: Unit, probe: Probe) -> float:
    """A bucket has the rows of a key, whatever their time, and a few of others."""
    touched = probe.held * probe.alike + 0.5
    return unit.call + probe.rows * (unit.enter + touched * unit.chase + probe.near * unit.pair)


def _by_runs(unit: Unit, probe: Probe) -> float:
    """In each run a row is searched from the place of the row before it, and its partners are next to each other."""
    runs = _runs(probe.rows, probe.held)
    search = probe.rows * runs * unit.gallop * (1 + log2(1 + probe.held / max(1, probe.rows)))
    return runs * unit.run + search + probe.rows * probe.near * unit.scan


def inserted(way: Keeping, unit: Unit, rows: int, held: int) -> float:
    """So many rows of a batch are put among those of their own side, and leave again."""
    if not rows:
        return 0.0
    behind = unit.call + rows * unit.keep * (1 + _doublings(rows, held) / 4)
    if way == "loops":
        return behind
    if way == "hash":
        return behind + rows * unit.chain
    return unit.call + rows * unit.merge * (1 + _doublings(rows, held))


def arranged(unit: Unit, rows: int) -> float:
    """A batch is sorted, which it is if one of the sides, or both, are in runs."""
    return rows * unit.sort * log2(2 + rows)


def cheapest(costs: Sequence[Mapping[Keeping, float]], arranging: float) -> tuple[Keeping, Keeping]:
    """The ways of both sides together. ``costs``: of each side by way; ``arranging``: to sort the batches of both.

    >>> cheapest([{"runs": 1, "hash": 2}, {"runs": 1, "hash": 2}], 1.5), cheapest([{"runs": 1, "hash": 2}] * 2, 3)
    (('runs', 'runs'), ('hash', 'hash'))
    """

    def together(ways: tuple[Keeping, Keeping]) -> float:
        return costs[0][ways[0]] + costs[1][ways[1]] + (arranging if RUNS in ways else 0.0)

    return min(product(costs[0], costs[1]), key=together)


def moved(way: Keeping, unit: Unit, held: int) -> float:
    """All rows of a side are kept in another way."""
    return 10 * unit.call + arranged(unit, held) + inserted(way, unit, held, 0)


def _doublings(rows: int, held: int) -> float:
    """How often a row of a batch is merged into a larger run before it leaves."""
    return log2(1 + held / max(1, rows))


def _runs(rows: int, held: int) -> float:
    """How many runs there are: each at least twice as large as the next."""
    return 1 + _doublings(rows, held) / 2 if held else 0


_PROBED: dict[Keeping, Callable[[Unit, Probe], float]] = {
    "loops": _by_loops,
    "hash": _by_hash,
    "runs": _by_runs,
}
