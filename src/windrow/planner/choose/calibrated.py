"""The unit costs of this machine in the user's cache folder: written by ``windrow calibrate``, read by the planner."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path

from windrow.operators.joins.costs import Unit
from windrow.operators.ring.costs import Unit as RingUnit

FILE, FORMAT = "costs.json", 1
PLACE, NONE = "WINDROW_CALIBRATION", "none"  # the variable that names another file, or none


@dataclass(frozen=True)
class Calibration:
    """Unit costs of joins, and of the nodes of a ring, and where they are from."""

    unit: Unit
    says: str
    ring: RingUnit = field(default_factory=RingUnit)


REFERENCE = Calibration(Unit(), "of a reference machine; windrow calibrate measures this one")
OF_A_RING = ("send", "hop", "insert", "purge")  # what a pair costs is measured as it runs


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


def ring_seconds(ring: RingUnit) -> dict[str, float]:
    """What is measured of a ring, by name."""
    return {name: cost for name, cost in asdict(ring).items() if name in OF_A_RING}


def write(unit: Unit, file: Path, ring: RingUnit | None = None) -> None:
    """Keep what was measured here."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".tmp")
    known = {"format": FORMAT, "machine": machine(), "nanoseconds": asdict(unit)}
    if ring is not None:
        known["ring_seconds"] = ring_seconds(ring)
    draft.write_text(json.dumps(known, indent=1) + "\n")
    draft.replace(file)


def found() -> Calibration:
    """What was measured on this machine; the constants of a reference machine if nothing was."""
    file = place()
    return (None if file is None else _read(file)) or REFERENCE


def _read(file: Path) -> Calibration | None:
    """None if there are none, or if they are of another machine or version."""
    try:
        known = json.loads(file.read_text())
        if known["format"] != FORMAT or known["machine"] != machine():
            return None
        costs = {name: float(value) for name, value in known["nanoseconds"].items()}
        ring = {name: float(value) for name, value in known.get("ring_seconds", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    right = costs.keys() == {each.name for each in fields(Unit)} and all(0 < cost < 1e9 for cost in costs.values())
    right &= ring.keys() in (set(), set(OF_A_RING)) and all(0 < cost < 1 for cost in ring.values())
    says = "measured on this machine by windrow calibrate"
    return Calibration(Unit(**costs), says, RingUnit(**ring)) if right else None
