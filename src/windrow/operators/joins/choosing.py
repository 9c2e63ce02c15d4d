"""How a join keeps the rows of each side: the cheapest way by what it has seen, changed when another stays cheaper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.joins.costs import Probe, Unit, arranged, inserted, moved, probed
from windrow.operators.kernels.probe import Hashes
from windrow.spec.batches import Batch
from windrow.spec.keeping import RUNS, Keeping

WAYS: tuple[Keeping, ...] = (RUNS, "hash", "loops")
LATEST, MANY = 256, 4e5  # rows of a side that are remembered, and pairs of rows that count
SMALL, EACH = 16, 8  # of batches with fewer rows each eighth is looked at, and stands for the others
PATIENCE = 1.0  # a change pays when it would have saved so many times what it costs
CLEARLY = 0.9  # of the present cost: what is not even that much cheaper is not worth a change


@dataclass
class Window:
    """What is known of one side. ``latest``: hashes of some of its latest rows. ``same`` of ``pairs``: how many rows of
    the other side had their keys; ``found`` of ``tried``: how many were near in time, too. ``lost``: by way, how much
    cheaper it would have been of late, in nanoseconds.
    """

    latest: Hashes = field(default_factory=lambda: np.empty(0, np.uint32))
    same: float = 0.0
    pairs: float = 0.0
    found: float = 0.0
    tried: float = 0.0
    lost: dict[Keeping, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))

    @property
    def alike(self) -> float:
        """The selectivity of the keys: 1 over their number, if all are as frequent, and are those of the other side."""
        return self.same / self.pairs if self.pairs else 0.0

    def take(self, hashes: Hashes) -> None:
        """More rows have come, in any order."""
        self.latest = np.concatenate([self.latest, _sample(hashes)])[-LATEST:]

    def probe(self, rows: int, held: int) -> Probe:
        """What is to be expected of so many rows of the other side."""
        return Probe(rows, held, self.alike, held * self.found / self.tried if self.tried else 0.0)

    def met(self, hashes: Hashes, held: int, found: int) -> None:
        """Rows of the other side have come, and found so many of those that are held."""
        self.found, self.tried = self.found / 2 + found, self.tried / 2 + len(hashes) * held
        if not len(self.latest):
            return
        given, own = _sample(hashes), np.sort(self.latest)
        self.same += float((np.searchsorted(own, given, "right") - np.searchsorted(own, given, "left")).sum())
        self.pairs += float(len(given) * len(own))
        if self.pairs > MANY:
            self.same, self.pairs = self.same / 2, self.pairs / 2


def _sample(hashes: Hashes) -> Hashes:
    """Some rows of a batch from all over it: it can be sorted."""
    return hashes[:: -(-len(hashes) // LATEST)]


class Choosing:
    """Sums up, for each way to keep the rows of a side, what it would have saved against the present one, and never
    less than nothing (a CUSUM). The side changes when that is more than the change itself costs: streams that flip to
    and fro faster than a change pays off are left alone, and no decision costs more than about twice the best.

    All of it follows from the rows and is kept with them, so that a replay decides alike; results do not depend on it.
    """

    def __init__(self, unit: Unit, ways: Sequence[Keeping] = WAYS) -> None:
        self.unit = unit
        self.ways = tuple(ways)
        self.windows = (Window(), Window())
        self.skipped = [0, 0]  # small batches of each side that have not been looked at
        self._changed = False

    def before(self, side: int, rows: int, keeping: Sequence[Keeping], held: Sequence[int]) -> Mapping[int, Keeping]:
        """So many rows of one side are about to probe the other: what changes, because these alone pay for it.

        A list that was the best for a few rows must not be scanned by many.
        """
        other = 1 - side
        if rows * held[other] * max(self.unit.scan, self.unit.chase) < self.unit.call:
            return {}  # a change costs more than that
        probe, window = self.windows[other].probe(rows, held[other]), self.windows[other]
        costs = {way: probed(way, self.unit, probe) for way in self.ways}
        best = min(self.ways, key=lambda way: costs[way])
        if costs[best] + moved(best, self.unit, held[other]) >= CLEARLY * costs[keeping[other]]:
            return {}
        window.lost = dict.fromkeys(WAYS, 0.0)
        return {other: best}

    def saw(
        self, side: int, hashes: Hashes, pairs: int, kept: int, keeping: Sequence[Keeping], held: Sequence[int]
    ) -> Mapping[int, Keeping]:
        """Rows of one side have come and found so many pairs; so many of them are ``kept``, and each side holds so many
        now: what changes.
        """
        self._changed = True
        other, rows = 1 - side, len(hashes)
        if rows < SMALL and self.skipped[side] < EACH - 1:
            self.skipped[side] += 1
            return {}
        batches, self.skipped[side] = self.skipped[side] + 1, 0
        self.windows[side].take(hashes)
        self.windows[other].met(hashes, held[other], pairs)
        probe = Probe(rows, held[other], self.windows[other].alike, pairs / rows)
        costs = {
            other: {way: probed(way, self.unit, probe) for way in self.ways},
            side: {way: inserted(way, self.unit, kept, held[side]) for way in self.ways},
        }
        for at, cost in costs.items():
            if keeping[1 - at] != RUNS and RUNS in cost:  # else batches are sorted anyway
                cost[RUNS] += arranged(self.unit, rows)
            lost = self.windows[at].lost
            for way in self.ways:
                lost[way] = max(0.0, lost[way] + batches * (CLEARLY * cost[keeping[at]] - cost[way]))
        return dict(self._better(keeping, held))

    def _better(self, keeping: Sequence[Keeping], held: Sequence[int]) -> Iterable[tuple[int, Keeping]]:
        """The side with more to gain, if any; what the other has to gain can depend on it."""
        gains = [self._gain(at, keeping, held) for at in (0, 1)]
        at = gains.index(max(gains))
        if gains[at] > 0:
            lost = self.windows[at].lost
            yield at, max(self.ways, key=lambda way: lost[way])
            self.windows[at].lost = dict.fromkeys(WAYS, 0.0)

    def _gain(self, at: int, keeping: Sequence[Keeping], held: Sequence[int]) -> float:
        lost = self.windows[at].lost
        best = max(self.ways, key=lambda way: lost[way])
        return lost[best] - PATIENCE * moved(best, self.unit, held[at]) if best != keeping[at] else 0.0

    # -- state -------------------------------------------------------------------------------------------------
    def changed(self) -> bool:
        """Whether anything changed since the last call."""
        before, self._changed = self._changed, False
        return before

    def snapshot(self, keeping: Sequence[Keeping]) -> Batch:
        rows = [
            (
                keeping[at],
                self.skipped[at],
                w.latest.tolist(),
                w.same,
                w.pairs,
                w.found,
                w.tried,
                *(w.lost[way] for way in WAYS),
            )
            for at, w in enumerate(self.windows)
        ]
        schema: dict[str, Any] = {"keeping": pl.String, "skipped": pl.Int64, "latest": pl.List(pl.UInt32)}
        schema |= dict.fromkeys(("same", "pairs", "found", "tried", *WAYS), pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def restore(self, state: Batch | None, keeping: Sequence[Keeping]) -> list[Keeping]:
        """How rows were kept; ``keeping`` if nothing says so."""
        self._changed = False
        if state is None:
            self.windows, self.skipped = (Window(), Window()), [0, 0]
            return list(keeping)
        left, right = (
            Window(np.array(latest, np.uint32), same, pairs, found, tried, dict(zip(WAYS, lost, strict=True)))
            for _, _, latest, same, pairs, found, tried, *lost in state.rows()
        )
        self.windows, self.skipped = (left, right), [*state["skipped"]]
        return [*state["keeping"]]
