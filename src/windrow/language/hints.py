"""Hints in SQL, ``SELECT /*+ USING(wid), MEMORY('64 MB') */ ..``: how a query should run, never what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError, listing

HINT = re.compile(r"(\w+)\s*\(\s*'?([^'()]*?)'?\s*\)", re.ASCII)
SEPARATOR = re.compile(r"(?<=\))[\s,]+")
SIZE = re.compile(r"([0-9.]+)\s*(bytes?|[kmgt]i?b|)", re.IGNORECASE)
UNITS = {"": 1, "b": 1, "k": 1, "m": 2, "g": 3, "t": 4}
KNOWN = ("USING(algorithm)", "MEMORY('64 MB')")


@dataclass(frozen=True)
class Hints:
    """The algorithm that is asked for, and the bytes that state should not exceed."""

    using: str | None = None
    memory: int | None = None


def hints(select: exp.Select) -> Hints:
    """The hints of a SELECT."""
    tree = select.args.get("hint")
    found = Hints()
    # sqlglot hands over what it does not know as one text.
    texts = [i if isinstance(i, str) else i.sql("spark") for i in tree.expressions] if tree is not None else []
    for text in (part for given in texts for part in SEPARATOR.split(given.strip())):
        match = HINT.fullmatch(text.strip())
        name = match.group(1).upper() if match else ""
        if match and name == "USING":
            found = Hints(match.group(2).lower().replace("_", "-"), found.memory)  # two_level needs no quotes
        elif match and name == "MEMORY":
            found = Hints(found.using, size(match.group(2)))
        else:
            raise QueryError(f"unknown hint {text}; there are: {listing(KNOWN)}")
    return found


def size(given: str | int) -> int:
    """Bytes.

    >>> size("1.5 MB"), size("2 KiB"), size(7)
    (1500000, 2048, 7)
    """
    if isinstance(given, int):
        amount, unit = float(given), ""
    else:
        match = SIZE.fullmatch(given.strip())
        if match is None:
            raise QueryError(f"{given!r} is not a size: write 64 MB, 1.5 GiB or a number of bytes")
        amount, unit = float(match.group(1)), match.group(2).lower().removesuffix("ytes").removesuffix("yte")
    base = 1024 if "i" in unit else 1000
    power = UNITS[unit[:1]] if unit not in ("", "b") else 0
    if amount <= 0:
        raise QueryError(f"a size must be positive, not {given}")
    return int(amount * base**power)
