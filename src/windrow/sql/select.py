"""SQL to logical plans: the same ones that the Python API builds."""

from __future__ import annotations

from dataclasses import replace

import sqlglot
from sqlglot import exp

from windrow.api.functions import Udf, UserFunction
from windrow.api.promise import Promise
from windrow.api.query import merged
from windrow.api.sources import UNNAMED
from windrow.api.stream import Stream
from windrow.api.tables import UNNAMED as UNNAMED_TABLE
from windrow.errors import QueryError, listing
from windrow.logical.arrival import check_stamps
from windrow.logical.checked import (
    attribute,
    distinct,
    filtered,
    ordered,
    united,
)
from windrow.logical.expressions import dtype_of, fail, visible
from windrow.logical.nodes import (
    Node,
    Project,
    Scan,
    Together,
    both_times,
)
from windrow.logical.reading import read
from windrow.spec.tables import Table
from windrow.sql.arrival import with_arrival
from windrow.sql.consumed import check
from windrow.sql.dialect import Windrow
from windrow.sql.grouped import Grouped
from windrow.sql.hints import NONE, join_hint
from windrow.sql.joins import JoinedTables
from windrow.sql.punctuated import users
from windrow.sql.relations import Pair, Relations, Static, has_join
from windrow.sql.scope import Scope
from windrow.sql.seq import SequenceRows
from windrow.sql.tables import TWICE, Tables, clause_of
from windrow.sql.trees import CLAUSE, EMIT, Seq, WindowClause


def sql(query: str, *functions: UserFunction | Promise | Udf, **tables: Stream | Table | Udf) -> Stream:
    """A query in SQL over streams, and static tables to join them with (``wr.table``), given by name.

    ``functions`` are user-defined aggregates that the query may call, your own promise rules
    (``wr.promise.function``), for PUNCTUATED BY, and ``wr.udf`` that return BOOLEAN, for conditions of joins: they are
    called as the Python function is, or, given by name as tables are, by that name.

    >>> from windrow.api.sources import stream
    >>> packets = stream([{"ts": 1, "ip": "a"}, {"ts": 2, "ip": "a"}], progress="ts")
    >>> query = "SELECT ip, count(*) AS n FROM packets [RANGE 4, SLIDE 4, WA ts] GROUP BY ip"
    >>> sql(query, packets=packets).collect().rows()
    [('a', 0, 4, 2)]
    """
    if not isinstance(query, str):
        raise QueryError(f"wr.sql takes a query as text, not {query!r}")
    if odd := [f for f in functions if not isinstance(f, (UserFunction, Promise, Udf))]:
        raise QueryError(f"{odd[0]!r} is neither wr.aggregate(..) nor wr.promise.function(..) nor wr.udf(..)")
    called = {f.function.name.rpartition(".")[2].lower(): f.function for f in functions if isinstance(f, Udf)}
    called |= {name.lower(): table.function for name, table in tables.items() if isinstance(table, Udf)}
    statics = {name: _called(table, name) for name, table in tables.items() if isinstance(table, Table)}
    named = {name: _named(table, name) for name, table in tables.items() if not isinstance(table, (Table, Udf))}
    aggregates = {f.name: f.definition for f in functions if isinstance(f, UserFunction)}
    rules = users([f for f in functions if isinstance(f, Promise)])
    tree = _parse(query)
    named = with_arrival(tree, named)
    node = _Planner(query, aggregates, named, rules, statics=statics, functions=called).query(tree)
    sources = merged(named.values())
    used: dict[str, Scan] = {}
    check_stamps(scans := _scans(node))
    for scan in scans:
        if used.setdefault(scan.name, scan).source != scan.source:
            raise QueryError(TWICE.format(scan.name))
    return Stream(node, {name: source for name, source in sources.items() if name in used})


def _named(table: Stream, name: str) -> Stream:
    """A stream without a name of its own takes the table's."""
    if not isinstance(table, Stream):
        raise QueryError(f"{name}= must be a stream, not a {type(table).__name__}: {name}=wr.stream(data, progress=..)")
    if isinstance(table.node, Scan) and table.node.name == UNNAMED:
        return Stream(replace(table.node, name=name), {name: table.sources[UNNAMED]})
    return table


def _called(table: Table, name: str) -> Table:
    """A static table without a name of its own takes the one that the query has for it."""
    return replace(table.only(table.schema), name=name) if table.name == UNNAMED_TABLE else table


def _scans(node: Node) -> list[Scan]:
    if any(isinstance(each, Together) for each in node.walk()):
        raise QueryError("queries that run together are results, not a stream to query: query their source")
    return [each for each in node.walk() if isinstance(each, Scan)]


def _parse(query: str) -> exp.Expr:
    statements = [s for s in read(lambda: sqlglot.parse(query, dialect=Windrow), query) if s is not None]
    if len(statements) != 1:
        raise QueryError(f"expected one query, found {len(statements)}")
    tree: exp.Expr = statements[0]
    check(tree, query)
    return tree


class _Planner(Tables):
    def query(self, tree: exp.Expr) -> Node:
        match tree:
            case exp.Subquery():
                return self._of_all(tree, self.query(tree.this))
            case exp.Union():
                members = [self.query(tree.this), self.query(tree.expression)]
                with self.at(tree):
                    both = united(members)
                    return self._of_all(tree, distinct(both) if tree.args.get("distinct") else both)
            case exp.Select():
                return self._select(tree)
        if isinstance(tree, exp.SetOperation):
            raise fail(tree, f"{tree.key.upper()} of queries is not supported: UNION and UNION ALL are", self.text)
        raise fail(tree, "expected a query: SELECT .. FROM ..", self.text)

    def _of_all(self, tree: exp.Expr, node: Node) -> Node:
        """ORDER BY and LIMIT after a union, or a query in parentheses, apply to all of its rows."""
        if joins := tree.args.get("joins"):
            raise fail(joins[0], "a join stands in the FROM of a query: SELECT .. FROM (..) JOIN ..", self.text)
        if (limit := tree.args.get("limit")) is not None:
            raise fail(limit, "LIMIT over a union or a query in parentheses is not supported", self.text)
        order = tree.args.get("order")
        if order is None:
            return node
        Scope([None], [node.schema], self.text).resolve(tree)
        columns = [(c, exp.column(c)) for c in visible(node.schema)]
        return ordered(node, tuple(self.ordered(o, node, columns) for o in order.expressions), self.text)

    def _from(self, select: exp.Select) -> tuple[Node, WindowClause | None]:
        """The rows of FROM, and the window over them; the names in the SELECT are resolved."""
        found = select.args.get("from_")
        if found is None:
            raise fail(select, f"the query has no FROM; available tables: {listing(self.tables)}", self.text)
        joins, clause = select.args.get("joins") or [], None
        if isinstance(found.this, Seq):
            return self._sequence(select, found.this, joins)
        if has_join(found.this) and not joins:
            clause = clause_of(found.this)  # of an aggregation over a join in parentheses
            found.this.set(CLAUSE, None)
        relations = Relations(self.rows, self.text)
        whole = relations.of(found.this, joins)
        if isinstance(whole, Static):
            raise fail(whole.tree, f"{whole.table.name} is a static table: join a stream with it", self.text)
        if isinstance(whole, Pair):
            hinted = clause is None and whole.of_streams and not self._grouped(select)
            given = join_hint(select, self.text, len(relations.leaves) - 1) if hinted else NONE
            return JoinedTables(self, select, whole, relations.leaves, given, clause).plan(), clause
        scope, clause = Scope([whole.name], [whole.node.schema], self.text), clause_of(found.this)
        scope.resolve(select)
        if clause is not None:
            scope.clause(clause)
        return whole.node, clause

    def _sequence(self, select: exp.Select, tree: Seq, joins: list[exp.Join]) -> tuple[Node, WindowClause | None]:
        """The sequences of a FROM, and the window over them."""
        if joins:
            why = "a sequence is joined as a query in FROM: SELECT .. FROM (SELECT .. FROM SEQ(..)) AS z JOIN .."
            raise fail(joins[0], why, self.text)
        clause = clause_of(tree)
        return SequenceRows(self, select, tree, clause).plan(), clause

    def _grouped(self, select: exp.Select) -> bool:
        """Whether a SELECT aggregates: then its hint is about that."""
        windowed = any(isinstance(i, WindowClause) or self.aggregates(i) for i in select.expressions)
        return windowed or select.args.get("group") is not None

    # -- SELECT --------------------------------------------------------------------------------------------------
    def _select(self, select: exp.Select) -> Node:
        node, table_clause = self._from(select)
        items = [i for i in select.expressions if not isinstance(i, WindowClause)]
        own = [i for i in select.expressions if isinstance(i, WindowClause)]
        if own and table_clause is not None:
            raise fail(own[0], "the window is given twice: after the table and after the select list", self.text)
        clause = own[0] if own else table_clause
        if (where := select.args.get("where")) is not None:
            self.no_aggregates(where.this, "WHERE")
            node = filtered(node, self.resolved(where.this, node), self.text)
        if clause is None and not self._groups_by_progress(select, node):
            with self.at(select):
                return self._plain(select, items, node)
        with self.at(clause or select):
            return Grouped(self, select, items, clause, node).plan()

    def _groups_by_progress(self, select: exp.Select, node: Node) -> bool:
        """GROUP BY the progressing attribute needs no window clause: each value is a window of length one. So do groups
        by both times of a join.
        """
        group = select.args.get("group")
        aliases = {i.alias: i.this for i in select.expressions if isinstance(i, exp.Alias)}
        by: list[exp.Expr] = []
        for tree in group.expressions if group is not None else ():
            if isinstance(tree, exp.Literal) and tree.is_int and 0 < int(tree.name) <= len(select.expressions):
                tree = select.expressions[int(tree.name) - 1].unalias()
            by.append(aliases.get(tree.name, tree) if isinstance(tree, exp.Column) else tree)
        if node.progress is not None and any(isinstance(t, exp.Column) and attribute(node, t.name) for t in by):
            return True
        return both_times(node, {str(i): tree for i, tree in enumerate(by)}) is not None

    def _plain(self, select: exp.Select, items: list[exp.Expr], node: Node) -> Node:
        grouping = [t for p in ("group", "having") if (t := select.args.get(p)) is not None]
        endless = "a stream without one has no end"
        parts = (
            ("limit", "LIMIT", endless),
            (EMIT, "EMIT EARLY", endless),
            ("hint", "a hint", "hints are about how windows and joins run"),
        )
        for part, name, why in parts:
            if (tree := select.args.get(part)) is not None:
                raise fail(tree, f"{name} needs a window: {why}", self.text)
        for tree in [*items, *grouping]:
            if isinstance(tree, (exp.Group, exp.Having)) or self.aggregates(tree):
                raise fail(
                    tree,
                    "an aggregate over a stream needs a window, or it would never finish: add [RANGE .., SLIDE .., "
                    f"WA {node.progress}] after the table",
                    self.text,
                )
        columns: list[tuple[str, exp.Expr]] = []
        for item in items:
            if isinstance(item, exp.Star):
                found = self.starred(item, node)
            else:
                tree = self.resolved(item.unalias(), node)
                dtype_of(tree, node.schema, self.text)
                found = [(item.alias_or_name or f"column{len(columns)}", tree)]
            if twice := [n for n, _ in found if n in dict(columns)]:
                raise fail(item, f"output columns need different names; given twice: {listing(twice)}", self.text)
            columns += found
        unchanged = [(c, exp.column(c)) for c in visible(node.schema)]
        result = self.distinct(select, node if columns == unchanged else Project(node, tuple(columns)))
        order = select.args.get("order")
        if order is None:
            return result
        return ordered(result, tuple(self.ordered(o, result, columns) for o in order.expressions), self.text)
