"""When to ask the sources of a query again: what its shards wait for, from the driver to the readers of sources.

Spark asks a reader for its latest offset many times a second, and a micro-batch follows when one moves. A reader in
another process cannot see what shards wait for. So the driver notes it after each micro-batch in a small file, and a
reader moves its offset without new rows only when an answer helps. Nothing depends on the file but when that is: what
a source answers is in its offset, so that a micro-batch that runs again has the same.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming import StreamingQueryListener

from windrow.hosts.spark.exchange import OUT, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SECOND = 1_000_000
LONGEST = 64 * SECOND
PREFIX = "windrow-wanted-"


@dataclass
class Waiting:
    """The reader's side: whether to ask source ``number`` at some time. It is made anew in the process that reads.

    If the answer does not help, as another source holds the query back, the same is tried again less and less often.
    """

    path: str
    number: int
    acted: int | None = field(default=None, compare=False)  # the number of the last note that was acted on
    tried: int | None = field(default=None, compare=False)  # the time that it named
    gap: int = field(default=SECOND, compare=False)  # how long to wait before the same is tried again

    def wants(self, now: int, last: int) -> bool:
        """Whether an answer helps at ``now``, in microseconds; the last one was at ``last`` (0: there was none).

        Before the first note it is not known whether anything waits: a query that continues asks once.
        """
        found = self._read()
        if found is None:
            first, self.acted = self.acted is None, -1
            return first and last > 0
        number, times, answers = found
        if last and last not in answers:
            return False  # the note is from before the last answer
        at = times.get(str(self.number))
        again = at == self.tried
        if at is None or number == self.acted or now < at or (again and now < last + self.gap):
            return False
        self.gap = min(2 * self.gap, LONGEST) if again else SECOND
        self.acted, self.tried = number, at
        return True

    def _read(self) -> tuple[int, dict[str, int], list[int]] | None:
        try:
            given = json.loads(Path(self.path).read_text())
        except FileNotFoundError:
            return None
        return given["number"], given["at"], given["asked"]


def new_name() -> str:
    """Of what a query is watched by."""
    return f"{PREFIX}{uuid.uuid4().hex[:12]}"


def path_of(name: str) -> str:
    """Where its notes are."""
    return os.path.join(tempfile.gettempdir(), f"{name}.json")


class Notes(StreamingQueryListener):  # type: ignore[misc]
    """The driver's side: what the shards of each query wanted at the end of its last micro-batch. One for a session."""

    def __init__(self) -> None:
        self.paths: dict[Any, str] = {}  # by run of a query

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (Spark's name)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        for name, metrics in (event.progress.observedMetrics or {}).items():
            if name.startswith(PREFIX):
                self.paths[event.progress.runId] = path = path_of(name)
                wanted = {source: int(at) for source, at in metrics.asDict().items() if at is not None}
                note(path, event.progress.batchId, wanted, answered(event.progress.sources))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if (path := self.paths.pop(event.runId, None)) is not None:
            Path(path).unlink(missing_ok=True)


_listening: WeakKeyDictionary[Any, Notes] = WeakKeyDictionary()


def noted(rows: DataFrame, name: str, sources: Sequence[int]) -> DataFrame:
    """The exchange rows that come out of a query, watched for what its shards want."""
    from pyspark.sql import functions as f

    def least(source: int) -> Column:
        mine = (f.col("kind") == int(Kind.WANTED)) & (f.col("port") == source) & (f.col("stage") == OUT)
        return f.min(f.when(mine, f.col("value"))).alias(str(source))

    spark = rows.sparkSession
    if spark not in _listening:
        _listening[spark] = Notes()
        spark.streams.addListener(_listening[spark])
    return rows.observe(name, *(least(source) for source in sources))


def answered(sources: Iterable[Any]) -> list[int]:
    """When the sources of a micro-batch were asked last, by their offsets."""
    found = []
    for source in sources:
        with suppress(ValueError):  # not every source has offsets in JSON
            offset = json.loads(source.endOffset or "{}")
            if isinstance(offset, dict) and isinstance(at := offset.get("asked"), int):
                found.append(at)
    return found


def note(path: str, number: int, at: Mapping[str, int], asked: Sequence[int]) -> None:
    """What is wanted after a micro-batch, and when sources were asked by then: all of a note or nothing."""
    Path(f"{path}.tmp").write_text(json.dumps({"number": number, "at": dict(at), "asked": list(asked)}))
    os.replace(f"{path}.tmp", path)
