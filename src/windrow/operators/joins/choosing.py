"""How a join keeps the rows of each side: the cheapest way by what it has seen, changed when another stays cheaper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.joins.costs import Probe, Unit, inserted, moved, probed
from windrow.operators.kernels.probe import Hashes
from windrow.spec.batches import Batch
from windrow.spec.joining import RUNS, Keeping

WAYS: tuple[Keeping, ...] = (RUNS, "hash", "loops")
LATEST, MANY = 256, 4e5  # rows of a side that are remembered, and pairs of rows that count
PATIENCE = 1.0  # a change pays when it would have saved so many times what it costs
CLEARLY = 0.9  # of the present cost: what is not even that much cheaper is not worth a change


@dataclass
class Window:
    """What is known of one side. ``latest``: hashes of some of its latest rows. ``same`` of ``pairs``: how many rows of
    the other side had their keys. ``lost``: by way, how much cheaper it would have been of late, in nanoseconds.
    """

    latest: Hashes = field(default_factory=lambda: np.empty(0, np.uint32))
    same: float = 0.0
    pairs: float = 0.0
    lost: dict[Keeping, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))

    @property
    def alike(self) -> float:
        """The selectivity of the keys: 1 over their number, if all are as frequent, and are those of the other side."""
        return self.same / self.pairs if self.pairs else 0.0

    def take(self, hashes: Hashes) -> None:
        """More rows have come, in any order."""
        self.latest = np.concatenate([self.latest, _sample(hashes)])[-LATEST:]

    def met(self, hashes: Hashes) -> None:
        """Rows of the other side have come."""
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
        self._changed = False

    def saw(
        self, side: int, hashes: Hashes, pairs: int, keeping: Sequence[Keeping], held: Sequence[int]
    ) -> Mapping[int, Keeping]:
        """A batch of one side has come and found so many pairs, while each side holds so many rows: what changes."""
        self._changed = True
        other, rows = 1 - side, len(hashes)
        self.windows[side].take(hashes)
        self.windows[other].met(hashes)
        probe = Probe(rows, held[other], self.windows[other].alike, pairs / rows)
        costs = {
            other: {way: probed(way, self.unit, probe) for way in self.ways},
            side: {way: inserted(way, self.unit, rows, held[side]) for way in self.ways},
        }
        for at, cost in costs.items():
            lost = self.windows[at].lost
            for way in self.ways:
                lost[way] = max(0.0, lost[way] + CLEARLY * cost[keeping[at]] - cost[way])
        return dict(self._better(keeping, held))

    def _better(self, keeping: Sequence[Keeping], held: Sequence[int]) -> Iterable[tuple[int, Keeping]]:
        for at, window in enumerate(self.windows):
            best = max(self.ways, key=lambda way: window.lost[way])
            if best != keeping[at] and window.lost[best] > PATIENCE * moved(best, self.unit, held[at]):
                window.lost = dict.fromkeys(WAYS, 0.0)
                yield at, best

    # -- state -------------------------------------------------------------------------------------------------
    def changed(self) -> bool:
        """Whether anything changed since the last call."""
        before, self._changed = self._changed, False
        return before

    def snapshot(self, keeping: Sequence[Keeping]) -> Batch:
        rows = [
            (keeping[at], w.latest.tolist(), w.same, w.pairs, *(w.lost[way] for way in WAYS))
            for at, w in enumerate(self.windows)
        ]
        schema: dict[str, Any] = {"keeping": pl.String, "latest": pl.List(pl.UInt32)}
        schema |= dict.fromkeys(("same", "pairs", *WAYS), pl.Float64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def restore(self, state: Batch | None, keeping: Sequence[Keeping]) -> list[Keeping]:
        """How rows were kept; ``keeping`` if nothing says so."""
        self._changed = False
        if state is None:
            self.windows = (Window(), Window())
            return list(keeping)
        left, right = (
            Window(np.array(latest, np.uint32), same, pairs, dict(zip(WAYS, lost, strict=True)))
            for _, latest, same, pairs, *lost in state.rows()
        )
        self.windows = (left, right)
        return [*state["keeping"]]
