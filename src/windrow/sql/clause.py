"""From the window clause to a window: which type it is, and whether its parameters fit together."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.hosts.local import value
from windrow.logical.checked import attribute, on_value
from windrow.logical.expressions import fail, visible
from windrow.logical.nodes import (
    PROGRESSING,
    Node,
    Shape,
    progressing,
)
from windrow.spec.lengths import check_zone, length, policy
from windrow.spec.names import WINDOW_TIME
from windrow.spec.options import Options
from windrow.sql.trees import WindowClause, WindowLength
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

OPTIONS = {"origin", "zone", "empty", "whole", "late", "keep", "slack"}
ROW_NUM = "row_num"
ROWS = ("ROW", "ROWS")
POSSIBLE = (
    "supported: [RANGE r, SLIDE s, WA attr], [TUMBLING r, WA attr], [RANGE ALL, SLIDE s, WA attr], "
    "[RANGE n ROWS, SLIDE m ROWS, WA row_num], the same with PA key, "
    "[RANGE r, RATTR attr, SLIDE n ROWS, SATTR row_num or rank(attr)] with or without PA key, [SESSION gap, WA attr]"
)


def shape(clause: WindowClause, node: Node, sql: str) -> Shape:
    """The window of a clause over a stream; every error underlines the parameter at fault."""
    return Clause(clause, node, sql).shape()


def over(clause: WindowClause, node: Node) -> Node:
    """The input, progressing on the value of the column that the clause names."""
    given = clause.args.get("wa") or clause.args.get("rattr")
    name = None if given is None else attribute(node, given.name)
    return on_value(node, name) if name is not None and name in node.times else node


def parts(clause: WindowClause, node: Node, sql: str) -> list[exp.Expr]:
    """The columns that partition the rows (PA): each value has its own windows."""
    return Clause(clause, node, sql).parts()


def options(clause: WindowClause, node: Node, sql: str, early: WindowLength | None) -> Options:
    """Everything in the clause but the window's shape, and how often early results come."""
    return Clause(clause, node, sql).options(early)


class Clause:
    """The parameters of a clause over a stream."""

    def __init__(self, clause: WindowClause, node: Node, sql: str) -> None:
        self.clause = clause
        self.node = node
        self.sql = sql

    def shape(self) -> Shape:
        found = {name for name, value in self.clause.args.items() if value} - {"rank", *OPTIONS}
        if self.clause.args.get("origin") and not ({"tumbling", "slide", "range"} & found and "sattr" not in found):
            raise self._refused("ORIGIN is not supported here", self.clause.args["origin"])
        if "tumbling" in found:
            self._only(found, {"tumbling", "wa"})
            size = self.length("tumbling")
            return Sliding(size, size, self.origin())
        if "session" in found:
            self._only(found, {"session", "wa"})
            return Session(self.length("session"))
        if "range" not in found:
            raise self._refused("the window has no RANGE")
        if {"rattr", "sattr"} & found:
            self._only(found, {"range", "rattr", "slide", "sattr", "pa"})
            return self._slide_by_tuple()
        if self.is_all("range"):
            self._only(found, {"range", "slide", "wa"})
            return Landmark(self.length("slide"), self.origin())
        if self.in_rows("range"):
            return self._row_window(found)
        self._only(found, {"range", "slide", "wa", "pa"})
        if "pa" in found:
            raise self._refused("PA needs a window of ROWS; for a time window use GROUP BY", self.clause.args["pa"][0])
        size = self.length("range")
        return Sliding(size, self.length("slide") if "slide" in found else size, self.origin())

    def _row_window(self, found: set[str]) -> Shape:
        self._only(found, {"range", "slide", "wa", "pa"})
        if (origin := self.clause.args.get("origin")) is not None:
            raise self._refused("windows of ROWS begin with the first row: ORIGIN is not supported here", origin)
        wa = self.clause.args.get("wa")
        if wa is not None and not self.numbers(wa):
            raise self._refused(f"a window of ROWS slides over {ROW_NUM}", wa)
        size = self.count("range")
        step = self.count("slide") if "slide" in found else size
        return Partitioned(size, step) if "pa" in found else RowSliding(size, step)

    def numbers(self, attribute: exp.Expr) -> bool:
        """Whether this is row_num, or the column declared as row_num."""
        return attribute.name.lower() in {ROW_NUM, *(c.lower() for c in self.node.arrival[-1:])}

    def _slide_by_tuple(self) -> Shape:
        sattr, rattr = self.clause.args.get("sattr"), self.clause.args.get("rattr")
        if sattr is None or rattr is None or not self.clause.args.get("slide"):
            raise self._refused("RATTR, SLIDE and SATTR must be given together")
        if self.is_all("range"):
            raise self._refused("RANGE ALL cannot slide by rows", self.given("range"))
        by_rank = bool(self.clause.args.get("rank"))
        if not by_rank and not self.numbers(sattr):
            raise self._refused(f"SATTR must be {ROW_NUM} or rank({rattr.name})", sattr)
        if by_rank and sattr.name.lower() != rattr.name.lower():
            raise self._refused("rank() must be of the attribute that RANGE is over", sattr)
        size = self.length("range", rattr)
        return SlideByTuple(size, self.count("slide"), "rank" if by_rank else "row_num")

    def origin(self) -> int:
        given = self.clause.args.get("origin")
        if given is None:
            return 0
        try:
            at = given.name if given.is_string else int(given.name)
            return value(at, self._attribute(self.clause.args.get("wa")), "ORIGIN")
        except (QueryError, ValueError) as error:
            raise fail(given, f"invalid origin: {error}", self.sql) from None

    def parts(self) -> list[exp.Expr]:
        """The columns of PA."""
        found: list[exp.Expr] = [exp.column(p.name) for p in self.clause.args.get("pa") or []]
        for column, given in zip(found, self.clause.args.get("pa") or [], strict=True):
            column.this.meta.update(given.meta)
        return found

    def options(self, early: WindowLength | None) -> Options:
        args = self.clause.args
        keep, late = args.get("keep"), args.get("late")
        zone = args["zone"].name if args.get("zone") else None
        if zone is not None:
            check_zone(zone)
        rows = self._by_rows()
        return Options(
            late=policy(late.name.lower()) if late is not None else "drop",
            generous=bool(args.get("slack")) and args["slack"].name == "GENEROUS",
            keep=None if keep is None else self._length_of(keep, "LATE REVISE FOR", rows),
            empty=bool(args.get("empty")),
            partial=not args.get("whole"),
            early=None if early is None else self._length_of(early, "EMIT EARLY EVERY", rows),
            zone=zone,
        )

    def _over(self) -> exp.Expr | None:
        return self.clause.args.get("wa") or self.clause.args.get("rattr")

    def _by_rows(self) -> bool:
        return bool(self.clause.args.get("range")) and self.in_rows("range")

    def _length_of(self, given: WindowLength, what: str, rows: bool) -> int:
        unit = given.args.get("unit")
        if rows and unit is not None and unit.name.upper() not in ROWS:
            raise fail(given, f"{what} of a window of ROWS must be a number of ROWS", self.sql)
        text = given.name if rows else f"{given.name} {unit.name if unit is not None else ''}".strip()
        try:
            return length(text, pl.Int64() if rows else self._attribute(self._over()), what)
        except QueryError as error:
            raise fail(given, str(error), self.sql) from None

    # -- parameters ----------------------------------------------------------------------------------------------
    def _only(self, found: set[str], allowed: set[str]) -> None:
        if odd := found - allowed:
            name = sorted(odd)[0]
            value = self.clause.args[name]
            node = value[0] if isinstance(value, list) else value
            raise self._refused(f"{name.upper()} is not supported here", node)

    def given(self, name: str) -> WindowLength:
        found = self.clause.args.get(name)
        if found is None:
            raise self._refused(f"the window has no {name.upper()}")
        assert isinstance(found, WindowLength)
        return found

    def is_all(self, name: str) -> bool:
        return self.given(name).name.upper() == "ALL"

    def in_rows(self, name: str) -> bool:
        return self._unit(name).upper() in ROWS

    def _unit(self, name: str) -> str:
        unit = self.given(name).args.get("unit")
        return unit.name if unit is not None else ""

    def length(self, name: str, attribute: exp.Expr | None = None) -> int:
        given = self.given(name)
        dtype = self._attribute(attribute or self.clause.args.get("wa"))
        try:
            return length(f"{given.name} {self._unit(name)}".strip(), dtype, name.upper())
        except QueryError as error:
            raise fail(given, str(error), self.sql) from None

    def count(self, name: str) -> int:
        given = self.given(name)
        if not self.in_rows(name):
            raise self._refused(f"{name.upper()} must be in ROWS", given)
        try:
            return length(given.name, pl.Int64(), name.upper())
        except QueryError as error:
            raise fail(given, str(error), self.sql) from None

    def _attribute(self, given: exp.Expr | None) -> pl.DataType:
        """The type of the windowing attribute, which must be the one that the stream progresses on."""
        progress, schema = self.node.progress, self.node.schema
        if progress is None:
            raise self._refused("the progressing column is not selected by the inner query: add it to its SELECT list")
        if given is None or attribute(self.node, given.name) == WINDOW_TIME:
            return schema[progress]
        name = next((c for c in schema if c == given.name), None)
        name = name or next((c for c in schema if c.lower() == given.name.lower()), None)
        if name is None:
            raise fail(given, f"unknown column {given.name!r}; available: {listing(visible(schema))}", self.sql)
        if not progressing(schema[name]):
            raise fail(given, f"a window needs {PROGRESSING}, and {name} is of type {schema[name]}", self.sql)
        if name not in self.node.times:
            raise fail(
                given,
                f"the stream makes promises on {progress}, so windows over {name} would never close: "
                f"use WA {progress}, or declare the stream with progress={name!r}",
                self.sql,
            )
        return schema[name]

    def _refused(self, why: str, node: exp.Expr | None = None) -> QueryError:
        return fail(node or self.clause, f"{why}; {POSSIBLE}", self.sql)
