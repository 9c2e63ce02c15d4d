"""Promise rules as text: ``PUNCTUATED BY slack('10 seconds') IDLE AFTER '1 minute'`` in SQL, ``--punctuation`` on the
command line.

A rule has the name and the parameters of its function in ``wr.promise``; their annotations say what each takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.api import promise
from windrow.api.declared import MICROS, asked, promising
from windrow.api.promise import Promise
from windrow.errors import QueryError, listing
from windrow.logical.explain import promises_text
from windrow.logical.expressions import fail
from windrow.logical.nodes import Progress, Scan
from windrow.logical.reading import read
from windrow.spec.lengths import length
from windrow.sql.dialect import Windrow, WindrowParser
from windrow.sql.trees import PunctuatedBy

Own = Mapping[str, Promise]
PROMISES: dict[str, Callable[..., Promise]] = {
    f.__name__: f
    for f in (
        promise.ordered,
        promise.slack,
        promise.delay,
        promise.rows,
        promise.partitions,
        promise.markers,
        promise.heartbeats,
        promise.estimated,
    )
}
Schema = Mapping[str, pl.DataType]


def users(given: list[Promise]) -> dict[str, Promise]:
    """The user's own promise rules by the names that SQL knows them by."""
    found: dict[str, Promise] = {}
    for rule in given:
        if rule.name is None:
            raise QueryError("wr.sql takes your own promise rules, wr.promise.function(f); it knows the built-in ones")
        if not rule.name.isidentifier():
            raise QueryError(f"PUNCTUATED BY needs a word, not {rule.name!r}: wr.promise.function(f, name='my_rule')")
        if rule.name.lower() in PROMISES:
            raise QueryError(f"the promise rule {rule.name!r} is built in; taken: {listing(PROMISES)}")
        found[rule.name.lower()] = rule
    return found


def declared(scan: Scan, tree: PunctuatedBy, own: Own, sql: str) -> Scan:
    """A source that makes promises by the rule that a query names."""
    if scan.source.promises:
        raise fail(
            tree,
            f"stream {scan.name!r} {promises_text(scan)} already, by its declaration, and PUNCTUATED BY "
            f"{_text(tree, sql)} would be a second promise rule: leave one of them out",
            sql,
        )
    return _declared(scan, tree, own, sql)


def _declared(scan: Scan, tree: PunctuatedBy, own: Own, sql: str) -> Scan:
    try:
        found = promising(replace(scan, source=_Call(tree, own, sql).promise().declare(scan.source, scan.schema)))
        idle = tree.args.get("idle")
        return found if idle is None else asked(found, None, idle.name)
    except QueryError as error:
        raise _placed(error, tree, sql) from None


def rule(text: str) -> Promise:
    """The promise rule that a text describes.

    >>> from windrow.api.sources import stream
    >>> stream([{"t": 1, "p": 7}], progress="t", punctuation=rule("partitions(p, 8, slack => 2)")).node.source.rule
    BySource(column='p', slack=2, count=8)
    """
    found = read(lambda: WindrowParser(dialect=Windrow).parse_promise(Windrow().tokenize(text), text), text)
    tree = found[0] if len(found) == 1 else None
    if not isinstance(tree, PunctuatedBy):
        raise QueryError(f"{text!r} is not a promise rule, such as slack('10 seconds')")

    def declare(given: Progress, schema: Schema) -> Progress:
        return _declared(Scan("", tuple(schema.items()), given), tree, {}, text).source

    return Promise(declare)


def _text(tree: exp.Expr, sql: str) -> str:
    return sql[tree.meta["start"] : tree.meta["end"] + 1]


def _placed(error: QueryError, tree: exp.Expr, sql: str) -> QueryError:
    """An error without a place in the text, with the rule underlined."""
    return error if "\n" in str(error) else fail(tree, str(error), sql)


class _Call:
    """A call of a promise rule, and what its arguments mean."""

    def __init__(self, tree: PunctuatedBy, own: Own, sql: str) -> None:
        self.tree = tree
        self.own = own
        self.sql = sql
        self.name = tree.this.name.lower()

    def promise(self) -> Promise:
        if self.name in self.own:
            if self.tree.expressions:
                raise self._refused(self.tree.expressions[0], f"{self.name}() is your own rule: it takes no arguments")
            return self.own[self.name]
        if self.name not in PROMISES:
            raise self._refused(
                self.tree.this,
                f"unknown promise rule {self.tree.this.name!r}; available: {listing({*PROMISES, *self.own})}; define "
                "your own with wr.promise.function and pass it to wr.sql",
            )
        return Promise(lambda given, schema: self._promise_of(given, schema).declare(given, schema))

    def _promise_of(self, given: Progress, schema: Schema) -> Promise:
        bound = self._bound()
        parameters = inspect.signature(PROMISES[self.name]).parameters
        read = {n: READERS[parameters[n].annotation](self, a, given, schema, n) for n, a in bound.items()}
        return PROMISES[self.name](**read)

    def _bound(self) -> dict[str, exp.Expr]:
        """The arguments by name."""
        parameters = inspect.signature(PROMISES[self.name]).parameters
        found: dict[str, exp.Expr] = {}
        for position, argument in enumerate(self.tree.expressions):
            named = argument.args.get("name")
            if named is None and any(a.args.get("name") for a in self.tree.expressions[:position]):
                raise self._refused(argument, "a positional argument cannot follow a named one")
            if named is None and position >= len(parameters):
                raise self._refused(argument, f"{self._signature()} takes at most {len(parameters)} arguments")
            name = named.name.lower() if named is not None else list(parameters)[position]
            if name not in parameters:
                raise self._refused(named, f"{self._signature()} has no argument {named.name!r}")
            if name in found:
                raise self._refused(argument, f"{name} is given twice: {self._signature()}")
            found[name] = argument.this
        missing = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty and n not in found]
        if missing:
            raise self._refused(self.tree, f"{self._signature()} needs {' and '.join(missing)}")
        return found

    def _signature(self) -> str:
        parameters = inspect.signature(PROMISES[self.name]).parameters.values()
        shown = [p.name if p.default is inspect.Parameter.empty else f"[{p.name}]" for p in parameters]
        return f"{self.name}({', '.join(shown)})"

    def _refused(self, node: exp.Expr, why: str) -> QueryError:
        return fail(node, why, self.sql)

    # -- arguments -----------------------------------------------------------------------------------------------
    def _column(self, tree: exp.Expr, _: Progress, schema: Schema, what: str) -> str:
        if not (isinstance(tree, exp.Identifier) or (isinstance(tree, exp.Literal) and tree.is_string)):
            raise self._refused(tree, f"{what} of {self.name}() must be a column")
        alike = [c for c in schema if c == tree.name] or [c for c in schema if c.lower() == tree.name.lower()]
        if len(alike) != 1:
            raise self._refused(tree, f"unknown column {tree.name!r}; available: {listing(schema)}")
        return alike[0]

    def _columns(self, tree: exp.Expr, given: Progress, schema: Schema, what: str) -> tuple[str, ...]:
        trees = tree.expressions if isinstance(tree, exp.Tuple) else [tree]
        return tuple(self._column(t, given, schema, what) for t in trees)

    def _length(self, tree: exp.Expr, given: Progress, schema: Schema, what: str) -> str:
        if not isinstance(tree, exp.Literal):
            raise self._refused(tree, f"{what} of {self.name}() must be a length, such as '10 seconds'")
        measured = MICROS if self.name == "delay" else schema[given.attribute]
        try:
            length(tree.name, measured, what, zero=True)
        except QueryError as error:
            raise self._refused(tree, str(error)) from None
        return tree.name

    def _count(self, tree: exp.Expr, _: Progress, __: Schema, what: str) -> int:
        if not (isinstance(tree, exp.Literal) and not tree.is_string and tree.name.lstrip("-").isdigit()):
            raise self._refused(tree, f"{what} of {self.name}() must be an integer")
        return int(tree.name)

    def _share(self, tree: exp.Expr, _: Progress, __: Schema, what: str) -> float:
        if not (isinstance(tree, exp.Literal) and not tree.is_string):
            raise self._refused(tree, f"{what} of {self.name}() must be a number")
        return float(tree.name)


READERS: dict[str, Callable[[_Call, exp.Expr, Progress, Schema, str], Any]] = {
    "str": _Call._column,
    "str | Sequence[str]": _Call._columns,
    "Length": _Call._length,
    "int": _Call._count,
    "float": _Call._share,
}
