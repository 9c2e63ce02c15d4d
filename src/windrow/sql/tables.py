"""The tables of a FROM: streams by name, queries in parentheses, unions, each with its promise rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from windrow.api.promise import Promise
from windrow.api.stream import Stream
from windrow.errors import listing
from windrow.logical.checked import united
from windrow.logical.expressions import fail
from windrow.logical.nodes import Node, Scan
from windrow.spec.tables import Table
from windrow.sql.punctuated import declared
from windrow.sql.scope import renamed
from windrow.sql.terms import Terms
from windrow.sql.trees import CLAUSE, PUNCTUATED, UNIONED, PunctuatedBy, Seq, WindowClause

RESULTS = "PUNCTUATED BY is for sources; the results of"
TWICE = "{!r} is in the query twice, with different promise rules: use one"


@dataclass
class Tables(Terms):
    """Streams by name, and the promise rules that a query gives them."""

    tables: Mapping[str, Stream] = field(default_factory=dict)
    rules: Mapping[str, Promise] = field(default_factory=dict)
    scanned: dict[str, Scan] = field(default_factory=dict)
    statics: Mapping[str, Table] = field(default_factory=dict)

    @abstractmethod
    def query(self, tree: exp.Expr) -> Node:
        """The rows of a query in parentheses."""

    def rows(self, tree: exp.Expr) -> Node | Table:
        """The rows of a table, a union or a query; or a static table."""
        named = isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier) and not tree.args.get(UNIONED)
        name = self._known(tree) if named and isinstance(tree, exp.Table) else ""
        if name not in self.statics:
            return self.united(tree)
        alias = tree.args.get("alias")
        if (rule := tree.args.get(PUNCTUATED)) is not None:
            raise fail(rule, f"{name} is a static table: it makes no promises", self.text)
        if alias is not None and alias.args.get("columns"):
            raise fail(alias, "an alias of a static table cannot name columns", self.text)
        return self.statics[name]

    def united(self, tree: exp.Expr) -> Node:
        """The rows of a table, or of all members of ``a UNION b``."""
        members = [self.table(t) for t in _members(tree)]
        with self.at(tree):
            return united(members)

    def table(self, tree: exp.Expr, rule: PunctuatedBy | None = None) -> Node:
        """``rule``: PUNCTUATED BY after parentheses applies to each table inside."""
        own = tree.args.get(PUNCTUATED)
        if own is not None and rule is not None:
            raise fail(rule, f"PUNCTUATED BY is given twice, here and inside: {own.this.name}()", self.text)
        return renamed(tree, self._rows(tree, own or rule), self.text)

    def _rows(self, tree: exp.Expr, rule: PunctuatedBy | None) -> Node:
        if joins := tree.args.get("joins"):
            raise fail(joins[0], "a join inside a union is not supported: write it as a query", self.text)
        if isinstance(tree, (exp.Subquery, exp.Paren)):
            if isinstance(tree.this, (exp.Table, exp.Paren)):  # tables in parentheses, as in FROM (a UNION b)
                inside = _members(tree.this)
                if clauses := [c for t in inside if (c := t.args.get(CLAUSE)) is not None]:
                    raise fail(clauses[0], "the window clause must follow the closing parenthesis", self.text)
                return united([self.table(t, rule) for t in inside])
            if rule is not None:
                raise fail(rule, f"{RESULTS} a query progress as its sources do: declare it there", self.text)
            return self.query(tree.this)
        if isinstance(tree, Seq):
            why = "SEQ stands alone after FROM: elsewhere write it as a query, (SELECT .. FROM SEQ(..)) AS z"
            raise fail(tree, why, self.text)
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise fail(tree, "expected a table or a query after FROM", self.text)
        name = self._known(tree)
        if name in self.statics:
            raise fail(tree, f"{name} is a static table: join a stream with it", self.text)
        node = self.tables[name].node
        return self._punctuated(tree, node, rule) if isinstance(node, Scan) or rule is not None else node

    def _known(self, tree: exp.Table) -> str:
        """The name of a table as it was given."""
        name, known = ".".join(p.name for p in tree.parts), [*self.tables, *self.statics]
        alike = [name] if name in known else [t for t in known if t.lower() == name.lower()]
        if len(alike) != 1:
            place = exp.Tuple(expressions=[p.copy() for p in tree.parts])
            raise fail(place, f"unknown table {name!r}; available: {listing(known)}", self.text)
        return alike[0]

    def _punctuated(self, tree: exp.Expr, node: Node, rule: PunctuatedBy | None) -> Node:
        if not isinstance(node, Scan):
            assert rule is not None
            raise fail(
                rule,
                f"{RESULTS} a query, as {tree.name!r} is, progress as its sources do: declare it there, "
                "wr.stream(.., punctuation=..)",
                self.text,
            )
        scan = node if rule is None else declared(node, rule, self.rules, self.text)
        if self.scanned.setdefault(scan.name, scan).source != scan.source:
            raise fail(rule or tree, TWICE.format(scan.name), self.text)
        return scan


def _members(tree: exp.Expr) -> list[exp.Expr]:
    return [tree, *(tree.args.get(UNIONED) or [])]


def clause_of(tree: exp.Expr) -> WindowClause | None:
    """The window clause after a table, or after the last one of a union."""
    found = [c for t in _members(tree) if (c := t.args.get(CLAUSE)) is not None]
    return found[-1] if found else None
