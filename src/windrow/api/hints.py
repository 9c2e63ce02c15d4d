"""Hints in SQL, ``SELECT /*+ USING(wid), MEMORY('64 MB') */ ..``: how a query should run, never what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from windrow.errors import QueryError, listing, underline
from windrow.logical.nodes import Shape
from windrow.planner import ALGORITHMS
from windrow.planner.in_order import IOP
from windrow.planner.windows import BY_TUPLE, TWO_LEVEL
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

HINT = re.compile(r"(\w+)\s*\(\s*(?:'([^']*)'|([^'()]*?))\s*\)", re.ASCII)
PART = re.compile(r"[^\s,()]+(?:\s*\([^()]*\))?|[^\s,]")
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(bytes?|[kmgt]i?b|)", re.IGNORECASE)
UNITS = {"": 1, "b": 1, "k": 1, "m": 2, "g": 3, "t": 4}
USING, MEMORY = "using", "memory"
MOST = 2**63 - 1
KNOWN = ("USING(algorithm)", "MEMORY('64 MB')")
KINDS: dict[type[Shape], str] = {
    Landmark: "landmark windows",
    Session: "session windows",
    Partitioned: "windows of rows with PA, or partition_by=,",
    SlideByTuple: "slide-by-tuple windows",
}


@dataclass(frozen=True)
class Hints:
    """The algorithm that is asked for, and the bytes that state should not exceed; ``places``: where each is said."""

    using: str | None = None
    memory: int | None = None
    places: tuple[tuple[str, int, int], ...] = ()

    def check(self, window: Shape, text: str) -> None:
        """Refuse, underlined, what would do nothing for this window."""
        if (found := refusal(window, self.using, self.memory)) is not None:
            start, end = next((s, e) for name, s, e in self.places if name == found[0])
            raise QueryError(f"{found[1]}\n{underline(text, start, end)}")


def hints(select: exp.Select, text: str) -> Hints:
    """The hints of a SELECT."""
    tree = select.args.get("hint")
    if tree is None:
        return Hints()
    start = tree.meta["start"] + len("/*+")
    body = text[start : tree.meta["end"] + 1 - len("*/")]
    given: dict[str, tuple[str, int, int]] = {}
    for part in PART.finditer(body):
        place = (start + part.start(), start + part.end() - 1)
        match = HINT.fullmatch(part.group())
        name = match.group(1).lower() if match else ""
        if match is None or name not in (USING, MEMORY):
            raise _refused(f"unknown hint {part.group()}; there are: {listing(KNOWN)}", text, *place)
        if name in given:
            raise _refused(f"{name.upper()} is given twice", text, *place)
        given[name] = ((match.group(2) or match.group(3) or "").strip(), *place)
    if not given:
        raise _refused(f"the hint is empty; there are: {listing(KNOWN)}", text, tree.meta["start"], tree.meta["end"])
    places = tuple((name, *place) for name, (_, *place) in given.items())
    return Hints(_algorithm(given), _bytes(given, text), places)  # type: ignore[arg-type]


def _algorithm(given: dict[str, tuple[str, int, int]]) -> str | None:
    return given[USING][0].lower().replace("_", "-") if USING in given else None  # two_level needs no quotes


def _bytes(given: dict[str, tuple[str, int, int]], text: str) -> int | None:
    if MEMORY not in given:
        return None
    try:
        return size(given[MEMORY][0])
    except QueryError as error:
        raise _refused(str(error), text, *given[MEMORY][1:]) from None


def _refused(why: str, text: str, start: int, end: int) -> QueryError:
    return QueryError(f"{why}\n{underline(text, start, end)}")


def refusal(window: Shape, using: str | None, memory: int | None, flush: str | None = None) -> tuple[str, str] | None:
    """Which hint can do nothing for a window, and why.

    >>> refusal(Session(5), None, 1000)
    ('memory', 'session windows have no choice of algorithms that memory could decide: leave it out')
    """
    if using is not None and not isinstance(using, str):
        return USING, f"using={using!r} is not the name of an algorithm"
    sliding = isinstance(window, (Sliding, RowSliding))
    kind = KINDS.get(type(window), "these windows")
    possible = ALGORITHMS if sliding else tuple(BY_TUPLE) if isinstance(window, SlideByTuple) else ()
    possible += () if isinstance(window, Partitioned) else (IOP,)
    if using is not None and using not in possible:
        if not possible:
            return USING, f"{kind} have only one algorithm: leave out {using!r}"
        what = "window aggregation" if sliding else kind
        return USING, f"there is no algorithm {using!r} for {what}; there are: {', '.join(possible)}"
    if memory is not None and not sliding:
        return MEMORY, f"{kind} have no choice of algorithms that memory could decide: leave it out"
    if memory is not None and using not in (None, TWO_LEVEL):
        return MEMORY, f"memory decides which algorithm runs, and {using!r} is asked for: leave out one of them"
    if flush is not None and using != TWO_LEVEL:
        return "flush", f"flush={flush!r} is about the table of using={TWO_LEVEL!r}; other algorithms have none"
    return None


def size(given: str | int) -> int:
    """Bytes.

    >>> size("1.5 MB"), size("2 KiB"), size(7)
    (1500000, 2048, 7)
    """
    text = str(given).strip() if isinstance(given, (int, str)) and not isinstance(given, bool) else ""
    match = SIZE.fullmatch(text.removeprefix("-"))
    if match is None:
        raise QueryError(f"{given!r} is not a size: write 64 MB, 1.5 GiB or a number of bytes")
    unit = match.group(2).lower().removesuffix("ytes").removesuffix("yte")
    power = UNITS[unit[:1]] if unit not in ("", "b") else 0
    found = int(Fraction(match.group(1)) * (1024 if "i" in unit else 1000) ** power)
    if found <= 0 or text.startswith("-"):
        raise QueryError(f"a size must be positive, not {given}")
    if found > MOST:
        raise QueryError(f"a size is less than 2^63 bytes, not {given}")
    return found
