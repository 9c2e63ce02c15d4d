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

from windrow.errors import CheckpointError
from windrow.hosts.ring.folder import Folder
from windrow.operators.ring.messages import NEWEST
from windrow.spec.batches import Changes, State

FORMAT = 1
KEPT = 8  # manifests: a replay needs the last one, and a copy of a checkpoint may be a little older
SUFFIX = ".json"
Place = tuple[str, int, int]  # of a chunk: its file, where it begins there, and its bytes


@dataclass(frozen=True)
class Manifest:
    """The state after a round. ``nodes``: the chunks of each. ``identity``: what the state belongs to. ``more``: what
    else counts together with it, as JSON.
    """

    round: int
    token: str
    identity: Mapping[str, Any]
    nodes: tuple[Mapping[str, Place], ...]
    more: Mapping[str, Any] = field(default_factory=dict)

    def written(self) -> str:
        known = {"format": FORMAT, "round": self.round, "token": self.token, "identity": self.identity}
        return json.dumps({**known, "nodes": self.nodes, **({"more": self.more} if self.more else {})})

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
            number, token = int(known["round"]), str(known["token"])
            return cls(number, token, dict(known["identity"]), tuple(nodes), dict(known.get("more", {})))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise CheckpointError(
                f"{where} is torn or foreign: restore the checkpoint from a copy, or start with a new checkpoint folder"
            ) from None


@dataclass
class Store:
    """``folder``: see ``Folder``. ``lasting``: a round that counts survives a machine that loses power, too."""

    folder: str
    lasting: bool = False
    files: Folder = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.files = Folder(self.folder)

    @property
    def local(self) -> bool:
        return self.files.local

    @property
    def root(self) -> Path:
        """The folder, if it is a local one."""
        return self.files.root

    # -- manifests ---------------------------------------------------------------------------------------------
    def manifest(self, number: int) -> Manifest | None:
        """The state after a round; None if none has been written for it."""
        name = f"{number}{SUFFIX}"
        try:
            return Manifest.read(self.files.read(name).decode(errors="replace"), self.files.path(name))
        except FileNotFoundError:
            return None

    def commit(
        self,
        number: int,
        identity: Mapping[str, Any],
        nodes: tuple[Mapping[str, Place], ...],
        more: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> Manifest:
        """From now on this is the state after the round. What no manifest needs any more is deleted. ``once``: raises
        TakenError if the round has a manifest.
        """
        made = Manifest(number, uuid.uuid4().hex, identity, nodes, more or {})
        self.files.put(f"{number}{SUFFIX}", made.written().encode(), once)
        self._clean(number)
        return made

    def rounds(self) -> list[int]:
        """The rounds with a manifest."""
        names = [name.removesuffix(SUFFIX) for name in self.files.names() if name.endswith(SUFFIX)]
        return sorted(int(name) for name in names if name.isdigit())

    def last(self) -> Manifest | None:
        """The state after the last round; None if there was none."""
        rounds = self.rounds()
        return self.manifest(rounds[-1]) if rounds else None

    def _clean(self, last: int) -> None:
        old = [number for number in self.rounds() if number <= last - KEPT]
        if not old or last % KEPT:
            return
        kept = [made for number in self.rounds() if number not in old and (made := self.manifest(number)) is not None]
        needed = {file for made in kept for node in made.nodes for file, _, _ in node.values()}
        for number in old:
            self.files.delete(f"{number}{SUFFIX}")
        for node in range(max(len(made.nodes) for made in kept)):
            for base in self.files.names(str(node)):
                # What a round that is under way has written no manifest names yet.
                if (name := f"{node}/{base}") not in needed and int(base.partition("-")[0]) <= last - KEPT:
                    self.files.delete(name)

    # -- chunks ------------------------------------------------------------------------------------------------
    def write(self, number: int, node: int, changes: Changes, before: Mapping[str, Place]) -> dict[str, Place]:
        """Store what has changed in a round; returns where all chunks of the node are then."""
        places = {name: place for name, place in before.items() if name not in changes}
        there = {name: frame for name, frame in changes.items() if frame is not None}
        if not there:
            return places
        file = f"{node}/{number}-{uuid.uuid4().hex}"
        with self.files.writing(file, self.lasting) as out:
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
                f"{self.files.path(file)} is torn or foreign: chunk {name!r} of the ring's state cannot be read "
                f"({error}). Restore the checkpoint from a copy, or start with a new checkpoint folder"
            ) from None
        assert isinstance(found, pl.DataFrame)
        return found

    def _buffer(self, file: str) -> Any:
        try:
            return self.files.mapped(file)
        except FileNotFoundError:
            raise CheckpointError(
                f"{self.files.path(file)} is missing, and the ring's state needs it: restore the checkpoint from a "
                "copy, or start with a new checkpoint folder"
            ) from None
