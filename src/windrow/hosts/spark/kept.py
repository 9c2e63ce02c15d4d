"""The algorithms of a query's first start, kept in its checkpoint.

They are chosen by statistics: of files that may be gone at a restart, of a cost model that another version may have
mended. State of one algorithm is not that of another, so a restart takes what the first start took. The file is written
before the query starts, through Hadoop, which reaches every place where Spark can have a checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "windrow/plan.json"
FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """What the checkpoint folder of a query knows about it; ``query`` is its text."""

    spark: SparkSession
    checkpoint: str
    query: str

    def choices(self) -> dict[str, str]:
        """The algorithm of each aggregation; nothing before the first start, or if another query has written it."""
        path = self._path(FILE)
        system = self._system(path)
        if not system.exists(path):
            return {}
        stream = system.open(path)
        try:
            given = json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            return dict(given["algorithms"]) if given["query"] == self.query else {}
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(
                f"{self.checkpoint}/{FILE} is torn or foreign: restore the checkpoint from a copy, or start with a new "
                "checkpoint folder"
            ) from None
        finally:
            stream.close()

    def keep(self, choices: Mapping[str, str]) -> None:
        """Write them, if this is the first start: nothing has been read, and so there is no state yet."""
        if self._has_started() or self.choices() == choices:
            return
        data = json.dumps({"format": FORMAT, "query": self.query, "algorithms": dict(choices)}, indent=2)
        path, draft = self._path(FILE), self._path(f"{FILE}.tmp")
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
        return self.spark.sparkContext._jvm

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.checkpoint}/{name}")

    def _system(self, path: Any) -> Any:
        return path.getFileSystem(self.spark.sparkContext._jsc.hadoopConfiguration())
