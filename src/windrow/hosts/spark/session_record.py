"""The record of a session on Spark, ``session.json``: its queries, and what their common checkpoint was made for."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from windrow.errors import CheckpointError
from windrow.hosts.spark import checkpoint as checkpoints
from windrow.hosts.standing import Registry

RECORD, LOCK = "session.json", ".session.lock"
VERSION = re.compile(r"\.?\.?(\d+)[._]")  # of a file of state, or of its checksum


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
    _lock: int | None = field(default=None, init=False)  # a file descriptor
    _known: str | None = field(default=None, init=False)  # the file as it was last read or written

    @classmethod
    def opened(cls, folder: Path) -> Record | None:
        """The record in a folder; None in a new one."""
        file = folder / RECORD
        if not file.exists():
            return None
        try:
            text = file.read_text()
            given = json.loads(text)
            numbers = {name: int(given[name]) for name in ("shards", "depth", "tasks", "generation", "earlier")}
            found = cls(folder, streams=list(given["streams"]), registry=Registry.from_json(given), **numbers)
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(f"{file} is torn or foreign: restore it from a copy, or use a new folder") from None
        checkpoints.check(found.checkpoint)
        found._known = text
        return found

    # -- one at a time -----------------------------------------------------------------------------------------
    def claim(self) -> None:
        """Keep others from running or changing the session. The lock ends with this process, however it ends."""
        if self._lock is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise CheckpointError(f"another program runs the session in {self.folder}: stop it first") from None
        self._lock = lock
        file = self.folder / RECORD
        if (file.read_text() if file.exists() else None) != self._known:
            self.release()
            raise CheckpointError(f"another program has changed the session in {self.folder} since: open it again")

    def release(self) -> None:
        """Let others run and change it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- storage -----------------------------------------------------------------------------------------------
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
        text = json.dumps({**self.registry.to_json(), **own}, indent=1)
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / RECORD)
        self._known = text

    @property
    def checkpoint(self) -> Path:
        return self.checkpoint_of(self.generation)

    def checkpoint_of(self, generation: int) -> Path:
        return self.folder / ("checkpoint" if generation == 0 else f"checkpoint-{generation}")

    def next_batch(self) -> int:
        """The number of the first micro-batch that is not committed."""
        return committed(self.checkpoint) + 1 + self.earlier


def forget_uncommitted(checkpoint: Path) -> None:
    """Remove the state that micro-batches without a commit have left behind.

    Where a file of state is there already, Spark may keep it when the micro-batch runs again: the state is the same
    for the same query. In a session the micro-batch may run again for other queries, whose state would then be lost.
    """
    last = committed(checkpoint) + 1  # the version after the last commit
    offsets = checkpoint / "offsets"
    if offsets.is_dir() and not any(file.name.isdigit() for file in offsets.iterdir()):
        shutil.rmtree(offsets)  # a first offset that was being written when the query stopped: Spark would refuse it
    for file in checkpoint.glob("state/*/*/*"):
        version = VERSION.match(file.name)
        if file.is_file() and version is not None and int(version[1]) > last:
            file.unlink()


def committed(checkpoint: Path) -> int:
    """The last micro-batch that a checkpoint has a commit of, -1 if none."""
    commits = checkpoint / "commits"
    return max((int(f.name) for f in commits.glob("*") if f.name.isdigit()), default=-1) if commits.is_dir() else -1
