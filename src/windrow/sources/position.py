"""How far a stream of files has come: what is new, what has been read, and what has been set aside."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from windrow.errors import CheckpointError
from windrow.sources.files import DAY, File

_ENTRY = struct.Struct("<Iq")  # modification time in seconds, hash of the path
FORMAT = 2  # 1 had forgotten files that were still there


@dataclass(frozen=True)
class Position:
    """An offset in Spark's checkpoint, so a dict of texts and numbers.

    ``batch`` are the files that the step to here reads and ``aside`` those it cannot, so that a step is repeated with
    the same files. ``known`` are all that were read or set aside and are still there. Of those that are gone, the ones
    that are at most ``remember`` seconds older than the newest stay known: they may come back.
    """

    count: int = 0
    newest: int = 0  # modification time in seconds
    known: Mapping[int, int] = field(default_factory=dict)  # by what a file is remembered, its time in seconds
    batch: tuple[File, ...] = ()
    aside: tuple[tuple[File, str], ...] = ()
    arrived: int = 0  # when the files of the step were found, in microseconds, where a query wants to know; never less
    rows: int = 0  # how many rows were read, where a query wants to number them
    first: tuple[int, ...] = ()  # then, the number of the first row of each file of the step
    asked: int = 0  # when it was asked, in microseconds, where the source of a query can be asked; never less
    all: bool = True  # then, whether the step reads all that was there at that time
    complete: bool = True  # false in one of format 1: what is older than ``remember`` then counts as read

    def fresh(self, there: Iterable[File], remember: int) -> list[File]:
        """The files that are not known, oldest first. Those that are ``too_old`` cannot be read."""
        new = (f for f in there if f.key not in self.known and f.attempt not in self.known)
        return [f for f in new if self.complete or not self.too_old(f, remember)]

    def too_old(self, file: File, remember: int) -> bool:
        """Whether a file that is not known may have been read all the same: it could have been gone in between."""
        return seconds(file) < self.newest - remember

    def reason_too_old(self, file: File, remember: int) -> str | None:
        """Why a file is set aside, if it is for its age."""
        if not self.too_old(file, remember):
            return None
        days = (self.newest - seconds(file)) / DAY
        return (
            f"{file.path} is too old: it was modified {days:,.1f} days before the newest file that was read, more "
            "than remember=.. allows, so it may have been read before. If it was not, set its time anew (touch)"
        )

    def after(
        self,
        read: Sequence[File],
        aside: Sequence[tuple[File, str]],
        remember: int,
        there: Sequence[File] = (),
        now: int | None = None,
        sizes: Sequence[int] = (),
        asked: tuple[int, bool] | None = None,
    ) -> Position:
        """The position after one more step. ``there`` are all files that are to be seen; ``now``: when, if wanted, and
        ``sizes``: how many rows the files have that are read, if wanted. ``asked``: when, and whether these are all.
        """
        every = [*read, *(f for f, _ in aside)]
        newest = max([self.newest, *(seconds(f) for f in every)])
        known = {**self.known, **{f.key: seconds(f) for f in read}, **{f.attempt: seconds(f) for f, _ in aside}}
        if not self.complete:
            known |= {f.key: seconds(f) for f in there if self.too_old(f, remember)}
        here = {f.key if f.key in known else f.attempt for f in there}
        known = {key: at for key, at in known.items() if at >= newest - remember or key in here}
        arrived = self.arrived if now is None else max(self.arrived, now)
        *first, rows = accumulate(sizes, initial=self.rows)
        at, everything = (self.asked, True) if asked is None else (max(self.asked, asked[0]), asked[1])
        return Position(
            self.count + len(every),
            newest,
            known,
            tuple(read),
            tuple(aside),
            max(arrived, at),
            rows,
            tuple(first),
            at,
            everything,
        )

    def to_json(self) -> dict[str, Any]:
        packed = b"".join(_ENTRY.pack(at, key) for key, at in sorted(self.known.items()))
        return {
            "format": FORMAT if self.complete else 1,
            "files": self.count,
            "newest": self.newest,
            "recent": base64.b64encode(packed).decode(),
            "batch": json.dumps([[f.mtime_ns, f.path, f.size] for f in self.batch]),
            "aside": json.dumps([[f.mtime_ns, f.path, f.size, reason] for f, reason in self.aside]),
            **({"arrived": self.arrived} if self.arrived else {}),
            **({"asked": self.asked, "all": self.all} if self.asked else {}),
            **({"rows": self.rows, "first": json.dumps(self.first)} if self.rows else {}),
        }

    @staticmethod
    def from_json(given: dict[str, Any]) -> Position:
        if "recent" not in given:
            raise CheckpointError(
                f"the checkpoint's position {json.dumps(given)[:200]} is not one of this file source. It was written "
                "with another source, such as Spark's own file reader: read the files with it again (windrow run: "
                "--source NAME=spark-parquet:PATH), or start with a new checkpoint folder"
            )
        if (written := given.get("format", 1)) > FORMAT:
            raise CheckpointError(
                f"the checkpoint's position is of format {written}, and this version knows formats up to {FORMAT}: go "
                "on with the version of Windrow that wrote it"
            )
        return Position(
            int(given["files"]),
            int(given["newest"]),
            {key: at for at, key in _ENTRY.iter_unpack(base64.b64decode(given["recent"]))},
            tuple(File(*f) for f in json.loads(given["batch"])),
            tuple((File(*f), reason) for *f, reason in json.loads(given["aside"])),
            int(given.get("arrived", 0)),
            int(given.get("rows", 0)),
            tuple(json.loads(given.get("first", "[]"))),
            int(given.get("asked", 0)),
            bool(given.get("all", True)),
            written == FORMAT,
        )


def seconds(file: File) -> int:
    """The modification time in seconds, as far as it is remembered."""
    return min(max(0, file.mtime_ns // 1_000_000_000), 2**32 - 1)


def spread(files: Sequence[File], parts: int) -> list[list[File]]:
    """The files in at most so many parts of about equal size, the largest first."""
    found: list[list[File]] = [[] for _ in range(max(1, min(parts, len(files))))]
    sizes = [0] * len(found)
    for file in sorted(files, key=lambda f: (-f.size, f)):
        least = sizes.index(min(sizes))
        found[least].append(file)
        sizes[least] += file.size
    return [sorted(part) for part in found if part]
