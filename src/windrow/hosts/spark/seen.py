"""What the first micro-batch of a query shows of its Spark DataFrames: their rates and groups, kept in the checkpoint.

Spark measures it while it reads: nothing is read twice. A later start knows it, and measures no more. It is for
estimates alone. The algorithm was chosen before, and a restart takes the same one, whatever has been seen.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener

from windrow.hosts.spark.kept import Kept
from windrow.logical.nodes import Scan
from windrow.planner import Plan
from windrow.planner.choose.statistics import Seen
from windrow.planner.plan import Read
from windrow.sources.own import OWN, Own

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LEAST = 1000  # rows of a micro-batch: fewer say little about rates
LENGTHS = {"timestamp": "double", "timestamp_ntz": "double", "date": "date"} | dict.fromkeys(
    ("byte", "short", "integer", "long"), "bigint"
)
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class FirstBatch(StreamingQueryListener):  # type: ignore[misc]
    """Measures those sources of a query of which the checkpoint knows nothing yet."""

    kept: Kept
    token: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    names: list[str] = field(default_factory=list)  # of the sources of which nothing is known yet
    run: Any = None

    def observed(self, plan: Plan, sources: Mapping[str, DataFrame | Own]) -> dict[str, DataFrame | Own]:
        """The same sources, measured as they are read."""
        known, found = self.kept.seen(), dict(sources)
        for scan in plan.scans():
            source = sources[scan.name]
            if scan.name in known or scan.statistics or scan.source.messages or isinstance(source, OWN):
                continue
            if source.isStreaming and (metrics := metrics_of(plan, scan, source)):
                found[scan.name] = source.observe(self._metric(scan.name), *metrics)
                self.names.append(scan.name)
        if self.names:
            assert self.kept.spark is not None
            self.kept.spark.streams.addListener(self)
        return found

    def _metric(self, name: str) -> str:
        return f"windrow-{self.token}-{name}"

    # -- what Spark tells --------------------------------------------------------------------------------------
    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A micro-batch has been committed."""
        metrics = event.progress.observedMetrics or {}
        mine = {name: metrics[self._metric(name)] for name in self.names if self._metric(name) in metrics}
        if not mine:
            return  # of another query
        self.run = event.progress.runId
        found = {name: seen for name, given in mine.items() if (seen := seen_in(given)) is not None}
        if found:
            self._keep(found)

    def _keep(self, found: Mapping[str, Seen]) -> None:
        try:
            self.kept.remember(found)
        except Exception:  # a query does not stop because of an estimate
            _log.warning("cannot keep what the first micro-batch has shown in %s", self.kept.checkpoint, exc_info=True)
        self.names = [name for name in self.names if name not in found]
        if not self.names:
            self._leave()

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if event.runId == self.run and self.names:
            self._leave()

    def _leave(self) -> None:
        assert self.kept.spark is not None
        self.kept.spark.streams.removeListener(self)


def metrics_of(plan: Plan, scan: Scan, source: DataFrame) -> list[Column]:
    """Rows, the progress that they make, and their groups; nothing where progress values are text, or of arrival."""
    from pyspark.sql import functions as f

    types = {each.name: each.dataType.typeName() for each in source.schema.fields}
    kind = LENGTHS.get(types.get(scan.progress, ""))
    if kind is None:
        return []
    quoted = f"`{scan.progress.replace('`', '``')}`"
    low, high = f.min(quoted), f.max(quoted)
    if kind == "date":
        length = f.datediff(high, low).cast("double")
    else:
        length = high.cast("timestamp").cast("double") - low.cast("timestamp").cast("double")
        if kind == "bigint":
            length = high.cast("double") - low.cast("double")
    keys = [f.col(f"`{key.replace('`', '``')}`") for key in keys_of(plan, scan)]
    groups = f.approx_count_distinct(f.struct(*keys)) if keys else f.lit(1)
    return [f.count(quoted).alias("rows"), length.alias("length"), groups.cast("bigint").alias("groups")]


def keys_of(plan: Plan, scan: Scan) -> list[str]:
    """The columns by which the first stage over a source groups its rows; none if they are computed."""
    for stage in plan.stages():
        for arm in stage.arms:
            for pipeline in arm.inputs:
                if isinstance(pipeline.source, Read) and pipeline.source.scan.name == scan.name:
                    found = [pipeline.origin(key) for key in arm.partition.keys]
                    return [key for key in found if key is not None] if None not in found else []
    return []


def seen_in(metrics: Any) -> Seen | None:
    """What the metrics of a micro-batch say of a source; None if they have too few rows, or no progress."""
    rows, length, groups = metrics["rows"] or 0, metrics["length"] or 0.0, metrics["groups"] or 1
    if rows < LEAST or length <= 0:
        return None
    return Seen(float(rows) / float(length), max(1.0, float(groups)), int(rows))
