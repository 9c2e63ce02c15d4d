"""The record of a session on Spark, ``session.json``: its queries, and what their common checkpoint was made for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from windrow.errors import CheckpointError
from windrow.hosts.spark import checkpoint as checkpoints
from windrow.hosts.standing import Registry

RECORD = "session.json"


@dataclass
class Record:
    """``generation``: which checkpoint is in use; a migration makes a new one. ``earlier``: how many micro-batches
    there were before the first one of that checkpoint, as Spark numbers those of each checkpoint from 0.
    """

    folder: Path
    shards: int
    depth: int
    streams: list[str]
    tasks: int
    generation: int = 0
    earlier: int = 0
    registry: Registry = field(default_factory=Registry)

    @classmethod
    def opened(cls, folder: Path) -> Record | None:
        """The record in a folder; None in a new one."""
        file = folder / RECORD
        if not file.exists():
            return None
        try:
            given = json.loads(file.read_text())
            numbers = {name: int(given[name]) for name in ("shards", "depth", "tasks", "generation", "earlier")}
            found = cls(folder, streams=list(given["streams"]), registry=Registry.from_json(given), **numbers)
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(f"{file} is torn or foreign: restore it from a copy, or use a new folder") from None
        checkpoints.check(found.checkpoint)
        return found

    def check_streams(self, streams: Iterable[str]) -> None:
        """A session goes on with the streams that it began with."""
        if sorted(streams) != self.streams:
            raise CheckpointError(
                "the session in this folder is another one. What differs:\n"
                f"  streams: {', '.join(self.streams)} in the folder, {', '.join(sorted(streams))} now"
            )

    def save(self) -> None:
        """Replace the file by one that is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {name: getattr(self, name) for name in ("shards", "depth", "streams", "tasks", "generation", "earlier")}
        draft = self.folder / f".{RECORD}.new"
        with draft.open("w") as file:
            json.dump({**self.registry.to_json(), **own}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / RECORD)

    @property
    def checkpoint(self) -> Path:
        return self.checkpoint_of(self.generation)

    def checkpoint_of(self, generation: int) -> Path:
        return self.folder / ("checkpoint" if generation == 0 else f"checkpoint-{generation}")

    def next_batch(self) -> int:
        """The number of the first micro-batch that is not committed."""
        return committed(self.checkpoint) + 1 + self.earlier


def committed(checkpoint: Path) -> int:
    """The last micro-batch that a checkpoint has a commit of, -1 if none."""
    commits = checkpoint / "commits"
    return max((int(f.name) for f in commits.glob("*") if f.name.isdigit()), default=-1) if commits.is_dir() else -1
