"""From sqlglot trees to Polars expressions: each node by its handler, in the type that it is needed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.logical.reading import named, written
from windrow.logical.scalar.casts import cast, implicit
from windrow.logical.scalar.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Refused,
    Schema,
    Typed,
    common,
    is_instant,
    is_number,
    is_text,
    type_name,
)


class Translator:
    """The expressions of a tree over a schema. Each node is translated once, however often its type is asked for."""

    def __init__(self, schema: Schema, handlers: Mapping[type[exp.Expr], Handler]) -> None:
        self.schema = schema
        self.handlers = handlers
        self._found: dict[int, tuple[exp.Expr, Typed]] = {}  # with the node, so that no other gets its id

    def of(self, node: exp.Expr) -> Typed:
        """The Polars expression of a node, and its type."""
        if id(node) not in self._found:
            self._found[id(node)] = node, self._translated(node)
        return self._found[id(node)][1]

    def _translated(self, node: exp.Expr) -> Typed:
        if (handler := self.handlers.get(type(node))) is not None and (found := handler(self, node)) is not None:
            return found
        raise Refused(node, f"{named(node)!r} is not supported in expressions")

    def cast(self, node: exp.Expr, target: pl.DataType) -> Typed:
        """A node in a type that it is needed in; a text literal that cannot be read as one is an error of the query."""
        given = self.of(node)
        if not implicit(given.dtype, target):
            needed = f"a value of type {type_name(target)} is needed here"
            raise Refused(node, f"{needed}, and this is of type {type_name(given.dtype)}")
        if isinstance(node, exp.Literal) and node.is_string and target != TEXT:
            return self._read(node, target)
        return cast(given, target, written(node))

    def _read(self, literal: exp.Expr, target: pl.DataType) -> Typed:
        text = Typed(pl.lit(literal.name), TEXT)
        value = pl.select(cast(text, target, "", lenient=True).expr).to_series()
        if value[0] is None:
            kind = "timestamp or date" if is_instant(target) else type_name(target)
            raise Refused(literal, f"{literal.name!r} is not a {kind}")
        if target == DATE:
            stamp = pl.select(cast(text, TIMESTAMP, "", lenient=True).expr.dt.time()).to_series()[0]
            if stamp is None or stamp.isoformat() != "00:00:00":
                raise Refused(literal, f"{literal.name!r} has a time of day, and a date is needed here")
        return Typed(pl.lit(value).first(), target)

    def alike(self, node: exp.Expr, *nodes: exp.Expr, promote: bool = True, compared: bool = False) -> list[Typed]:
        """All of these in the type that they have beside each other."""
        types = [self.of(n).dtype for n in nodes]
        target = common(types, promote)
        if compared and pl.UInt64 in types and target == BIGINT:
            target = pl.Int128()  # the only integers that could lie beyond
        if target is None:
            names = " and ".join(dict.fromkeys(type_name(t) for t in types))
            raise Refused(node, f"the types in {written(node)} do not fit: {names} have no common type")
        return [self.cast(n, target) for n in nodes]

    def condition(self, node: exp.Expr, requirement: str) -> Typed:
        """A boolean, or NULL."""
        found = self.of(node)
        if found.dtype not in (pl.Boolean, pl.Null):
            raise Refused(node, f"{requirement}, and this is of type {type_name(found.dtype)}")
        return cast(found, BOOLEAN, written(node))

    def text(self, node: exp.Expr) -> Typed:
        """Any value as a text."""
        return self.cast(node, TEXT)

    def number(self, node: exp.Expr) -> Typed:
        """A number as arithmetic takes it: integers in 64 bits; a text that is read as one is a double."""
        found = self.of(node)
        if is_text(found.dtype) or found.dtype == pl.Null:
            return self.cast(node, DOUBLE)
        if found.dtype.is_integer():
            return self.cast(node, BIGINT)
        if not is_number(found.dtype):
            raise Refused(node, f"a number is needed here, and this is of type {type_name(found.dtype)}")
        return found

    def double(self, node: exp.Expr) -> Typed:
        """A number as a double."""
        return cast(self.number(node), DOUBLE, written(node))


def operands(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a function, where the parser keeps the first apart."""
    this = [node.this] if isinstance(node.args.get("this"), exp.Expr) else []
    return [*this, *(node.args.get("expressions") or [])]


Handler = Callable[[Translator, Any], Typed | None]
