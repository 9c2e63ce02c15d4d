"""The state of a ring in files: what each node has written for each round, and one manifest that makes it count.

A node writes what has changed, all in one file. When all nodes have, the head writes the manifest of the round: for
each node, where each of its chunks is. So the state of all nodes is of the same round, and a round that runs again
begins with the manifest before it, whoever has written what since.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import fs

from windrow.errors import CheckpointError
from windrow.operators.ring.messages import NEWEST
from windrow.spec.batches import Changes, State

FORMAT = 1
KEPT = 8  # manifests: a replay needs the last one, and a copy of a checkpoint may be a little older
SUFFIX = ".json"
Place = tuple[str, int, int]  # of a chunk: its file, where it begins there, and its bytes


@dataclass(frozen=True)
class Manifest:
    """The state after a round. ``nodes``: the chunks of each. ``identity``: what the state belongs to."""

    round: int
    token: str
    identity: Mapping[str, Any]
    nodes: tuple[Mapping[str, Place], ...]

    def written(self) -> str:
        known = {"format": FORMAT, "round": self.round, "token": self.token, "identity": self.identity}
        return json.dumps({**known, "nodes": self.nodes})

    @classmethod
    def read(cls, text: str, where: str) -> Manifest:
        try:
            known = json.loads(text)
            if known["format"] != FORMAT:
                raise CheckpointError(
                    f"{where} has format {known['format']}, and this version of Windrow writes format {FORMAT}: "
                    "continue with the version that wrote it, or start with a new checkpoint folder"
                )
            nodes = [{name: (str(p[0]), int(p[1]), int(p[2])) for name, p in node.items()} for node in known["nodes"]]
            return cls(int(known["round"]), str(known["token"]), dict(known["identity"]), tuple(nodes))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise CheckpointError(
                f"{where} is torn or foreign: restore the checkpoint from a copy, or start with a new checkpoint folder"
            ) from None


@dataclass
class Store:
    """``folder``: a path, or a URI that Arrow knows (``s3://``, ``hdfs://``, ``gs://``)."""

    folder: str
    _system: Any = field(init=False, repr=False)
    _root: str = field(init=False)

    def __post_init__(self) -> None:
        text = self.folder.removeprefix("file:") if self.folder.startswith("file:/") else self.folder
        if "://" not in text:
            self._system, self._root = fs.LocalFileSystem(), "/" + text.lstrip("/")
            return
        try:
            scheme, _, rest = text.partition("://")
            self._system, self._root = fs.FileSystem.from_uri(
                f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
            )
        except (pa.ArrowException, OSError) as error:
            raise CheckpointError(
                f"the state of a ring is written by its nodes, and they cannot reach {self.folder} ({error}): give a "
                "checkpoint in a local or mounted folder, or one that PyArrow can reach"
            ) from None

    @property
    def local(self) -> bool:
        return isinstance(self._system, fs.LocalFileSystem)

    @property
    def root(self) -> Path:
        """The folder, if it is a local one."""
        return Path(self._root)

    # -- manifests ---------------------------------------------------------------------------------------------
    def manifest(self, number: int) -> Manifest | None:
        """The state after a round; None if none has been written for it."""
        path = self._path(f"{number}{SUFFIX}")
        try:
            with self._system.open_input_stream(path) as stream:
                return Manifest.read(stream.read().decode(errors="replace"), path)
        except FileNotFoundError:
            return None

    def commit(self, number: int, identity: Mapping[str, Any], nodes: tuple[Mapping[str, Place], ...]) -> Manifest:
        """From now on this is the state after the round. What no manifest needs any more is deleted."""
        made = Manifest(number, uuid.uuid4().hex, identity, nodes)
        name = f"{number}{SUFFIX}"
        if self.local:
            draft = self._path(f".{name}.{made.token}")
            self._write(draft, made.written().encode())
            self._system.move(draft, self._path(name))
        else:  # there an object is there as a whole or not at all
            self._write(self._path(name), made.written().encode())
        self._clean(number)
        return made

    def rounds(self) -> list[int]:
        """The rounds with a manifest."""
        names = [info.base_name.removesuffix(SUFFIX) for info in self._files("") if info.base_name.endswith(SUFFIX)]
        return sorted(int(name) for name in names if name.isdigit())

    def _clean(self, last: int) -> None:
        old = [number for number in self.rounds() if number <= last - KEPT]
        if not old or last % KEPT:
            return
        kept = [made for number in self.rounds() if number not in old and (made := self.manifest(number)) is not None]
        needed = {file for made in kept for node in made.nodes for file, _, _ in node.values()}
        for number in old:
            self._delete(self._path(f"{number}{SUFFIX}"))
        for node in range(max(len(made.nodes) for made in kept)):
            for info in self._files(str(node)):
                name = f"{node}/{info.base_name}"
                # What a round that is under way has written no manifest names yet.
                if name not in needed and int(info.base_name.partition("-")[0]) <= last - KEPT:
                    self._delete(info.path)

    # -- chunks ------------------------------------------------------------------------------------------------
    def write(self, number: int, node: int, changes: Changes, before: Mapping[str, Place]) -> dict[str, Place]:
        """Store what has changed in a round; returns where all chunks of the node are then."""
        places = {name: place for name, place in before.items() if name not in changes}
        there = {name: frame for name, frame in changes.items() if frame is not None}
        if not there:
            return places
        file = f"{node}/{number}-{uuid.uuid4().hex}"
        self._system.create_dir(self._path(str(node)), recursive=True)
        with self._system.open_output_stream(self._path(file)) as out:
            at = 0
            for name, frame in there.items():
                sink = pa.BufferOutputStream()
                table = frame.to_arrow(compat_level=NEWEST)
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                data = sink.getvalue()
                out.write(data)
                places[name] = (file, at, data.size)
                at += data.size
        return places

    def read(self, places: Mapping[str, Place]) -> State:
        """The chunks at some places; those on this machine are mapped."""
        files = {file: self._buffer(file) for file in {file for file, _, _ in places.values()}}
        return {name: self._chunk(name, files[file], file, at, size) for name, (file, at, size) in places.items()}

    def _chunk(self, name: str, data: Any, file: str, at: int, size: int) -> pl.DataFrame:
        try:
            found = pl.from_arrow(pa.ipc.open_stream(data.slice(at, size)).read_all())
        except (pa.ArrowException, OSError) as error:
            raise CheckpointError(
                f"{self._path(file)} is torn or foreign: chunk {name!r} of the ring's state cannot be read ({error}). "
                "Restore the checkpoint from a copy, or start with a new checkpoint folder"
            ) from None
        assert isinstance(found, pl.DataFrame)
        return found

    def _buffer(self, file: str) -> Any:
        path = self._path(file)
        try:
            if self.local:
                return pa.memory_map(path).read_buffer()
            with self._system.open_input_file(path) as found:
                return found.read_buffer()
        except FileNotFoundError:
            raise CheckpointError(
                f"{path} is missing, and the ring's state needs it: restore the checkpoint from a copy, or start with "
                "a new checkpoint folder"
            ) from None

    # -- files -------------------------------------------------------------------------------------------------
    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _files(self, folder: str) -> list[Any]:
        return list(self._system.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True)))

    def _write(self, path: str, data: bytes) -> None:
        self._system.create_dir(self._root, recursive=True)
        with self._system.open_output_stream(path) as out:
            out.write(data)

    def _delete(self, path: str) -> None:
        try:
            self._system.delete_file(path)
        except FileNotFoundError:  # another attempt at the same round has been here
            return
