"""SQL to logical plans. What a query may say is what the Python API can build; both end in the same plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sqlglot
from sqlglot import exp

from windrow.aggregates import FUNCTIONS as AGGREGATES
from windrow.aggregates import UserAggregate
from windrow.aggregates.functions import Parameter
from windrow.errors import PlanError, QueryError, listing
from windrow.language.builder import UNNAMED, Source, Stream
from windrow.language.clause import options, shape
from windrow.language.clause import parts as clause_parts
from windrow.language.dialect import CLAUSE, EMIT, PUNCTUATED, UNIONED, PunctuatedBy, WindowClause, Windrow
from windrow.language.functions import UserFunction, number
from windrow.language.hints import hints
from windrow.language.promise import Promise
from windrow.language.punctuated import declared, located, users
from windrow.logical.expressions import dtype_of, fail, resolve, visible
from windrow.logical.nodes import (
    OF_ROWS,
    WINDOW_END,
    WINDOW_START,
    AggregateCall,
    Node,
    Project,
    Scan,
    Shape,
    Together,
    WindowAggregate,
    aggregated,
    distinct,
    filtered,
    ordered,
    ranked,
    united,
    where,
)
from windrow.operators.options import PLAIN
from windrow.operators.released import STATUS, VERSION
from windrow.windows import RowSliding, Sliding

FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.ApproxQuantile: "approx_quantile",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.Mode: "mode",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
}
KNOWN_ARGUMENTS = {"this", "expressions", "quantile", "big_int", "nulls_excluded"}
DISTINCT = {"count": "count_distinct", "sum": "sum_distinct", "avg": "avg_distinct", "min": "min", "max": "max"}
DISTINCT |= {"collect_list": "collect_set", "collect_set": "collect_set"}
RESULTS = "PUNCTUATED BY says how a source makes promises; the results of"
TWICE = "{!r} is in the query twice, and can make promises in one way only"
REFUSED = {  # parts of a SELECT that mean something, but that nothing here runs yet
    "joins": "joins",
    "offset": "OFFSET",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "windows": "named windows",
    "qualify": "QUALIFY",
    "laterals": "LATERAL VIEW",
    "with_": "WITH",
}


def descending(term: exp.Expr, text: str) -> bool:
    """Whether a term of ORDER BY is; NULLs are where SQL has them by default."""
    down = bool(term.args.get("desc"))
    if bool(term.args.get("nulls_first")) == down:
        raise fail(term, "NULLs come first, and last with DESC: another place for them has no operator", text)
    return down


def sql(query: str, *functions: UserFunction | Promise, **tables: Stream) -> Stream:
    """A query in SQL over streams given by name.

    ``functions`` are user-defined aggregates that it may call, and functions that make promises
    (``wr.promise.function``), for PUNCTUATED BY.

    >>> from windrow.language.builder import stream
    >>> packets = stream([{"ts": 1, "ip": "a"}, {"ts": 2, "ip": "a"}], progress="ts")
    >>> query = "SELECT ip, count(*) AS n FROM packets [RANGE 4, SLIDE 4, WA ts] GROUP BY ip"
    >>> sql(query, packets=packets).collect().rows()
    [('a', 0, 4, 2)]
    """
    if odd := [f for f in functions if not isinstance(f, (UserFunction, Promise))]:
        raise QueryError(f"{odd[0]!r} is neither wr.aggregate(..) nor wr.promise.function(..)")
    named = {name: _named(table, name) for name, table in tables.items()}
    aggregates = {f.name: f.definition for f in functions if isinstance(f, UserFunction)}
    ways = users([f for f in functions if isinstance(f, Promise)])
    node = _Planner(query, named, aggregates, ways).query(_parse(query))
    sources: dict[str, Source] = {}
    for table in named.values():
        for name, source in table.sources.items():
            if sources.setdefault(name, source) is not source:
                raise QueryError(f"two different sources are called {name!r}: give each stream its own name=...")
    used: dict[str, Scan] = {}
    for scan in _scans(node):
        if used.setdefault(scan.name, scan).source != scan.source:
            raise QueryError(TWICE.format(scan.name))
    return Stream(node, {name: source for name, source in sources.items() if name in used})


def _named(table: Stream, name: str) -> Stream:
    """A stream without a name of its own takes the table's."""
    if isinstance(table.node, Scan) and table.node.name == UNNAMED:
        return Stream(replace(table.node, name=name), {name: table.sources[UNNAMED]})
    return table


def _scans(node: Node) -> list[Scan]:
    if isinstance(node, Scan):
        return [node]
    if isinstance(node, Together):
        raise QueryError("queries that run together are results, not a stream to query: query their source")
    inputs = node.inputs if hasattr(node, "inputs") else (node.input,)
    return [scan for each in inputs for scan in _scans(each)]


def _parse(query: str) -> exp.Expr:
    try:
        found = sqlglot.parse(query, dialect=Windrow)
    except sqlglot.ParseError as error:
        raise QueryError(located(query, error)) from None
    except sqlglot.TokenError as error:
        raise QueryError(f"cannot read the query: {error}") from None
    statements = [s for s in found if s is not None]
    if len(statements) != 1:
        raise QueryError(f"expected one query, found {len(statements)}")
    return statements[0]


@dataclass
class _Planner:
    text: str
    tables: Mapping[str, Stream]
    users: Mapping[str, UserAggregate] = field(default_factory=dict)
    ways: Mapping[str, Promise] = field(default_factory=dict)
    scanned: dict[str, Scan] = field(default_factory=dict)

    def query(self, tree: exp.Expr) -> Node:
        match tree:
            case exp.Subquery():
                return self._of_all(tree, self.query(tree.this))
            case exp.Union():
                both = united([self.query(tree.this), self.query(tree.expression)])
                return self._of_all(tree, distinct(both) if tree.args.get("distinct") else both)
            case exp.Select():
                return self._select(tree)
        raise fail(tree, f"expected a SELECT, found {type(tree).__name__.upper()}", self.text)

    def _of_all(self, tree: exp.Expr, node: Node) -> Node:
        """What follows a union, or a query in parentheses, is about all of its rows."""
        for part, name in {**REFUSED, "limit": "LIMIT"}.items():
            if tree.args.get(part):
                raise PlanError(f"{name} over a union or a query in parentheses has no operator")
        order = tree.args.get("order")
        if order is None:
            return node
        columns = [(c, exp.column(c)) for c in visible(node.schema)]
        return ordered(node, tuple(self._ordered(o, node, columns) for o in order.expressions), self.text)

    # -- FROM ----------------------------------------------------------------------------------------------------
    def _from(self, select: exp.Select) -> tuple[Node, WindowClause | None]:
        found = select.args.get("from_")
        if found is None:
            raise QueryError(f"the query has no FROM; there are the tables: {listing(self.tables)}")
        tree = found.this
        trees = [tree, *(tree.args.get(UNIONED) or [])]
        clauses = [c for t in trees if (c := t.args.get(CLAUSE)) is not None]
        return united([self._table(t) for t in trees]), clauses[-1] if clauses else None

    def _table(self, tree: exp.Expr, way: PunctuatedBy | None = None) -> Node:
        """``way``: what is said after the parentheses around a table is about each table inside."""
        own = tree.args.get(PUNCTUATED)
        if own is not None and way is not None:
            raise fail(way, f"PUNCTUATED BY is given twice, here and for what is inside: {own.this.name}()", self.text)
        way = own or way
        if isinstance(tree, (exp.Subquery, exp.Paren)):
            if isinstance(tree.this, (exp.Table, exp.Paren)):  # tables in parentheses, as in FROM (a UNION b)
                return united([self._table(t, way) for t in (tree.this, *(tree.this.args.get(UNIONED) or []))])
            if way is not None:
                raise fail(way, f"{RESULTS} a query progress as its sources do: say it there", self.text)
            return self.query(tree.this)
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise fail(tree, "expected a table or a query after FROM", self.text)
        name = tree.name
        if name not in self.tables:
            alike = [t for t in self.tables if t.lower() == name.lower()]
            if len(alike) != 1:
                raise fail(tree.this, f"unknown table {name!r}; there are: {listing(self.tables)}", self.text)
            name = alike[0]
        node = self.tables[name].node
        return self._punctuated(tree, node, way) if isinstance(node, Scan) or way is not None else node

    def _punctuated(self, tree: exp.Expr, node: Node, way: PunctuatedBy | None) -> Node:
        if not isinstance(node, Scan):
            assert way is not None
            raise fail(
                way,
                f"{RESULTS} a query, as {tree.name!r} is, progress as its sources do: say it there, "
                "wr.stream(.., punctuation=..)",
                self.text,
            )
        scan = node if way is None else declared(node, way, self.ways, self.text)
        if self.scanned.setdefault(scan.name, scan).source != scan.source:
            raise fail(
                way or tree, f"{scan.name!r} is in the query twice: it makes promises in one way only", self.text
            )
        return scan

    # -- SELECT --------------------------------------------------------------------------------------------------
    def _select(self, select: exp.Select) -> Node:
        for part, name in REFUSED.items():
            if select.args.get(part):
                raise PlanError(f"{name} in a stream query has no operator yet")
        node, table_clause = self._from(select)
        items = [i for i in select.expressions if not isinstance(i, WindowClause)]
        own = [i for i in select.expressions if isinstance(i, WindowClause)]
        if own and table_clause is not None:
            raise fail(own[0], "the window is given twice: after the table and after the select list", self.text)
        clause = own[0] if own else table_clause
        if (where := select.args.get("where")) is not None:
            self._no_aggregates(where.this, "WHERE")
            node = filtered(node, self._resolved(where.this, node), self.text)
        if clause is None and not self._groups_by_progress(select, node):
            return self._plain(select, items, node)
        return _Grouped(self, select, items, clause, node).plan()

    def _groups_by_progress(self, select: exp.Select, node: Node) -> bool:
        """GROUP BY the progressing attribute closes by itself: each value is a window of length one."""
        group = select.args.get("group")
        aliases = {i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)}
        for tree in group.expressions if group is not None and node.progress is not None else ():
            if isinstance(tree, exp.Literal) and tree.is_int and 0 < int(tree.name) <= len(select.expressions):
                tree = select.expressions[int(tree.name) - 1].unalias()
            tree = aliases.get(tree.name, tree) if isinstance(tree, exp.Column) else tree
            if isinstance(tree, exp.Column) and tree.name.lower() == str(node.progress).lower():
                return True
        return False

    def _plain(self, select: exp.Select, items: list[exp.Expr], node: Node) -> Node:
        grouping = [t for p in ("group", "having") if (t := select.args.get(p)) is not None]
        for part, name in (("limit", "LIMIT"), (EMIT, "EMIT EARLY"), ("hint", "a hint")):
            if select.args.get(part):
                raise PlanError(f"{name} needs a window: a stream without one has no end to order or to wait for")
        for tree in [*items, *grouping]:
            if isinstance(tree, (exp.Group, exp.Having)) or self.aggregates(tree):
                raise fail(
                    tree,
                    "an aggregate over a stream needs a window, or it would never end: add [RANGE .., SLIDE .., "
                    f"WA {node.progress}] after the table",
                    self.text,
                )
        columns: list[tuple[str, exp.Expr]] = []
        for item in items:
            if isinstance(item, exp.Star):
                columns += [(c, exp.column(c)) for c in visible(node.schema)]
            else:
                tree = self._resolved(item.unalias(), node)
                dtype_of(tree, node.schema, self.text)
                columns.append((item.alias_or_name or f"column{len(columns)}", tree))
        unchanged = [(c, exp.column(c)) for c in visible(node.schema)]
        found = node if columns == unchanged else Project(node, tuple(columns))
        found = self._distinct(select, found)
        order = select.args.get("order")
        if order is None:
            return found
        return ordered(found, tuple(self._ordered(o, found, columns) for o in order.expressions), self.text)

    def _distinct(self, select: exp.Select, node: Node) -> Node:
        asked = select.args.get("distinct")
        if asked is not None and asked.args.get("on"):
            raise fail(asked, "DISTINCT ON has no operator: group, or order with a limit inside a window", self.text)
        return node if asked is None else distinct(node)

    def _ordered(self, term: exp.Expr, node: Node, columns: Sequence[tuple[str, exp.Expr]]) -> tuple[exp.Expr, bool]:
        """A term of ORDER BY over selected columns."""
        tree = term.this if isinstance(term, exp.Ordered) else term
        if isinstance(tree, exp.Literal) and tree.is_int and 0 < int(tree.name) <= len(columns):
            tree = exp.column(columns[int(tree.name) - 1][0])
        return self._resolved(tree, node), descending(term, self.text)

    # -- expressions ---------------------------------------------------------------------------------------------
    def _resolved(self, tree: exp.Expr, node: Node) -> exp.Expr:
        return unqualified(resolve(tree, node.schema, self.text))

    def aggregates(self, tree: exp.Expr) -> list[exp.Expr]:
        """The aggregate calls in a tree."""
        return [node for node in tree.walk() if self.is_aggregate(node)]

    def is_aggregate(self, tree: exp.Expr) -> bool:
        """Whether a node is a call of an aggregate, known here or not."""
        return isinstance(tree, exp.AggFunc) or self.function_name(tree) is not None

    def function_name(self, tree: exp.Expr) -> str | None:
        """Our name of an aggregate call; sqlglot has no class for some, such as mean(x)."""
        if isinstance(tree, exp.Anonymous):
            name = {"std": "stddev"}.get(tree.name.lower(), tree.name.lower())
            if name in self.users:
                return name
            return AGGREGATES[name].function if name in AGGREGATES else None
        return FUNCTIONS.get(type(tree))

    def _no_aggregates(self, tree: exp.Expr, where: str) -> None:
        for found in self.aggregates(tree):
            raise fail(found, f"{where} cannot contain aggregates: use HAVING", self.text)


@dataclass
class _Grouped:
    """A SELECT with a window: keys, aggregate calls, and expressions over both."""

    planner: _Planner
    select: exp.Select
    items: list[exp.Expr]
    clause: WindowClause | None  # none: the groups are by the progressing attribute itself
    input: Node
    calls: dict[str, AggregateCall] = field(default_factory=dict)
    aliases: dict[str, exp.Expr] = field(default_factory=dict)  # what HAVING may name
    instant: str | None = None  # the progressing attribute, where the groups are by it

    def plan(self) -> Node:
        text = self.planner.text
        window: Shape = Sliding(1, 1)
        settings, parts = PLAIN, []
        if self.clause is not None:
            window = shape(self.clause, self.input, text)
            settings = options(self.clause, self.input, text, self.select.args.get(EMIT))
            parts = clause_parts(self.clause, self.input, text)
        elif self.select.args.get(EMIT):
            raise PlanError("EMIT EARLY needs a window clause")
        self.keys = {p.name: self.planner._resolved(p, self.input) for p in parts}
        self.keys |= self._keys()
        outputs = [self._output(item) for item in self.items]
        having = self.select.args.get("having")
        self.aliases = {i.alias: i.this for i in self.items if isinstance(i, exp.Alias)}
        condition = None if having is None else self._over_results(having.this)
        order = self._order()
        wanted = hints(self.select)
        if self._by_all:
            self.calls["@rows"] = AggregateCall("@rows", "count")
        node: Node = aggregated(
            self.input,
            window,
            tuple(self.keys.items()),
            tuple(self.calls.values()),
            wanted.using,
            text,
            settings,
            tuple(p.name for p in parts),
            wanted.memory,
        )
        if condition is not None:
            node = filtered(node, resolve(condition, node.schema, text), text)
        apart = self.select.args.get("distinct") is not None and not self._by_all
        if order is not None and not apart:
            node = self._in_order(node, tuple((resolve(e, node.schema, text), down) for e, down in order[0]), order[1])
        columns = self._arranged([(n, resolve(e, node.schema, text)) for n, e in outputs], settings.versioned)
        for _name, tree in columns:
            dtype_of(tree, node.schema, text)
        same = columns == [(c, exp.column(c)) for c in node.schema]
        found = node if same else Project(node, tuple(columns))
        if not apart:
            return found
        found = self.planner._distinct(self.select, found)
        if order is None:
            return found
        terms = self.select.args["order"].expressions  # over what is selected: an order comes after DISTINCT
        return self._in_order(found, tuple(self.planner._ordered(o, found, columns) for o in terms), order[1])

    @property
    def _by_all(self) -> bool:
        """DISTINCT without aggregates: the groups are the rows."""
        asked, group = self.select.args.get("distinct"), self.select.args.get("group")
        return asked is not None and group is None and not any(self.planner.aggregates(i) for i in self.items)

    def _in_order(self, node: Node, order: tuple[tuple[exp.Expr, bool], ...], limit: int | None) -> Node:
        if limit is not None:
            return ranked(node, order, limit)
        first, down = order[0]
        shape = node.window if isinstance(node, WindowAggregate) else None
        if isinstance(first, exp.Column) and first.name == WINDOW_START and isinstance(shape, (Sliding, RowSliding)):
            order = ((_column(WINDOW_END, first), down), *order[1:])  # windows of one length end as they begin
        return ordered(node, order, self.planner.text)

    def _order(self) -> tuple[list[tuple[exp.Expr, bool]], int | None] | None:
        """ORDER BY with LIMIT is about the rows of a window; without, about all results."""
        order, limit = self.select.args.get("order"), self.select.args.get("limit")
        if order is None and limit is None:
            return None
        if order is None:
            raise PlanError(
                "LIMIT inside a window needs an ORDER BY: else which rows stay would depend on their arrival"
            )
        if limit is None:
            return [self._ordered(o) for o in order.expressions], None
        count = limit.expression
        if not (isinstance(count, exp.Literal) and count.is_int):
            raise fail(limit, "LIMIT takes a number", self.planner.text)
        return [self._ordered(o) for o in order.expressions], int(count.name)

    def _ordered(self, term: exp.Expr) -> tuple[exp.Expr, bool]:
        tree = term.this if isinstance(term, exp.Ordered) else term
        if isinstance(tree, exp.Literal) and tree.is_int and 0 < int(tree.name) <= len(self.items):
            tree = self.items[int(tree.name) - 1].unalias()
        return self._over_results(tree), descending(term, self.planner.text)

    def _keys(self) -> dict[str, exp.Expr]:
        """GROUP BY: columns, expressions, or names and positions of the select list."""
        aliases = {i.alias: i.this for i in self.items if isinstance(i, exp.Alias)}
        group = self.select.args.get("group")
        keys: dict[str, exp.Expr] = {}
        by = self._selected() if self._by_all else group.expressions if group is not None else ()
        for tree in by:
            self.planner._no_aggregates(tree, "GROUP BY")
            name = tree.name if isinstance(tree, exp.Column) else ""
            if name and name not in self.input.schema and name in aliases:
                tree = aliases[name]
            elif isinstance(tree, exp.Literal) and tree.is_int and 0 < int(tree.name) <= len(self.items):
                item = self.items[int(tree.name) - 1]
                name, tree = item.alias_or_name, item.unalias()
            resolved = self.planner._resolved(tree, self.input)
            dtype_of(resolved, self.input.schema, self.planner.text)
            same = next((a for a, t in aliases.items() if unqualified(t) == resolved), None)
            if self.clause is None and resolved == exp.column(self.input.progress or ""):
                self.instant = self.input.progress
                continue
            keys[same or (resolved.name if isinstance(resolved, exp.Column) else name) or f"key{len(keys)}"] = resolved
        return keys

    def _selected(self) -> list[exp.Expr]:
        """The select list without the bounds of windows, which are keys anyway."""
        trees = [i.unalias() for i in self.items]
        bounds = WINDOW_START, WINDOW_END
        return [t for t in trees if not (isinstance(t, exp.Column) and t.name.lower() in bounds)]

    def _output(self, item: exp.Expr) -> tuple[str, exp.Expr]:
        if isinstance(item, exp.Star):
            raise fail(item, "SELECT * has no meaning over groups: name the keys and aggregates", self.planner.text)
        tree = item.unalias()
        wanted = item.alias or (item.name if isinstance(item, exp.Column) else "")
        if self._is_call(tree):
            column = self._call(tree, wanted)
            return wanted or column.name, column
        over = self._over_results(tree)
        return wanted or (over.name if isinstance(over, exp.Column) else f"column{self.items.index(item)}"), over

    def _is_call(self, tree: exp.Expr) -> bool:
        inner = tree.this if isinstance(tree, (exp.Filter, exp.IgnoreNulls)) else tree
        return self.planner.is_aggregate(inner)

    def _over_results(self, tree: exp.Expr) -> exp.Expr:
        """A copy in which aggregates and keys are columns of the aggregation's result."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if self._is_call(node):
                return self._call(node, "")
            if isinstance(node, exp.Column) and self.instant is not None and node.name.lower() == self.instant.lower():
                return _column(WINDOW_START, node)
            if isinstance(node, exp.Column) and node.name in self.aliases and node.name not in self.keys:
                return self._over_results(self.aliases[node.name])
            if isinstance(node, exp.Anonymous):
                raise fail(
                    node,
                    f"unknown function {node.name!r}; aggregates are: {listing({*AGGREGATES, *self.planner.users})}; "
                    "one of your own is made by wr.aggregate and given to wr.sql",
                    self.planner.text,
                )
            plain = unqualified(node)
            for name, key in self.keys.items():
                if plain == key or (isinstance(plain, exp.Column) and plain.name.lower() == key.name.lower() != ""):
                    return _column(name, node)
            return node

        tree = tree.copy().transform(replaced)
        allowed = {*self.keys, WINDOW_START, WINDOW_END, *(c.name for c in self.calls.values())}
        if self.clause is not None and (self.clause.args.get("late") or self.select.args.get(EMIT)):
            allowed |= {VERSION, STATUS}
        for column in tree.find_all(exp.Column):
            if column.name not in allowed:
                resolve(column, self.input.schema, self.planner.text)  # unknown altogether?
                raise fail(
                    column,
                    f"column {column.name!r} is neither grouped nor aggregated: add it to GROUP BY; there are: "
                    f"{listing(allowed)}",
                    self.planner.text,
                )
        return tree

    def _call(self, tree: exp.Expr, wanted: str) -> exp.Column:
        """The column of an aggregate, which is computed once however often it is written."""
        condition = tree.expression.this if isinstance(tree, exp.Filter) else None
        whole, tree = tree, tree.this if isinstance(tree, (exp.Filter, exp.IgnoreNulls)) else tree
        function = self.planner.function_name(tree)
        if function is None:
            known = {*FUNCTIONS.values(), *self.planner.users, "top_k", "heavy_hitters", "approx_heavy_hitters"}
            raise fail(
                tree, f"aggregate {tree.key!r} has no operator yet; there are: {listing(known)}", self.planner.text
            )
        argument, parameters = self._arguments(tree, function)
        if isinstance(argument, exp.Distinct):
            if function not in DISTINCT or len(argument.expressions) != 1:
                raise fail(tree, f"DISTINCT fits one argument of {listing(DISTINCT)}", self.planner.text)
            function, argument = DISTINCT[function], argument.expressions[0]
        if isinstance(argument, exp.Star) or (isinstance(argument, exp.Literal) and function == "count"):
            argument = None
        resolved = None if argument is None else self.planner._resolved(argument, self.input)
        if condition is not None:
            self.planner._no_aggregates(condition, "FILTER")
            resolved = where(resolved, self.planner._resolved(condition, self.input))
            parameters += (1,) if function in OF_ROWS else ()
        key = f"{function}({'*' if resolved is None else resolved.sql('spark')}, {parameters})"
        if key not in self.calls:
            inner = [] if argument is None else [c.name for c in argument.find_all(exp.Column)]
            name = wanted or "_".join([function, *dict.fromkeys(inner)])
            taken = {c.name for c in self.calls.values()} | set(self.keys)
            name = name if name not in taken else f"{name}_{len(self.calls)}"
            user = self.planner.users.get(function)
            self.calls[key] = AggregateCall(name, function, resolved, parameters, user)
        return _column(self.calls[key].name, whole)

    def _arguments(self, tree: exp.Expr, function: str) -> tuple[exp.Expr | None, tuple[Parameter, ...]]:
        """The argument of a call, and the numbers after it."""
        if isinstance(tree, exp.Anonymous):
            given = list(tree.expressions)
        else:
            extra = [tree.args.get("quantile")] if tree.args.get("quantile") is not None else []
            given = [tree.this, *extra]
            if odd := [n for n, v in tree.args.items() if v and n not in KNOWN_ARGUMENTS]:
                raise fail(tree, f"{function}() with {listing(odd)} is not supported", self.planner.text)
        parameters = []
        for parameter in given[1:]:
            if not (isinstance(parameter, exp.Literal) and not parameter.is_string):
                raise fail(tree, f"{function}() takes numbers after its argument", self.planner.text)
            parameters.append(number(parameter.name))
        return given[0] if given else None, tuple(parameters)

    def _arranged(self, columns: list[tuple[str, exp.Expr]], versioned: bool) -> list[tuple[str, exp.Expr]]:
        """As listed if the window's bounds are listed; otherwise keys, window_start, window_end, the rest.

        Results that come in versions always say which version they are.
        """
        if versioned:
            columns = [*columns, *((c, exp.column(c)) for c in (VERSION, STATUS) if c not in dict(columns))]
        names = [n for n, _ in columns]
        if twice := {n for n in names if names.count(n) > 1}:
            raise QueryError(f"output columns need different names; given twice: {listing(twice)}")
        if self.clause is None:
            return columns
        bounds = (WINDOW_START, WINDOW_END)
        if any(e.name in bounds for _, e in columns if isinstance(e, exp.Column)):
            return columns
        keys = [(n, e) for n, e in columns if isinstance(e, exp.Column) and e.name in self.keys]
        rest = [c for c in columns if c not in keys]
        return [*keys, *((b, exp.column(b)) for b in bounds), *rest]


def unqualified(tree: exp.Expr) -> exp.Expr:
    """A copy without table names: a query has one input, so they say nothing more."""
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    return tree


def _column(name: str, like: exp.Expr) -> exp.Column:
    """A column that stands where ``like`` stood, so that errors still underline the text."""
    column = exp.column(name)
    places = [n.meta for n in like.walk() if "start" in n.meta]
    if places:
        where = {"start": min(p["start"] for p in places), "end": max(p["end"] for p in places)}
        column.this.meta.update(where)
    return column
