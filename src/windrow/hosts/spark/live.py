"""The live copy of a shard's state: Arrow files in a folder of the executor, which any Python worker there can map.

Python workers are not sticky: a shard often meets one that has never seen it, and reading its chunks back from the
state store costs some 10 ms a megabyte. The state store stays the truth: a copy is used only if it is of exactly the
version that the state store has.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from windrow.spec.batches import Changes, State

MANIFEST = "manifest.json"


class LiveCopy:
    """``version`` tokens name states. Files are written before the manifest that names them, and freed after it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, version: str) -> State | None:
        """The chunks of this version, mapped; None if the copy is of another one, or damaged."""
        files = self._files(version)
        if files is None:
            return None
        try:
            return {name: pl.read_ipc(self.folder / file) for name, file in files.items()}
        except (pl.exceptions.PolarsError, OSError):
            return None

    def store(self, before: str | None, version: str, changes: Changes, whole: Callable[[], State]) -> None:
        """From version ``before`` to the next one; all of it where the copy here is not of ``before``."""
        files = self._files(before) if before is not None else {}
        if files is None or not self.folder.is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            files, changes = {}, dict(whole())
        freed = [files.pop(name) for name in changes if name in files]
        for number, (name, frame) in enumerate(changes.items()):
            if frame is not None:
                files[name] = f"{version}-{number}.arrow"
                frame.write_ipc(self.folder / files[name])
        self._write(version, files)
        for file in freed:
            (self.folder / file).unlink(missing_ok=True)

    def version(self) -> str | None:
        """The version that is here."""
        return self._manifest().get("version")

    def _files(self, version: str) -> dict[str, str] | None:
        manifest = self._manifest()
        return dict(manifest["files"]) if manifest.get("version") == version else None

    def _manifest(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / MANIFEST).read_text()))
        except (OSError, ValueError):
            return {}

    def _write(self, version: str, files: Mapping[str, str]) -> None:
        draft = self.folder / f"{MANIFEST}.{version}"
        draft.write_text(json.dumps({"version": version, "files": files}))
        draft.replace(self.folder / MANIFEST)


def live_copy(run: str, shard: int) -> LiveCopy | None:
    """The copy of a shard in the folder that Spark removes when it ends; None where there is no such folder."""
    from pyspark import SparkFiles

    root = getattr(SparkFiles, "_root_directory", None)
    return LiveCopy(Path(root) / "windrow" / run / str(shard)) if root else None


def newest(place: tuple[str, int]) -> str | None:
    """The version of the state of a shard on this machine."""
    copy = live_copy(*place)
    return copy.version() if copy is not None else None
