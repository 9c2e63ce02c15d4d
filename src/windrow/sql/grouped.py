"""A SELECT with a window: keys, aggregate calls, and expressions over both."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from windrow.aggregates import FUNCTIONS as AGGREGATES
from windrow.errors import QueryError, listing
from windrow.logical.checked import (
    aggregated,
    filtered,
    on_value,
    ordered,
    paired,
    ranked,
)
from windrow.logical.expressions import dtype_of, fail, visible
from windrow.logical.nodes import (
    AggregateCall,
    Node,
    Project,
    Shape,
    WindowAggregate,
    both_times,
    window_time,
)
from windrow.logical.reading import written
from windrow.spec.names import STATUS, VERSION, WINDOW_END, WINDOW_START, WINDOW_TIME
from windrow.spec.options import PLAIN
from windrow.sql.calls import Calls
from windrow.sql.clause import options, over, shape
from windrow.sql.clause import parts as clause_parts
from windrow.sql.hints import hints
from windrow.sql.terms import (
    Terms,
    column_like,
    descending,
)
from windrow.sql.trees import EMIT, WindowClause
from windrow.windows import RowSliding, Sliding

BOUNDS = (WINDOW_START, WINDOW_END, WINDOW_TIME)


@dataclass
class Grouped:
    """A SELECT with a window: keys, aggregate calls, and expressions over both."""

    terms: Terms
    select: exp.Select
    items: list[exp.Expr]
    clause: WindowClause | None  # None: the groups are by the progressing attribute itself
    input: Node
    aliases: dict[str, exp.Expr] = field(default_factory=dict)  # what HAVING may name
    instant: str | None = None  # the progressing attribute, where the groups are by it
    both: tuple[str, str] | None = None  # the keys that are the times of a join, where the groups are by both

    def __post_init__(self) -> None:
        self.calls = Calls(self.terms)
        self.keys: dict[str, exp.Expr] = {}

    def plan(self) -> Node:
        text = self.terms.text
        window: Shape = Sliding(1, 1)
        settings, parts = PLAIN, []
        if self.clause is not None:
            window = shape(self.clause, self.input, text)
            settings = options(self.clause, self.input, text, self.select.args.get(EMIT))
            parts = clause_parts(self.clause, self.input, text)
            self.input = over(self.clause, self.input)
        elif (early := self.select.args.get(EMIT)) is not None:
            raise fail(early, "EMIT EARLY needs a window clause", text)
        self.keys = {p.name: self.terms.resolved(p, self.input) for p in parts}
        self.keys |= self._keys()
        outputs = [self._output(item) for item in self.items]
        having = self.select.args.get("having")
        self.aliases = {i.alias: i.this for i in self.items if isinstance(i, exp.Alias)}
        condition = None if having is None else self._over_results(having.this)
        order = self._order()
        wanted = hints(self.select, text)
        wanted.check(None if self.both else window, text)
        if self._by_all:
            self.calls.found["@rows"] = AggregateCall("@rows", "count")
        keys, calls = tuple(self.keys.items()), tuple(self.calls.found.values())
        node: Node
        if self.both is not None:
            node = paired(self.input, self.both, keys, calls, text)
        else:
            named = tuple(p.name for p in parts)
            node = aggregated(self.input, window, keys, calls, wanted.using, text, settings, named, wanted.memory)
        if condition is not None:
            node = filtered(node, self.terms.resolved(condition, node), text)
        apart = self.select.args.get("distinct") is not None and not self._by_all
        if order is not None and not apart:
            node = self._in_order(node, tuple((self.terms.resolved(e, node), down) for e, down in order[0]), order[1])
        listed = any(isinstance(e, exp.Column) and e.name in BOUNDS for _, e in outputs)
        columns = [(n, self.terms.resolved(e, node)) for n, e in outputs]
        columns = self._arranged(columns, listed, settings.versioned)
        for _name, tree in columns:
            dtype_of(tree, node.schema, text)
        same = columns == [(c, exp.column(c)) for c in node.schema]
        found = node if same else Project(node, tuple(columns))
        if not apart:
            return found
        found = self.terms.distinct(self.select, found)
        if order is None:
            return found
        terms = self.select.args["order"].expressions  # over the selected columns: ORDER BY follows DISTINCT
        return self._in_order(found, tuple(self.terms.ordered(o, found, columns) for o in terms), order[1])

    @property
    def _by_all(self) -> bool:
        """DISTINCT without aggregates: every different row is a group."""
        asked, group = self.select.args.get("distinct"), self.select.args.get("group")
        return asked is not None and group is None and not any(self.terms.aggregates(i) for i in self.items)

    def _in_order(self, node: Node, order: tuple[tuple[exp.Expr, bool], ...], limit: int | None) -> Node:
        if limit is not None:
            return ranked(node, order, limit)
        first, down = order[0]
        shape = node.window if isinstance(node, WindowAggregate) else None
        if isinstance(first, exp.Column) and first.name == WINDOW_START and isinstance(shape, (Sliding, RowSliding)):
            order = (
                (column_like(WINDOW_END, first), down),
                *order[1:],
            )  # equal lengths, equal order
        return ordered(node, order, self.terms.text)

    def _order(self) -> tuple[list[tuple[exp.Expr, bool]], int | None] | None:
        """ORDER BY with LIMIT orders the rows of each window; without LIMIT, all results."""
        order, limit = self.select.args.get("order"), self.select.args.get("limit")
        if order is None and limit is None:
            return None
        if order is None:
            assert limit is not None
            why = "otherwise which rows are kept would depend on their arrival"
            raise fail(limit, f"LIMIT inside a window needs an ORDER BY: {why}", self.terms.text)
        if limit is None:
            return [self._ordered(o) for o in order.expressions], None
        count = limit.args.get("expression")
        if not (isinstance(count, exp.Literal) and count.is_int):
            raise fail(limit, "LIMIT must be a number", self.terms.text)
        if not 0 < int(count.name) < 2**63:
            raise fail(count, f"LIMIT must be positive and less than 2^63, not {count.name}", self.terms.text)
        return [self._ordered(o) for o in order.expressions], int(count.name)

    def _ordered(self, term: exp.Expr) -> tuple[exp.Expr, bool]:
        tree = term.this if isinstance(term, exp.Ordered) else term
        if (at := self.terms.position(tree, len(self.items), "ORDER BY")) is not None:
            tree = self.items[at].unalias()
        return self._over_results(tree), descending(term, self.terms.text)

    def _keys(self) -> dict[str, exp.Expr]:
        """GROUP BY: columns, expressions, or names and positions of the select list."""
        text = self.terms.text
        aliases = {i.alias: i.this for i in self.items if isinstance(i, exp.Alias)}
        group = self.select.args.get("group")
        by = self._selected() if self._by_all else group.expressions if group is not None else ()
        found: list[tuple[exp.Expr, str, exp.Expr]] = []
        for given in by:
            tree = given.unnest()
            name = tree.name if isinstance(tree, exp.Column) else ""
            if name and name not in self.input.schema and name in aliases:
                tree = aliases[name]
            elif not self._by_all and (at := self.terms.position(tree, len(self.items), "GROUP BY")) is not None:
                name, tree = self.items[at].alias_or_name, self.items[at].unalias()
            if self.terms.aggregates(tree):
                what = "" if tree is given.unnest() else f" {written(given, text)}, which is {written(tree, text)}"
                raise fail(given, f"GROUP BY{what}: keys cannot contain aggregates", text)
            resolved = self.terms.resolved(tree, self.input)
            dtype_of(resolved, self.input.schema, self.terms.text)
            same = next((a for a, t in aliases.items() if t == resolved), None)
            found.append((tree, same or (resolved.name if isinstance(resolved, exp.Column) else name), resolved))
        apart = self.clause is None and not both_times(self.input, {str(i): r for i, (_, _, r) in enumerate(found)})
        keys: dict[str, exp.Expr] = {}
        for tree, name, resolved in found:
            if apart and (instant := self._instant(tree, resolved)) is not None:
                self.instant = instant
            else:
                keys[name or f"key{len(keys)}"] = resolved
        self.both = both_times(self.input, keys) if self.clause is None and not apart else None
        return keys

    def _instant(self, tree: exp.Expr, resolved: exp.Expr) -> str | None:
        """The progressing attribute, if the groups are by it; from here on the stream progresses on its value."""
        if isinstance(resolved, exp.Column) and resolved.name in self.input.times:
            self.input = on_value(self.input, resolved.name)
            return resolved.name
        return WINDOW_TIME if tree.name.lower() == WINDOW_TIME and resolved == window_time(self.input) else None

    def _selected(self) -> list[exp.Expr]:
        """The select list without the bounds of windows, which are keys anyway."""
        trees = [i.unalias() for i in self.items]
        return [t for t in trees if not (isinstance(t, exp.Column) and t.name.lower() in BOUNDS)]

    def _output(self, item: exp.Expr) -> tuple[str, exp.Expr]:
        if isinstance(item, exp.Star):
            raise fail(
                item,
                "SELECT * is not supported over groups: name the keys and aggregates",
                self.terms.text,
            )
        tree = item.unalias()
        wanted = item.alias or (item.name if isinstance(item, exp.Column) else "")
        if self.calls.is_call(tree):
            column = self.calls.column(tree, wanted, self.input, self.keys)
            return wanted or column.name, column
        over = self._over_results(tree)
        return wanted or (over.name if isinstance(over, exp.Column) else f"column{self.items.index(item)}"), over

    def _over_results(self, tree: exp.Expr) -> exp.Expr:
        """A copy in which aggregates and keys are columns of the aggregation's result."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if self.calls.is_call(node):
                return self.calls.column(node, "", self.input, self.keys)
            if isinstance(node, exp.Column) and self.instant is not None and node.name.lower() == self.instant.lower():
                return column_like(WINDOW_START, node)
            if isinstance(node, exp.Column) and node.name in self.aliases and node.name not in self.keys:
                return self._over_results(self.aliases[node.name])
            if isinstance(node, exp.Anonymous):
                raise fail(
                    node,
                    f"unknown function {node.name!r}; aggregates: {listing({*AGGREGATES, *self.terms.users})}; "
                    "define your own with wr.aggregate and pass it to wr.sql",
                    self.terms.text,
                )
            for name, key in self.keys.items():
                columns = isinstance(node, exp.Column) and isinstance(key, exp.Column)
                if node == key or (columns and node.name.lower() == key.name.lower()):
                    return column_like(name, node)
            return node

        tree = tree.copy().transform(replaced)
        allowed = {*self.keys, *(BOUNDS if self.both is None else ()), *self.calls.names}
        if self.clause is not None and (self.clause.args.get("late") or self.select.args.get(EMIT)):
            allowed |= {VERSION, STATUS}
        for column in tree.find_all(exp.Column):
            if column.name not in allowed:
                self._known(column, allowed)
                raise fail(
                    column,
                    f"column {column.name!r} is neither grouped nor aggregated: add it to GROUP BY; available: "
                    f"{listing(allowed)}",
                    self.terms.text,
                )
        return tree

    def _known(self, column: exp.Column, results: set[str]) -> None:
        """Refuse a column that is neither in the input nor among the aliases and results."""
        there = {*visible(self.input.schema), *results, *self.aliases} - {"@rows"}
        if column.name.lower() not in {c.lower() for c in there}:
            raise fail(column, f"unknown column {column.name!r}; available: {listing(there)}", self.terms.text)

    def _arranged(
        self, columns: list[tuple[str, exp.Expr]], listed: bool, versioned: bool
    ) -> list[tuple[str, exp.Expr]]:
        """As listed if the window's bounds are ``listed``; otherwise keys, window_start, window_end, the rest.

        Results with versions always have the columns of the version.
        """
        if versioned:
            columns = [*columns, *((c, exp.column(c)) for c in (VERSION, STATUS) if c not in dict(columns))]
        names = [n for n, _ in columns]
        if twice := [n for n in names if names.count(n) > 1]:
            again = [i for i in self.items if twice[0] in (i.alias_or_name, i.unalias().name)]
            message = f"output columns need different names; given twice: {listing(set(twice))}"
            raise fail(again[-1], message, self.terms.text) if again else QueryError(message)
        if self.clause is None or listed:
            return columns
        keys = [(n, e) for n, e in columns if isinstance(e, exp.Column) and e.name in self.keys]
        rest = [c for c in columns if c not in keys]
        return [*keys, *((b, exp.column(b)) for b in (WINDOW_START, WINDOW_END)), *rest]
