"""Files of a ring in a folder that all nodes reach: local or mounted, or in a store that Arrow knows."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from windrow.errors import CheckpointError


class TakenError(Exception):
    """A file that may be written once is there already."""


@dataclass
class Folder:
    """``at``: a path, or a URI that Arrow knows (``s3://``, ``hdfs://``, ``gs://``). Names are relative to it."""

    at: str
    _system: Any = field(init=False, repr=False)
    _root: str = field(init=False)

    def __post_init__(self) -> None:
        text = self.at.removeprefix("file:") if self.at.startswith("file:/") else self.at
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
                f"the files of a ring are written by its nodes, and they cannot reach {self.at} ({error}): give a "
                "local or mounted folder, or one that PyArrow can reach"
            ) from None

    @property
    def local(self) -> bool:
        return isinstance(self._system, fs.LocalFileSystem)

    @property
    def root(self) -> Path:
        """The folder, if it is a local one."""
        return Path(self._root)

    def path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    # -- reading -----------------------------------------------------------------------------------------------
    def names(self, inside: str = "") -> list[str]:
        """The files right inside the folder, or inside a folder in it."""
        found = self._system.get_file_info(fs.FileSelector(self.path(inside), allow_not_found=True))
        return [info.base_name for info in found if info.is_file]

    def has(self, name: str) -> bool:
        return bool(self._system.get_file_info(self.path(name)).is_file)

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""
        with self._system.open_input_stream(self.path(name)) as stream:
            return bytes(stream.read())

    def mapped(self, name: str) -> Any:
        """A file as a buffer; one on this machine is mapped. Raises FileNotFoundError."""
        if self.local:
            return pa.memory_map(self.path(name)).read_buffer()
        with self._system.open_input_file(self.path(name)) as found:
            return found.read_buffer()

    # -- writing -----------------------------------------------------------------------------------------------
    @contextmanager
    def writing(self, name: str, lasting: bool = False) -> Iterator[Any]:
        """A new file. ``lasting``: it survives a machine that loses power, too."""
        path = self.path(name)
        self._system.create_dir(path.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(path) as out:
            yield out
        if lasting:
            self.keep(name)

    def keep(self, name: str) -> None:
        """What is in a file, or which files are in a folder, is on the disk from now on."""
        if self.local:
            opened = os.open(self.path(name), os.O_RDONLY)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def put(self, name: str, data: bytes, once: bool = False) -> None:
        """A file that is there as a whole or not at all. ``once``: raises TakenError if it is there; then it lasts, and
        of several that put it at the same time one succeeds. In a store that is no file system they have to take turns.
        """
        if not self.local:  # there an object is there as a whole or not at all
            if once and self.has(name):
                raise TakenError(self.path(name))
            with self.writing(name) as out:
                out.write(data)
            return
        draft = f".{name}.{uuid.uuid4().hex}"
        with self.writing(draft, lasting=once) as out:
            out.write(data)
        if not once:
            self.move(draft, name)
            return
        try:
            os.link(self.path(draft), self.path(name))
        except FileExistsError:
            raise TakenError(self.path(name)) from None
        finally:
            self.delete(draft)
        self.keep("")

    def move(self, name: str, to: str) -> None:
        """Raises FileNotFoundError."""
        self._system.create_dir(self.path(to).rpartition("/")[0], recursive=True)
        self._system.move(self.path(name), self.path(to))

    def delete(self, name: str) -> None:
        """A file, if it is still there."""
        try:
            self._system.delete_file(self.path(name))
        except FileNotFoundError:  # another attempt has been here
            return
