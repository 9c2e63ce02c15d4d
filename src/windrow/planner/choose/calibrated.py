"""The unit costs of this machine in the user's cache folder: written by ``windrow calibrate``, read by the planner."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from windrow.operators.joins.costs import Unit

FILE, FORMAT = "costs.json", 1
PLACE, NONE = "WINDROW_CALIBRATION", "none"  # the variable that names another file, or none


@dataclass(frozen=True)
class Calibration:
    """Unit costs, and where they are from."""

    unit: Unit
    says: str


REFERENCE = Calibration(Unit(), "of a reference machine; windrow calibrate measures this one")


def place() -> Path | None:
    """The file; None if the user wants none."""
    given = os.environ.get(PLACE)
    if given == NONE:
        return None
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windrow" / FILE


def machine() -> str:
    """What costs depend on: the kind of processor, and how many there are."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} x {_processor()}"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "processor")


def write(unit: Unit, file: Path) -> None:
    """Keep what was measured here."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".tmp")
    known = {"format": FORMAT, "machine": machine(), "nanoseconds": asdict(unit)}
    draft.write_text(json.dumps(known, indent=1) + "\n")
    draft.replace(file)


def found() -> Calibration:
    """What was measured on this machine; the constants of a reference machine if nothing was."""
    file = place()
    unit = None if file is None else _read(file)
    return REFERENCE if unit is None else Calibration(unit, "measured on this machine by windrow calibrate")


def _read(file: Path) -> Unit | None:
    """None if there are none, or if they are of another machine or version."""
    try:
        known = json.loads(file.read_text())
        if known["format"] != FORMAT or known["machine"] != machine():
            return None
        costs = {name: float(value) for name, value in known["nanoseconds"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    right = costs.keys() == {each.name for each in fields(Unit)} and all(0 < cost < 1e9 for cost in costs.values())
    return Unit(**costs) if right else None
