"""Small scripts that wrap a program which Spark starts: before its Java, and before its Python workers."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

# Spark puts a zip of PySpark, one of Py4J and a jar before everything else on the path of its workers. Python keeps no
# bytecode of what is in a zip: each new process compiles PySpark anew, three to five times the work of importing it
# where it is installed, and Spark waits 10 s for it.
PYTHON = """#!/bin/sh
# Runs {python} with PySpark as it is installed, which has bytecode, and without Spark's zip of the same.
set -f
IFS=:
kept=
for part in $PYTHONPATH; do
  case "$part" in
    {home}/*) ;;
    *) kept="$kept${{kept:+:}}$part" ;;
  esac
done
unset IFS
set +f
export PYTHONPATH="$kept"
exec {python} "$@"
"""


def write(name: str, command: str, text: str) -> Path:
    """An executable script ``command`` in the folder ``name/bin`` among the temporary files of this user."""
    folder = _private(f"windrow-{name}-{os.getuid()}") / "bin"
    folder.mkdir(exist_ok=True)
    shim = folder / command
    fresh = shim.with_name(f"{command}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
    fresh.replace(shim)  # two processes may do this at once
    return shim


def _private(name: str) -> Path:
    """A folder that only this user can write to: what is in it will be executed."""
    folder = Path(tempfile.gettempdir()) / name
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
        folder.chmod(0o700)
        return folder
    return Path(tempfile.mkdtemp(prefix=f"{name}-"))


def python() -> str:
    """The Python for Spark's workers on this machine: this one, with the PySpark that it has installed."""
    import pyspark

    home = Path(pyspark.__file__).parent
    installed = home.parent in {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    if os.name != "posix" or not installed or os.environ.get("SPARK_HOME", str(home)) != str(home):
        return sys.executable  # only the zip is sure to be there, or it is of another version
    text = PYTHON.format(python=shlex.quote(sys.executable), home=shlex.quote(str(home)))
    shim = write(f"python-{zlib.crc32(text.encode()):08x}", Path(sys.executable).name, text)
    return str(shim) if os.access(shim, os.X_OK) else sys.executable  # temporary files may not be executable
