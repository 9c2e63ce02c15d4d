"""Where a checkpoint stands: Spark writes the absolute paths of its state schemas into it, and looks for them there.

So a folder that was moved or copied cannot be used as it is. ``move`` writes the paths anew. Nothing else in a
checkpoint names its own place; the log of a file source names the input files, which stay where they are.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from windrow.errors import CheckpointError

CRC_MAGIC, CRC_BLOCK = b"crc\0", 512
SCHEMA = re.compile(r"(?P<root>.*)(?P<rest>/state/\d+/_stateSchema/.*)", re.DOTALL)


def check_place(folder: Path) -> None:
    """Raise CheckpointError if the folder is not where its state was written."""
    for root in sorted(_roots(folder)):
        if not _same(root, folder):
            here = os.path.abspath(folder)
            raise CheckpointError(
                f"the checkpoint {here} was written at {root}, and Spark would look for its state there. If it was "
                f"moved or copied, say so once: windrow checkpoint move {shlex.quote(root)} {shlex.quote(here)}"
            )


def move(old: str | Path, new: str | Path) -> str:
    """Move a checkpoint folder, or mend one that was moved or copied from ``old``; returns what was done.

    No query may be running on it. Local folders only; ``old`` may be elsewhere if ``new`` is a copy of it.
    """
    before, there = local(str(old)), local(str(new))
    after = Path(there)
    if "://" in there or ("://" in before and not _is_checkpoint(after)):
        raise CheckpointError(f"only a local folder can be moved: copy {old} to one first, then give the copy as NEW")
    if _is_checkpoint(after):
        return _mend(before, after)
    source = Path(before)
    if not _is_checkpoint(source):
        raise CheckpointError(f"{source} is not the checkpoint of a streaming query, and neither is {after}")
    if after.exists() and (not after.is_dir() or any(after.iterdir())):
        raise CheckpointError(f"{after} already exists: give a folder that is empty or does not exist")
    if source.resolve() in after.resolve().parents:
        raise CheckpointError(f"{after} is inside {source}: give a folder elsewhere")
    _carry(source, after)
    _rewrite(after)
    return f"moved {source} to {after}"


def _mend(old: str, new: Path) -> str:
    """``new`` is a checkpoint already: of ``old``, or it is refused."""
    away = {root for root in _roots(new) if not _same(root, new)}
    if not away and Path(old).exists():
        raise CheckpointError(
            f"{new} is a checkpoint already, and nothing in it names another place: use it as it is, or give "
            "another folder"
        )
    for root in sorted(away):
        if root != old and not _same(root, Path(old)):
            raise CheckpointError(f"{new} was written at {root} and not at {old}: give that path, or another folder")
    _rewrite(new)
    return f"the paths in {new} are now right" if away else f"{new} is where it was written: nothing to do"


def _is_checkpoint(folder: Path) -> bool:
    return (folder / "metadata").is_file()


def local(text: str) -> str:
    """A local path without Hadoop's scheme, absolute; any other URI as it is."""
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return text if "://" in text else os.path.abspath(text)


def _same(root: str, folder: Path) -> bool:
    if "://" in root:
        return False
    return root == os.path.abspath(folder) or (os.path.exists(root) and folder.exists() and folder.samefile(root))


def _carry(old: Path, new: Path) -> None:
    """Move in one step; over file systems copy first, so that there is always a whole one."""
    new.parent.mkdir(parents=True, exist_ok=True)
    if new.is_dir():
        new.rmdir()
    try:
        old.rename(new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise CheckpointError(f"cannot move {old} to {new}: {error.strerror}") from None
        draft = new.with_name(f".{new.name}.moving")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(old, draft)
        draft.rename(new)
        _rewrite(new)
        shutil.rmtree(old)


# -- what Spark stores -------------------------------------------------------------------------------------------------
def _roots(folder: Path) -> set[str]:
    """The places at which the stateful operators say that the checkpoint is."""
    return {local(found["root"]) for _, _, content in _metadata(folder) for found in _schemas(content)}


def _metadata(folder: Path) -> Iterator[tuple[Path, str, Any]]:
    """The metadata files of the stateful operators: a line with a version, then JSON."""
    for file in sorted(folder.glob("state/*/_metadata/**/[!.]*")):
        if file.is_file():
            try:
                version, _, content = file.read_text().partition("\n")
                yield file, version, json.loads(content)
            except ValueError:
                raise CheckpointError(
                    f"{file} is torn or foreign: restore the checkpoint from a copy, or start with a new folder"
                ) from None


def _schemas(content: Any) -> Iterator[re.Match[str]]:
    for store in content.get("stateStoreInfo", []):
        yield from filter(None, map(SCHEMA.fullmatch, store.get("stateSchemaFilePaths", [])))


def _rewrite(folder: Path) -> None:
    """Put the folder's own path into the metadata. Doing it twice changes nothing."""
    here = os.path.abspath(folder)
    for file, version, content in _metadata(folder):
        for found in _schemas(content):
            if not Path(here + found["rest"]).is_file():
                raise CheckpointError(f"{here}{found['rest']} is missing: the checkpoint was not copied whole")
        for store in content.get("stateStoreInfo", []):
            paths = store.get("stateSchemaFilePaths", [])
            paths[:] = [f"file:{here}{m['rest']}" if (m := SCHEMA.fullmatch(p)) else p for p in paths]
        _replace(file, f"{version}\n{json.dumps(content, separators=(',', ':'))}".encode())


def _replace(file: Path, content: bytes) -> None:
    """Write a file anew, with the checksums that Hadoop keeps beside it."""
    if file.read_bytes() == content:
        return
    blocks = [content[at : at + CRC_BLOCK] for at in range(0, len(content), CRC_BLOCK)]
    sums = b"".join(zlib.crc32(block).to_bytes(4, "big") for block in blocks)
    beside, draft = file.with_name(f".{file.name}.crc"), file.with_name(f".{file.name}.draft")
    draft.write_bytes(content)
    beside.unlink(missing_ok=True)  # without sums a file is taken as it is; with wrong ones it is torn
    draft.replace(file)
    beside.write_bytes(CRC_MAGIC + CRC_BLOCK.to_bytes(4, "big") + sums)
