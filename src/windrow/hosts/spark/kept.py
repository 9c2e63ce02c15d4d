"""The algorithms of a query's first start, kept in its checkpoint.

They are chosen by statistics of files that may be gone at a restart, and by a cost model that another version may have
changed. The state of one algorithm cannot be used by another, so a restart takes the algorithm of the first start. The
file is written before the query starts, through Hadoop, which reaches every place where Spark can have a checkpoint.
Beside it is what the first micro-batch has shown of the sources, on which no choice depends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.errors import CheckpointError
from windrow.hosts.spark.place import local
from windrow.planner.choose.statistics import Seen
from windrow.sources.own import OWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "windrow/plan.json"
SEEN = "windrow/statistics.json"
SAID = "windrow/warned.json"
FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """What the checkpoint folder of a query knows about it; ``query`` is its text.

    Without a session a local folder can still be read, but not written.
    """

    spark: SparkSession | None
    checkpoint: str
    query: str

    def seen(self) -> dict[str, Seen]:
        """What the first micro-batch has shown of each source. If that cannot be read it is measured again."""
        try:
            given = json.loads(self._read(SEEN) or "{}")
            if given.get("query") != self.query:
                return {}
            return {name: Seen(float(s["rate"]), float(s["groups"]), int(s["rows"])) for name, s in given["of"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}

    def remember(self, seen: Mapping[str, Seen]) -> None:
        """Add what has been seen of some sources; what is known already stays."""
        known = {**seen, **self.seen()}
        self._write(SEEN, {"format": FORMAT, "query": self.query, "of": {n: asdict(s) for n, s in known.items()}})

    def said(self) -> set[str]:
        """The warnings that have been given. If that cannot be read they are given again."""
        try:
            given = json.loads(self._read(SAID) or "{}")
            return set(map(str, given["keys"])) if given.get("query") == self.query else set()
        except (ValueError, KeyError, TypeError, AttributeError):
            return set()

    def say(self, keys: Sequence[str]) -> None:
        """Remember the warnings that have been given."""
        self._write(SAID, {"format": FORMAT, "query": self.query, "keys": list(keys)})

    def choices(self) -> dict[str, str]:
        """The algorithm of each aggregation; nothing before the first start, or if another query has written it."""
        content = self._read(FILE)
        if content is None:
            return {}
        try:
            given = json.loads(content)
            return dict(given["algorithms"]) if given["query"] == self.query else {}
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(
                f"{self.checkpoint}/{FILE} is torn or foreign: restore the checkpoint from a copy, or start with a new "
                "checkpoint folder"
            ) from None

    def _read(self, name: str) -> str | None:
        """A file as it is; None if there is none."""
        if self.spark is None:
            file = Path(local(self.checkpoint)) / name
            return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
        path = self._path(name)
        system = self._system(path)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def keep(self, choices: Mapping[str, str]) -> None:
        """Write them, if this is the first start: nothing has been read, and so there is no state yet."""
        if self._has_started() or self.choices() == choices:
            return
        self._write(FILE, {"format": FORMAT, "query": self.query, "algorithms": dict(choices)})

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        """All of a file or nothing."""
        data = json.dumps(content, indent=2)
        path, draft = self._path(name), self._path(f"{name}.tmp")
        system = self._system(path)
        out = system.create(draft, True)
        out.write(data.encode())
        out.close()
        system.delete(path, False)
        system.rename(draft, path)

    def _has_started(self) -> bool:
        offsets = self._path("offsets")
        system = self._system(offsets)
        return bool(system.exists(offsets)) and len(system.listStatus(offsets)) > 0

    @property
    def _jvm(self) -> Any:
        assert self.spark is not None
        return self.spark.sparkContext._jvm

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.checkpoint}/{name}")

    def _system(self, path: Any) -> Any:
        assert self.spark is not None
        return path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())


def session_for(checkpoint: str, sources: Sequence[Any], start: bool) -> SparkSession | None:
    """The session through which a checkpoint is reached. Unless one is to ``start``, a local folder needs none."""
    from pyspark.sql import SparkSession

    from windrow.hosts.spark.compile import session_of

    frames = any(not isinstance(s, OWN) for s in sources)
    needed = start or frames or "://" in local(checkpoint) or SparkSession.getActiveSession() is not None
    return session_of(sources) if needed else None
