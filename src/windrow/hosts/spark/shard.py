"""A shard: the stateful stages of many groups, one graph, its state in Spark's state store as deltas."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from windrow.errors import CheckpointError
from windrow.hosts.report import FORMAT
from windrow.hosts.spark.exchange import ARROW, Row, decode, encode
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.identity import difference, evolved
from windrow.hosts.spark.live import live_copy, newest
from windrow.hosts.spark.live_graphs import LiveGraphs
from windrow.hosts.spark.parts import MARK, Version, divided, whole
from windrow.hosts.spark.wiring import Wiring
from windrow.spec.batches import State

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, TimerValues, ValueState

REPORT = "@report"  # the chunk with the last report of a shard
_row = SparkRow(*ARROW.names)
_live = LiveGraphs()


@dataclass(frozen=True)
class Variables:
    """The state of a shard, as Spark's state store has it."""

    identity: ValueState
    version: ValueState
    chunks: MapState


def declared(handle: StatefulProcessorHandle) -> Variables:
    """The variables, under their names in the state store."""
    identity = handle.getValueState("identity", "json STRING")
    version = handle.getValueState("version", "token STRING")
    return Variables(identity, version, handle.getMapState("chunks", "name STRING", "blob BINARY"))


def chunk_of(report: Mapping[str, Any] | None) -> pl.DataFrame:
    """A report as a chunk of state."""
    return pl.DataFrame({"json": [json.dumps(report)]})


def report_in(chunk: pl.DataFrame) -> dict[str, Any] | None:
    """The report in a chunk; None if another version has written it."""
    found = json.loads(chunk["json"][0])
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs a fragment under ``transformWithState``, grouped by shard.

    State: ``identity`` (what the checkpoint belongs to), ``version`` (a random token per committed micro-batch, and how
    large chunks are divided) and ``chunks``. A worker that still has the graph of exactly this version continues with
    it; any other maps the live copy on its machine if that has this version, and otherwise reads the chunks.

    ``dormant``: for queries that come and go, stages that do not run now and whose state stays. Stages that are in the
    checkpoint and neither run nor are dormant belonged to a query that was dropped: their state is freed. Those that
    are not in it begin. None: the stages are those of the checkpoint, or it belongs to another query.
    """

    def __init__(self, fragment: Fragment, identity: Mapping[str, Any], dormant: frozenset[int] | None = None) -> None:
        self.fragment = fragment
        self.identity = identity
        self.dormant = dormant
        self.run_id = uuid.uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        variables = declared(handle)
        self.stored_identity, self.version, self.chunks = variables.identity, variables.version, variables.chunks

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: tuple[Any, ...],
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[SparkRow]:
        shard = int(key[0])
        stored = self.version.get()
        before = None if stored is None else Version.read(stored[0])
        self._check_identity(before)
        wired = self._wiring(shard, before)
        for row in self.fragment.run(wired, shard, (Row(*r) for r in rows)):
            yield _row(*row)
        self._keep(shard, wired, before)

    def _keep(self, shard: int, wired: Wiring, before: Version | None) -> None:
        """What changed to the state store, and to the copy that other workers on this machine can map."""
        graph = wired.graph
        changes = graph.changes()
        now = Version(uuid.uuid4().hex, dict(before.parts) if before is not None else {})
        for name, frame in changes.items():
            values = divided(encode(frame)) if frame is not None else []
            for key, value in now.write(name, values):
                if value is None:
                    self.chunks.removeKey((key,))
                else:
                    self.chunks.updateValue((key,), (value,))
        self.version.update((str(now),))
        self.chunks.updateValue((REPORT,), (encode(chunk_of(wired.report)),))
        copy = live_copy(self.run_id, shard)
        if copy is not None:
            copy.store(None if before is None else before.token, now.token, changes, graph.snapshot)
        _live.put((self.run_id, shard), now.token, wired, newest)

    def close(self) -> None:
        return None

    def _check_identity(self, version: Version | None) -> None:
        now = json.loads(json.dumps(self.identity))
        stored = self.stored_identity.get()
        before = now if stored is None else json.loads(stored[0])
        if self.dormant is not None:
            now, gone = evolved(before, now, self.dormant)
            if gone and version is not None:
                self._forget(gone, version)
        if stored is None or before != now:
            if self.dormant is None and stored is not None:
                raise CheckpointError(difference(before, now))
            self.stored_identity.update((json.dumps(now),))

    def _forget(self, stages: frozenset[str], version: Version) -> None:
        """Free the state of stages that are no longer there."""
        for (key,) in list(self.chunks.keys()):
            if key.partition("/")[0].removeprefix("stage").removeprefix("asked") in stages:
                self.chunks.removeKey((key,))
                version.parts.pop(key.partition(MARK)[0], None)

    def _wiring(self, shard: int, stored: Version | None) -> Wiring:
        wired = _live.take((self.run_id, shard), None if stored is None else stored.token)
        if wired is not None:
            return wired
        wired = self.fragment.wiring()
        if stored is not None:
            wired.report = self._stored_report(shard)
            copy = live_copy(self.run_id, shard)
            state = copy.load(stored.token) if copy is not None else None
            wired.graph.restore(state if state is not None else self._stored_state(shard))
        return wired

    def _stored_report(self, shard: int) -> dict[str, Any] | None:
        """The report of the last micro-batch; none from an older version, or from one that knows it differently."""
        if not self.chunks.containsKey((REPORT,)):
            return None
        return report_in(decode(self.chunks.getValue((REPORT,))[0], f"the report of shard {shard}"))

    def _stored_state(self, shard: int) -> State:
        values = {k[0]: v[0] for k, v in self.chunks.iterator() if k[0] != REPORT}
        return {name: decode(blob, f"state chunk {name!r} of shard {shard}") for name, blob in whole(values).items()}
