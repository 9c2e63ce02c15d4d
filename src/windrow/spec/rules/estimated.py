"""Estimated: promises by a slack that follows the disorder seen so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.progress import FARTHEST, START
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.spec.rules.rule import COUNT, Rule

TOP, BUCKET = "@top", "@bucket"


@dataclass(frozen=True)
class Estimated(Rule):
    """Slack from the disorder that was seen: so large that a share of ``quantile`` of the rows would have been in time.

    Until ``enough`` rows are seen it is at least ``initial``. It grows at once and shrinks only when the estimate is
    well below it, so that it does not swing. Rows above the estimate are late: exactness is not promised, it is chosen.
    """

    quantile: float
    initial: int
    enough: int = 1000

    GROWTH = 1.05  # one bucket of lateness to the next: what is counted is rounded up, and what follows from it again
    BACK = 0.8  # of the slack in force: only below this it shrinks
    FORGET = 1_000_000  # rows after which all counts are halved, so that what is long ago counts less

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return (
            f"promises behind the greatest {attribute} by a slack estimated to cover {self.quantile:.10g} of the rows, "
            f"{span(self.initial)} at first"
        )

    def evidence(self, batch: Batch) -> Batch:
        top = int(batch[PROGRESS].max())  # type: ignore[arg-type]
        found, counts = np.unique(self._bucket(top - batch[PROGRESS].to_numpy()), return_counts=True)
        return pl.DataFrame({TOP: np.full(len(found), top), BUCKET: found, COUNT: counts.astype(np.int64)})

    def _bucket(self, lateness: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        late = np.maximum(lateness, 1).astype(np.float64)
        return np.where(lateness <= 0, 0, 1 + np.ceil(np.log(late) / math.log(self.GROWTH))).astype(np.int64)

    def _most(self, bucket: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The greatest lateness in a bucket; the greatest float below 2^63, if it is beyond."""
        most = np.minimum(np.ceil(self.GROWTH ** (bucket - 1.0)), 2.0 * FARTHEST - 1024)
        return np.where(bucket <= 0, 0, most).astype(np.int64)

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        greatest, slack = memory["now"].row(0) if "now" in memory else (START, self.initial)
        seen = memory.get("seen", pl.DataFrame(schema={BUCKET: pl.Int64, COUNT: pl.Int64}))
        if greatest > START and evidence.height:  # how far behind what was known before these rows came
            behind = self._most(evidence[BUCKET].to_numpy()) - (evidence[TOP].to_numpy() - greatest)
            news = pl.DataFrame({BUCKET: self._bucket(behind), COUNT: evidence[COUNT]})
            seen = pl.concat([seen, news]).group_by(BUCKET).agg(pl.col(COUNT).sum()).sort(BUCKET)
            if seen[COUNT].sum() > self.FORGET:
                seen = seen.with_columns(pl.col(COUNT) // 2).filter(pl.col(COUNT) > 0)
        if evidence.height:
            greatest = max(greatest, int(evidence[TOP].max()))  # type: ignore[arg-type]
        slack = self._slack(seen, slack)
        remembered = {"seen": seen, "now": pl.DataFrame({"greatest": [greatest], "slack": [slack]})}
        return remembered, greatest - slack if greatest > START else None

    def _slack(self, seen: Batch, before: int) -> int:
        total = int(seen[COUNT].sum())
        if not total:
            return before
        covered = seen[COUNT].cum_sum().search_sorted(math.ceil(self.quantile * total))
        found = int(self._most(seen[BUCKET].to_numpy()[[min(int(covered), seen.height - 1)]])[0])
        if total < self.enough:
            return max(found, before)
        return found if found > before or found < self.BACK * before else before
