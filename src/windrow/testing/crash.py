"""Kill a running program at a chosen moment of its streaming query: crash tests without guessing at clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL = 0.005  # seconds between two looks
HANGS = 300.0  # seconds after which a program is taken to hang; far more than one needs on a busy machine


def run_until(
    command: Sequence[str], moment: Callable[[], bool], timeout: float = HANGS, env: Mapping[str, str] | None = None
) -> bool:
    """Start a command in a process group of its own and SIGKILL the whole group when ``moment()`` becomes true.

    Returns whether it was killed; false means it ended by itself first, with exit code 0. Raises if it failed.
    """
    with (
        tempfile.TemporaryFile(
            "w+"
        ) as printed,  # not a pipe: nothing reads it meanwhile, and a full one stops the program
        subprocess.Popen(command, start_new_session=True, stdout=printed, stderr=subprocess.STDOUT, env=env) as process,
    ):
        deadline = time.monotonic() + timeout
        while process.poll() is None:
            if moment():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True
            if time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
                raise TimeoutError(f"{' '.join(command)} neither ended nor reached its moment in {timeout} s")
            time.sleep(POLL)
        if process.returncode != 0:
            printed.seek(0)
            output = printed.read()
            raise RuntimeError(f"{' '.join(command)} failed with exit code {process.returncode}:\n{output[-4000:]}")
        return False


def after_file(path: Path, seconds: float = 0.0) -> Callable[[], bool]:
    """A moment: so many seconds after a file has appeared, such as ``offsets/3`` of a checkpoint."""
    seen: list[float] = []

    def moment() -> bool:
        if not seen and path.exists():
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] >= seconds

    return moment
