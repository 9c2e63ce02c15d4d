"""The report of a query on Spark: of one that runs from its progress, of any other from its checkpoint alone.

A query that knows its checkpoint leaves a report beside it after each micro-batch, so that it can be read without
Spark. If that is not of the last micro-batch that was committed, as after a kill, the shards' own are read from the
state store. ``--json`` and the file have the same facts: the reports of the shards, as they are in the state.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from windrow.errors import CheckpointError
from windrow.hosts.figures import figures_of
from windrow.hosts.report import FORMAT, Report
from windrow.hosts.reporting import merged
from windrow.hosts.ring.store import Store
from windrow.hosts.spark.exchange import METRICS, REPORTS, SHARDS, decode
from windrow.hosts.spark.gauges import Gauges
from windrow.hosts.spark.place import local
from windrow.hosts.spark.ring import FOLDER
from windrow.hosts.spark.session_record import Record, committed
from windrow.hosts.spark.shard import REPORT, report_in
from windrow.hosts.why import Why, why

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress

FILE = "windrow/report.json"
_log = logging.getLogger(__name__)


# -- of a query that runs ----------------------------------------------------------------------------------------------
def reports_in(progress: StreamingQueryProgress) -> list[dict[str, Any]]:
    """The reports of the shards in the progress of a micro-batch; none if the query has no state."""
    metrics: Any = (progress.observedMetrics or {}).get(REPORTS)
    found = [] if metrics is None else [json.loads(text) for text in metrics[SHARDS] or ()]
    return [part for part in found if part.get("format") == FORMAT]


def running_report(query: StreamingQuery) -> Report:
    """What a streaming query in this process knows about itself."""
    news = [progress for progress in query.recentProgress if reports_in(progress)]
    if not news:
        raise CheckpointError(
            "the query has not finished a micro-batch with a report yet: wait for the first one. A query that holds no "
            "state (only WHERE and SELECT) has none, as nothing in it waits"
        )
    return merged(reports_in(news[-1]), {})


class ReportFile(StreamingQueryListener):  # type: ignore[misc]
    """Leaves the reports of a query in its checkpoint, after each micro-batch. Folders of this machine only."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self.spark, self.folder = spark, Path(local(checkpoint))
        self.query: str | None = None  # its id, once it has begun
        self.run: str | None = None
        self.gauges: Gauges | None = None

    @classmethod
    def of(cls, spark: SparkSession | None, checkpoint: str) -> None:
        """Begin to, unless the checkpoint is where Spark's file systems lead."""
        if spark is not None and "://" not in local(checkpoint):
            spark.streams.addListener(cls(spark, checkpoint))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A micro-batch has been committed."""
        progress = event.progress
        if not self._is_mine(str(progress.id)):
            return
        self.run = self.run or str(progress.runId)
        try:
            if parts := reports_in(progress):
                found = snapshot(progress, parts)
                write(self.folder / FILE, found)
                self.gauges = self.gauges or Gauges(self.spark, str(progress.name or progress.id))
                self.gauges.show(figures_of(found))
        except Exception:  # a query does not stop because of its report
            _log.warning("cannot write the report of the query to %s", self.folder, exc_info=True)

    def _is_mine(self, query: str) -> bool:
        if self.query is None:
            self.query = id_of(self.folder)
        return self.query == query

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if str(event.runId) == self.run:  # an earlier run of the same query may end after this one has begun
            self.spark.streams.removeListener(self)
            if self.gauges is not None:
                self.gauges.remove()


def id_of(folder: Path) -> str | None:
    """The id of the query of a checkpoint."""
    try:
        return str(json.loads((folder / "metadata").read_text())["id"])
    except (OSError, ValueError, KeyError):
        return None


def snapshot(progress: StreamingQueryProgress, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is written after a micro-batch."""
    metrics: Any = (progress.observedMetrics or {})[METRICS]
    counts = {name: metrics[name] or 0 for name in metrics.__fields__}
    return {
        "format": FORMAT,
        "batch": int(progress.batchId),
        "began": str(progress.timestamp),
        "milliseconds": dict(progress.durationMs),
        "counts": counts,
        "parts": list(parts),
    }


def write(file: Path, content: Mapping[str, Any]) -> None:
    """All of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(json.dumps(content))
    draft.replace(file)


def explained(where: StreamingQuery | str | Path | None) -> Why:
    """Why a query has no output: of one that runs in this process, or of a checkpoint."""
    if isinstance(where, (str, Path)):
        return why(checkpoint_report(where))
    assert where is not None
    return why(running_report(where))


# -- of a checkpoint ---------------------------------------------------------------------------------------------------
def checkpoint_report(checkpoint: str | Path, log: Path | None = None) -> Report:
    """What the checkpoint of a query, or of a session, knows about it, whether it runs or not.

    Spark is only needed where the last report beside the checkpoint is missing or old; ``log``: where what it prints
    goes, if it has to be started.
    """
    folder = folder_of(checkpoint)
    path, times = str(folder), times_in(folder) if isinstance(folder, Path) else {}
    if isinstance(folder, Path):
        written = last_written(folder)
        if written is not None and written["batch"] >= committed(folder):
            return merged(written["parts"], times)
    from windrow.hosts.spark.session import session

    parts = reports_of_rings(folder) if isinstance(folder, Path) else []
    if not isinstance(folder, Path) or (folder / "state").is_dir():
        parts += stored_reports(SparkSession.getActiveSession() or session(log=log), path)
    if not parts:
        raise CheckpointError(
            f"{checkpoint} has no report: no micro-batch has ended yet, or a version of Windrow before reports wrote "
            "it, or the query holds no state. Let it run for a micro-batch with this version"
        )
    return merged(parts, times)


def folder_of(checkpoint: str | Path) -> Path | str:
    """The folder of a checkpoint, which is in that of a session; as text where only Spark can reach it."""
    path = local(str(checkpoint))
    if "://" in path:
        return path
    folder = Path(path)
    if (record := Record.opened(folder)) is not None:
        folder = record.checkpoint
    if not (folder / "metadata").exists():
        raise CheckpointError(
            f"{folder} is not the checkpoint of a streaming query: give the folder of --checkpoint, or of the option "
            "checkpointLocation"
        )
    return folder


def last_written(folder: Path) -> dict[str, Any] | None:
    """What the last micro-batch has left beside the checkpoint, if this version can read it."""
    try:
        found = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def stored_reports(spark: SparkSession, checkpoint: str) -> list[dict[str, Any]]:
    """The reports of all shards, from the state store."""
    found = []
    for operator in _operators(spark, checkpoint):
        reader = spark.read.format("statestore").option("path", checkpoint).option("operatorId", operator)
        rows = reader.option("stateVarName", "chunks").load().where(f"user_map_key.name = '{REPORT}'")
        for row in rows.selectExpr("key.shard AS shard", "user_map_value.blob AS blob").collect():
            part = report_in(decode(bytes(row.blob), f"the report of shard {row.shard}"))
            found += [part] if part is not None else []
    return found


def reports_of_rings(folder: Path) -> list[dict[str, Any]]:
    """The reports of the nodes of rings, whose state is in files of their own."""
    found = []
    for level in sorted((folder / FOLDER).glob("*/*")):
        store = Store(str(level))
        last = store.last()
        for places in () if last is None else last.nodes:
            if REPORT in places:
                part = report_in(store.read({REPORT: places[REPORT]})[REPORT])
                found += [part] if part is not None else []
    return found


def _operators(spark: SparkSession, checkpoint: str) -> list[int]:
    """The stateful operators that are ours; a source can have some of its own."""
    known = spark.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").collect()
    return sorted({int(row.operatorId) for row in known if "transformWithState" in row.operatorName})


def times_in(folder: Path) -> dict[int, int]:
    """When the last micro-batches began, in microseconds, as Spark has logged it with their offsets."""
    found = {}
    for file in (folder / "offsets").glob("*"):
        if file.name.isdigit():
            try:
                found[int(file.name)] = int(json.loads(file.read_text().split("\n")[1])["batchTimestampMs"]) * 1000
            except (OSError, ValueError, KeyError, IndexError):
                continue
    return found
