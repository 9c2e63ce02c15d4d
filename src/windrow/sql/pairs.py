"""A tree of joins as a plan: for each join its keys, how near times must be, and what else must be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.checked import filtered
from windrow.logical.checked_join import Columns, joined
from windrow.logical.checked_lookup import looked_up
from windrow.logical.expressions import fail, resolve
from windrow.logical.nodes import UNMATCHED, Node
from windrow.spec.spread import RINGS
from windrow.spec.tables import Table
from windrow.sql.band import Bands, Distance, as_condition, nearest
from windrow.sql.hints import NONE, Hints
from windrow.sql.nearest import nearest_rows
from windrow.sql.parts import Origins, Part, Sides, own_names
from windrow.sql.relations import Leaf, Pair, Relation, Static
from windrow.sql.terms import Terms
from windrow.windows.pairing import Pairing, SameWindow, Within


@dataclass(frozen=True)
class Near:
    """How near the times of a pair must be; ``times``: the columns that it is about."""

    window: Pairing
    times: tuple[str, ...] = ()
    by_rows: bool = False

    def implies(self, distances: Iterable[Distance]) -> bool:
        """Whether this says everything about some distances: they are of the same two times."""
        pairs = [{each.earlier, each.later} for each in distances]
        return bool(pairs) and isinstance(self.window, Within) and all(pair == {*self.times} for pair in pairs)


@dataclass
class Pairs:
    """Plans the joins of one FROM. ``hints``: the physical join, and its limits. ``wanted``: the times that the
    results should progress on.
    """

    terms: Terms
    leaves: Sequence[Leaf | Static]
    origins: Origins
    bands: Bands
    hints: Hints = NONE
    wanted: frozenset[str] = frozenset()

    def part(self, relation: Relation, given: tuple[Distance, ...] = ()) -> Part:
        """The rows of a relation. ``given``: what the joins above demand, so that other rows are not needed."""
        if isinstance(relation, Static):
            name = relation.table.name
            raise fail(relation.tree, f"{name} is a static table: join it with a stream", self.terms.text)
        if isinstance(relation, Leaf):
            return self._table(relation)
        if relation.in_order:
            return nearest_rows(self, relation, given)
        if any(isinstance(side, Static) for side in relation.sides):
            return self._lookup(relation, given)
        own = self._facts(relation)
        known = (*own, *(given if relation.how == "inner" else ()))
        left, right = (
            self.part(side, known if i not in UNMATCHED[relation.how] else ()) for i, side in enumerate(relation.sides)
        )
        near = self._near(relation, left, right, known)
        node = self._join(relation, left, right, near)
        node = self.filtered(node, relation)
        kept = {"inner": (*left.facts, *right.facts, *own), "right": right.facts, "full": ()}
        return Part(node, {name: name for name in node.schema}, kept.get(relation.how, left.facts))

    def _table(self, table: Leaf) -> Part:
        own = {name: column for name, (index, column) in self.origins.items() if index == table.index}
        node = table.node
        for condition in table.conditions:
            resolved = self.terms.resolved(own_names(condition, own), node)
            node = filtered(node, resolved, self.terms.text)
        return Part(node, own, late=table.window.late if table.window is not None else "drop")

    def _lookup(self, pair: Pair, given: tuple[Distance, ...]) -> Part:
        """A join with a table, which stands on the right of the plan, wherever it is written."""
        swapped = isinstance(pair.left, Static)
        stream, table = pair.sides[::-1] if swapped else pair.sides
        part = self.part(stream, given if pair.how == "inner" else ())
        assert isinstance(table, Static)
        own = {name: column for name, (index, column) in self.origins.items() if index == table.index}
        if swapped and pair.how not in ("inner", "right"):
            why = f"rows of {table.table.name!r} would have to wait until no row of the stream can come, which is never"
            raise self._refused(pair, f"{why}: name the stream first")
        sides: Sides = (part.own, part.node), (own, table.table)
        keys, rest = self.split(pair, sides[::-1] if swapped else sides)
        columns: Columns = tuple(
            (n, 0, part.own[n]) if n in part.own else (n, 1, own[n]) for n in self.origins if n in {*part.own, *own}
        )
        with self.terms.at(pair.join):
            node: Node = looked_up(
                part.node,
                table.table,
                [(b, a) for a, b in keys] if swapped else keys,
                columns,
                exp.and_(*rest, copy=False) if rest else None,
                self.terms.text,
                how="left" if pair.how == "right" and swapped else pair.how,
            )
        return Part(self.filtered(node, pair), {name: name for name in node.schema}, part.facts, part.late)

    def filtered(self, node: Node, pair: Pair) -> Node:
        for condition in pair.above:
            node = filtered(node, self.terms.resolved(condition, node), self.terms.text)
        return node

    def _join(self, pair: Pair, left: Part, right: Part, near: Near) -> Node:
        keys, conditions = self.split(pair, ((left.own, left.node), (right.own, right.node)))
        rest = [each for each in conditions if not near.implies(self.bands.of(each))]
        rest += [self._held(pair, each) for each in self._windowed(pair) if not near.implies([each])]
        columns: Columns = (
            *((name, 0, own) for name, own in left.own.items()),
            *((name, 1, own) for name, own in right.own.items()),
        )
        with self.terms.at(pair.join):
            return joined(
                left.on(near.times[:1]),
                right.on(near.times[1:]),
                keys,
                near.window,
                columns,
                exp.and_(*rest, copy=False) if rest else None,
                self.terms.text,
                how=pair.how,
                late=(left.late, right.late),
                by_rows=near.by_rows,
                using=self.hints.using,
                alpha=self.hints.alpha,
                cost=self.hints.cost,
                limits=self.hints.limits,
            )

    # -- conditions ----------------------------------------------------------------------------------------------
    def used(self, tree: exp.Expr) -> set[int]:
        """The tables that an expression is about."""
        return {self.origins[column.name][0] for column in tree.find_all(exp.Column)}

    def split(self, pair: Pair, sides: Sides) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """What must be equal on both sides, and all other conditions."""
        keys, rest = [], []
        for condition in pair.conditions:
            key = self._equality(pair, condition, sides)
            rest += [condition] if key is None else []
            keys += [] if key is None else [key]
        return keys, rest

    def _equality(self, pair: Pair, condition: exp.Expr, sides: Sides) -> tuple[exp.Expr, exp.Expr] | None:
        """An expression over each side, if the condition is that they are equal."""
        if not isinstance(condition, exp.EQ):
            return None
        found: dict[int, exp.Expr] = {}
        for tree, (i, (names, rows)) in product((condition.this, condition.expression), enumerate(sides)):
            used = self.used(tree)
            if used and used <= set(pair.sides[i].tables):
                own = own_names(tree, names)
                found[i] = self._resolved(own, rows)
        return (found[0], found[1]) if len(found) == 2 else None

    def _resolved(self, tree: exp.Expr, rows: Node | Table) -> exp.Expr:
        if isinstance(rows, Table):
            return resolve(tree, rows.schema, self.terms.text)
        return self.terms.resolved(tree, rows)

    def _facts(self, pair: Pair) -> list[Distance]:
        """What the conditions and windows of a join say about distances."""
        said = [each for condition in pair.conditions for each in self.bands.of(condition)]
        return said + [each for each in self._windowed(pair) if self._always(pair, each)]

    def _always(self, pair: Pair, distance: Distance) -> bool:
        """Whether the rows of both sides always have both times."""
        return {self.origins[name][0] for name in distance[:2]} <= pair.left.sure | pair.right.sure

    def _windowed(self, pair: Pair) -> list[Distance]:
        """``[RANGE w]`` after the tables of both sides: a row is joined with those that are less than w later."""
        found = []
        for one, other in product(*([self.leaves[i] for i in side.tables if i in side.present] for side in pair.sides)):
            if (a := one.range) is not None and (b := other.range) is not None:
                times = self.time(one), self.time(other)
                found += [Distance(*times, a - 1), Distance(*times[::-1], b - 1)]
        return found

    def _held(self, pair: Pair, distance: Distance) -> exp.Expr:
        """A window as a condition; the rows of a table that an outer join below does not have are near everything."""
        condition = as_condition(distance, self.bands.times[distance.earlier])
        return condition if self._always(pair, distance) else exp.Coalesce(this=condition, expressions=[exp.true()])

    def time(self, table: Leaf | Static) -> str:
        place = (table.index, next(iter(table.times)))
        return next(name for name, origin in self.origins.items() if origin == place)

    # -- how near times must be ----------------------------------------------------------------------------------
    def _near(self, pair: Pair, left: Part, right: Part, known: tuple[Distance, ...]) -> Near:
        windows = [w for i in pair.tables if (w := self.leaves[i].window) is not None]
        if any(w.kind == "rows" for w in windows):
            return self._rows(pair)
        for part, side in ((left, pair.left), (right, pair.right)):
            if not part.times:
                raise self.timeless(side)
        if windows and windows[0].kind == "tumbling":
            times = min(product(left.times, right.times), key=lambda p: not {*p} & self.wanted)
            return Near(SameWindow(windows[0].length, windows[0].origin), times)
        most = nearest([*known, *left.facts, *right.facts])
        if any(bound < 0 for (a, b), bound in most.items() if a == b):
            told = [c.copy() for c in pair.conditions if self.bands.of(c)]
            place = exp.Tuple(expressions=told) if told else pair.join
            raise fail(place, "the join can have no pairs: no times are as far apart as this asks for", self.terms.text)
        bounded = [p for p in product(left.times, right.times) if p in most and p[::-1] in most]
        if not bounded:
            raise self._unbounded(pair, left, right, most)
        times = min(bounded, key=lambda p: (not {*p} & self.wanted, most[p] + most[p[::-1]]))
        return Near(Within(-most[times[::-1]], most[times]), times)

    def _rows(self, pair: Pair) -> Near:
        left, right = pair.sides
        if not (isinstance(left, Leaf) and isinstance(right, Leaf)):
            raise self._refused(pair, "a join over ROWS is of two tables: rows of a join have no numbers")
        if {side.window.kind for side in (left, right) if side.window is not None} != {"rows"}:
            raise self._refused(
                pair,
                "RANGE n ROWS beside a RANGE of time holds the last rows of a stream, which only a join that is spread "
                f"over nodes does: add /*+ USING({RINGS[0]}) */",
            )
        held = [side.window.length if side.window is not None else 0 for side in (left, right)]
        return Near(Within(1 - held[1], held[0] - 1), by_rows=True)

    def timeless(self, side: Relation) -> QueryError:
        if not isinstance(side, Pair):
            why = "a join needs the progressing column of both tables: keep it in the SELECT list"
            return fail(side.tree, why, self.terms.text)
        if side.how == "full":
            a, b = (self._names(each)[0] for each in side.sides)
            why = f"rows of a FULL JOIN can be without {a} or without {b}, and progress on neither: join a query that "
            return fail(side.join, f"{why}selects coalesce({a}, {b})", self.terms.text)
        return fail(side.join, "the results of this join do not progress, and cannot be joined", self.terms.text)

    def _names(self, side: Relation) -> list[str]:
        return [self.qualified(self.time(self.leaves[i])) for i in side.tables if self.leaves[i].times]

    def _unbounded(self, pair: Pair, left: Part, right: Part, most: Mapping[tuple[str, str], int]) -> QueryError:
        """A join of endless streams needs both bounds: rows that can still be paired are kept."""
        for condition in pair.above:
            if any({d.earlier, d.later} & {*left.times} for d in self.bands.of(condition)):
                kind = pair.how.upper()
                why = f"WHERE is over the results of a {kind} JOIN, so this does not bound how far apart the times are"
                return fail(condition, f"{why}: write it in ON, or [RANGE ..] after both tables", self.terms.text)
        a, b = left.times[0], right.times[0]
        if not self.bands.comparable(a, b):
            types = " and ".join(f"{self.qualified(name)} is {self.bands.times[name]}" for name in (a, b))
            return self._refused(pair, f"the times of a join must be of one type: {types}. Cast one")
        half = any((p in most) != (p[::-1] in most) for p in product(left.times, right.times))
        missing = "the times on both sides" if half else "how far apart the times are"
        one, other = self.qualified(a), self.qualified(b)
        told = {n for c in pair.conditions for d in self.bands.of(c) for n in d[:2]} - {*left.times, *right.times}
        lost = "".join(f"; not all rows have {self.qualified(name)}" for name in sorted(told))
        return self._refused(
            pair,
            f"a join of streams must bound {missing}, or its state would grow forever: add {other} BETWEEN {one} - "
            f"INTERVAL .. AND {one} + INTERVAL .., or [RANGE ..] after the tables{lost}",
        )

    def qualified(self, name: str) -> str:
        table, column = self.origins[name]
        of = self.leaves[table].name
        return column if of is None else f"{of}.{column}"

    def _refused(self, pair: Pair, why: str) -> QueryError:
        return fail(pair.join, why, self.terms.text)
