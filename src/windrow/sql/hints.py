"""Hints in SQL, ``SELECT /*+ USING(wid), MEMORY('64 MB') */ ..``: how a query should run, and what it may spend.

They never change what a query means, but for the limits of a join, which let it leave out rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from windrow.api.algorithm import MEMORY, USING, refusal
from windrow.api.given import number, size
from windrow.api.joins import FORCED
from windrow.api.limits import NAMES, limits
from windrow.errors import PlanError, QueryError, listing, underline
from windrow.logical.multi_join import MULTI, PIPELINE
from windrow.logical.nodes import Shape
from windrow.spec.joining import Limits
from windrow.spec.spread import RINGS

HINT = re.compile(r"(\w+)\s*\(\s*(?:'([^']*)'|([^'()]*?))\s*\)", re.ASCII)
PART = re.compile(r"[^\s,()]+(?:\s*\([^()]*\))?|[^\s,]")
KNOWN = ("USING(algorithm)", "MEMORY('64 MB')")
ALPHA, COST = "alpha", "cost"
LIMITS = ("MAX_RATE(1000)", "MAX_STATE(50000)", "SHARE('equal')", "SEED(7)")
NODES = "nodes"
OF_JOINS = ("USING(join)", "ALPHA(0.3)", "COST(0.001)", "NODES(4)", *LIMITS)
Given = dict[str, tuple[str, int, int]]  # by name: what is in parentheses, and where it stands


@dataclass(frozen=True)
class Hints:
    """The algorithm to use, and the bytes that state should not exceed; of a join, when it changes, the time of a
    comparison, its limits, and the number of nodes of one that is spread over nodes, 0 for as many as cost least.
    ``places``: where each stands in the text.
    """

    using: str | None = None
    memory: int | None = None
    alpha: float | None = None
    cost: float | None = None
    limits: Limits | None = None
    nodes: int | None = None
    places: tuple[tuple[str, int, int], ...] = ()

    def check(self, window: Shape | None, text: str) -> None:
        """Refuse, underlined, a hint that has no effect on this window; none has one without a window."""
        if window is None and self.places:
            name, start, end = self.places[0]
            raise QueryError(f"{name.upper()} has no effect on groups by both times\n{underline(text, start, end)}")
        for name, start, end in self.places:
            if name in (ALPHA, COST, NODES, *NAMES):
                raise _refused(f"{name.upper()} is about joins, and this is a window", text, start, end)
        if window is not None and (found := refusal(window, self.using, self.memory)) is not None:
            start, end = next((s, e) for name, s, e in self.places if name == found[0])
            raise QueryError(f"{found[1]}\n{underline(text, start, end)}")


NONE = Hints()


def hints(select: exp.Select, text: str) -> Hints:
    """The hints of a SELECT."""
    tree = select.args.get("hint")
    if tree is None:
        return NONE
    start = tree.meta["start"] + len("/*+")
    body = text[start : tree.meta["end"] + 1 - len("*/")]
    given: Given = {}
    for part in PART.finditer(body):
        place = (start + part.start(), start + part.end() - 1)
        match = HINT.fullmatch(part.group())
        name = match.group(1).lower() if match else ""
        if match is None or name not in (USING, MEMORY, ALPHA, COST, NODES, *NAMES):
            known = listing(dict.fromkeys((*KNOWN, *OF_JOINS)))
            raise _refused(f"unknown hint {part.group()}; available: {known}", text, *place)
        if name in given:
            raise _refused(f"{name.upper()} is given twice", text, *place)
        given[name] = ((match.group(2) or match.group(3) or "").strip(), *place)
    if not given:
        raise _refused(f"the hint is empty; available: {listing(KNOWN)}", text, tree.meta["start"], tree.meta["end"])
    places = tuple((name, *place) for name, (_, *place) in given.items())
    alpha, cost = _number(given, ALPHA, text), _number(given, COST, text)
    limited, nodes = _limits(given, text), _nodes(given, text)
    return Hints(_algorithm(given), _bytes(given, text), alpha, cost, limited, nodes, places)  # type: ignore[arg-type]


def join_hint(select: exp.Select, text: str, joins: int = 1) -> Hints:
    """What the hint of a SELECT says of its joins, of which there are so many; the hint is used up."""
    found = hints(select, text)
    for name, start, end in found.places:
        if name == MEMORY:
            raise _refused(f"{name.upper()} is about windows, and this is a join", text, start, end)
        if name == USING and found.using not in (available := (*FORCED, MULTI, PIPELINE, *RINGS)):
            raise _refused(f"no join is called {found.using}; available: {listing(available)}", text, start, end)
        if name in NAMES and joins > 1:
            why = f"{name.upper()} is about one join, and here are {joins}: put each into a query of its own in FROM"
            raise _refused(why, text, start, end)
    select.set("hint", None)
    return found


def _limits(given: Given, text: str) -> Limits | None:
    values: dict[str, float | int | str] = {}
    for name, (value, start, end) in given.items():
        if name not in NAMES:
            continue
        try:
            values[name] = value.lower() if name == "share" else float(value) if name == "max_rate" else int(value)
        except ValueError:
            raise _refused(f"{name.upper()} takes a number, not {value!r}", text, start, end) from None
    try:
        return limits(**values)
    except (PlanError, QueryError) as error:
        places = [place for name, (_, *place) in given.items() if name in NAMES]
        raise type(error)(f"{error}\n{underline(text, *places[0])}") from None


def _algorithm(given: Given) -> str | None:
    return given[USING][0].lower().replace("_", "-") if USING in given else None  # two_level needs no quotes


def _bytes(given: Given, text: str) -> int | None:
    if MEMORY not in given:
        return None
    try:
        return size(given[MEMORY][0])
    except QueryError as error:
        raise _refused(str(error), text, *given[MEMORY][1:]) from None


def _nodes(given: Given, text: str) -> int | None:
    if NODES not in given:
        return None
    value, *place = given[NODES]
    if value.lower() == "auto":
        return 0
    if not value.isdigit() or int(value) < 1:
        raise _refused(f"NODES takes a number, 1 or more, or AUTO, not {value!r}", text, *place)
    return int(value)


def _number(given: Given, name: str, text: str) -> float | None:
    if name not in given:
        return None
    value, *place = given[name]
    try:
        return number(float(value), name)
    except (ValueError, QueryError):
        raise _refused(f"{name.upper()} takes a number, not {value!r}", text, *place) from None


def _refused(why: str, text: str, start: int, end: int) -> QueryError:
    return QueryError(f"{why}\n{underline(text, start, end)}")
