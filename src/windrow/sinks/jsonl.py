"""A JSON-lines file, exactly once: a micro-batch that is written again replaces what it wrote before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.errors import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class JsonLines:
    """For ``foreachBatch``. Beside the file, ``.NAME.batch`` records where the last micro-batch began.

    That note is written before the first row of a batch, so after a crash at any moment the half-written batch is
    cut off when Spark runs it again.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.note = self.path.with_name(f".{self.path.name}.batch")

    def __call__(self, frame: DataFrame, batch: int) -> None:
        from pyspark.sql import functions as f

        options = {"ignoreNullFields": "false"}
        rows = frame.select(f.to_json(f.struct(*(f.col(f"`{c}`") for c in frame.columns)), options)).collect()
        self.write(batch, [row[0] for row in rows])

    def write(self, batch: int, lines: list[str]) -> None:
        """Append the rows of a micro-batch, replacing what an earlier attempt of it wrote."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        start = self._start(batch)
        with self.path.open("ab") as out:
            out.truncate(start)
            out.write("".join(line + "\n" for line in lines).encode())
            out.flush()
            os.fsync(out.fileno())

    def _start(self, batch: int) -> int:
        size = self.path.stat().st_size if self.path.exists() else 0
        last = self._read()
        if last is not None and batch < last["batch"]:
            raise CheckpointError(
                f"{self.path} already holds micro-batch {last['batch']} and the query is at {batch}: the file and the "
                f"checkpoint do not belong together; use a new file, or the checkpoint that wrote this one"
            )
        if last is not None and batch == last["batch"]:
            return int(last["start"])
        fresh = self.note.with_name(self.note.name + ".new")
        fresh.write_text(json.dumps({"batch": batch, "start": size}))
        fresh.replace(self.note)
        return size

    def _read(self) -> dict[str, Any] | None:
        if not self.note.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(self.note.read_text())
            return {"batch": int(found["batch"]), "start": int(found["start"])}
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(f"{self.note} is damaged: remove it together with {self.path}") from None
