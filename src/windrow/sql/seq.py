"""``FROM SEQ(orders a, NOT cancels x, payments+ b)``: the steps of a sequence, and what is selected of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.checked import filtered
from windrow.logical.checked_sequence import check_steps, sequence
from windrow.logical.expressions import fail, visible
from windrow.logical.nodes import OF_STEP, Measure, Node, SeqStep
from windrow.spec.names import STATUS, VERSION, WINDOW_END, WINDOW_START, WINDOW_TIME
from windrow.spec.options import Policy
from windrow.spec.tables import Table
from windrow.sql.band import Bands
from windrow.sql.clause import ROW_NUM, over
from windrow.sql.distance import distance, number
from windrow.sql.joins import conjuncts, order_by_aliases
from windrow.sql.parts import Origins, own_names
from windrow.sql.scope import Merged, Scope, Stars, View, attributes, name_of
from windrow.sql.seq_conditions import Between
from windrow.sql.seq_measures import Measures
from windrow.sql.table_window import table_window
from windrow.sql.tables import Tables, clause_of
from windrow.sql.trees import Seq, Step, WindowClause

RESULTS = {WINDOW_START, WINDOW_END, WINDOW_TIME, VERSION, STATUS, ROW_NUM}


@dataclass
class StepRows:
    """A step: its rows, and what happens to late ones."""

    tree: Step
    name: str
    node: Node
    late: Policy = "drop"

    @property
    def spec(self) -> SeqStep:
        return SeqStep(self.name, bool(self.tree.args.get("negated")), bool(self.tree.args.get("repeated")))

    @property
    def hidden(self) -> str | None:
        """Why its columns cannot be named alone."""
        if self.spec.negated:
            return f"step {self.name} is negated, so that a sequence has no row of it"
        if self.spec.repeated:
            some = ", ".join(f"{function}({self.name}.x)" for function in OF_STEP)
            return f"step {self.name} has one or more rows, of which there are {some} and count({self.name}.*)"
        return None


@dataclass
class SequenceRows:
    """The sequences of a FROM. ``clause``: a window over all of it."""

    terms: Tables
    select: exp.Select
    tree: Seq
    clause: WindowClause | None = None

    def plan(self) -> Node:
        """The sequences; the columns of the SELECT are resolved on the way."""
        self.steps = [self._step(each) for each in self.tree.expressions]
        text, specs = self.terms.text, [step.spec for step in self.steps]
        self._check(specs)
        hidden = [s.node.hidden for s in self.steps]
        self.scope = Scope([s.name for s in self.steps], [s.node.schema for s in self.steps], text, hidden)
        self.origins: Origins = {
            self.scope.joined_name(i, c): (i, c) for i, step in enumerate(self.steps) for c in step.node.schema
        }
        merged = self._using()
        between = self._between(merged)
        measures = self._measures(merged)
        within = self.tree.args.get("within")
        if within is not None:
            first = self.steps[0].node
            between.bound(distance(within, first.schema[first.progress or ""], text))
        matching, skip = self.tree.args.get("matching"), self.tree.args.get("skip")
        with self.terms.at(self.tree):
            return sequence(
                [step.node for step in self.steps],
                specs,
                between.keys,
                measures,
                text,
                matching="chronicle" if matching is not None and matching.name == "CHRONICLE" else "recent",
                within=between.within,
                conditions=between.conditions,
                skip="past last row" if skip is not None and skip.name.startswith("PAST") else "to next row",
                most_keys=number(self.tree.args.get("keys"), text),
                late=[step.late for step in self.steps],
                at=self.tree,
            )

    # -- steps ---------------------------------------------------------------------------------------------------
    def _step(self, tree: Step) -> StepRows:
        rows, text = self.terms.rows(tree.this), self.terms.text
        if isinstance(rows, Table):
            raise fail(tree, f"{rows.name} is a static table: its rows have no times, and follow nothing", text)
        name = name_of(tree.this)
        if name is None:
            raise fail(tree, "a step needs a name: give it an alias", text)
        if rows.progress is None:
            raise fail(tree, f"step {name} needs its progressing column: keep it in the SELECT list", text)
        clause = clause_of(tree.this)
        if clause is None:
            return StepRows(tree, name, rows)
        Scope([name], [rows.schema], text).clause(clause)
        window = table_window(clause, rows, text)
        if window.kind is not None:
            raise fail(clause, "a step has no window: WITHIN says how far apart the rows of a sequence may be", text)
        return StepRows(tree, name, over(clause, rows), window.late)

    def _check(self, specs: list[SeqStep]) -> None:
        seen: set[str] = set()
        for step in self.steps:
            if step.name.lower() in seen:
                raise fail(step.tree, f"two steps are called {step.name}: give one an alias", self.terms.text)
            seen.add(step.name.lower())
        begins = self.tree if len(specs) != 1 and not specs[0].negated else self.steps[0].tree
        both = [step.tree for step in self.steps if step.spec.negated and step.spec.repeated]
        check_steps(specs, both[0] if both else begins, self.terms.text)

    # -- conditions ----------------------------------------------------------------------------------------------
    def _using(self) -> tuple[Merged, ...]:
        """The columns of USING: equal in all steps, and one column from here on."""
        found = []
        for name in self.tree.args.get("using") or ():
            of = {}
            for i, step in enumerate(self.steps):
                alike = [c for c in step.node.schema if c == name.name]
                alike = alike or [c for c in step.node.schema if c.lower() == name.name.lower()]
                if len(alike) != 1:
                    there = listing(visible(step.node.schema))
                    why = f"USING: step {step.name} has no column {name.name!r}; available: {there}"
                    raise fail(name, why, self.terms.text)
                of[i] = alike[0]
            taken = [i for i, step in enumerate(self.steps) if not step.spec.negated]
            one = min(taken, key=lambda i: (self.steps[i].spec.repeated, i))
            found.append(Merged(name.name, exp.column(self.scope.joined_name(one, of[one]), quoted=True), of))
        return tuple(found)

    def _between(self, merged: tuple[Merged, ...]) -> Between:
        """What must be true between steps; conditions on one step are about its rows before."""
        times = {n: self.steps[i].node.schema[c] for n, (i, c) in self.origins.items() if c in self._times(i)}
        found = Between(self.steps, self.origins, Bands(times, self.terms.text), self.terms)
        found.keys += [tuple(exp.column(each.of[i]) for i in range(len(self.steps))) for each in merged]
        on = self.tree.args.get("on")
        if on is None:
            return found
        self.terms.no_aggregates(on, "ON")
        for column in list(on.find_all(exp.Column)):
            self.scope.column(column, self.scope.everything)
            if column.name not in self.origins:
                raise self._unknown(column)
        for condition in conjuncts(self.tree.args["on"]):
            used = {self.origins[c.name][0] for c in condition.find_all(exp.Column)}
            if len(used) == 1:
                self._filter(self.steps[used.pop()], condition)
            else:
                found.add(condition, used)
        found.finish()
        return found

    def _times(self, step: int) -> set[str]:
        return {self.steps[step].node.progress or ""}

    def _filter(self, step: StepRows, condition: exp.Expr) -> None:
        own = {name: column for name, (i, column) in self.origins.items() if self.steps[i] is step}
        resolved = self.terms.resolved(own_names(condition, own), step.node)
        step.node = filtered(step.node, resolved, self.terms.text)

    # -- what is selected ----------------------------------------------------------------------------------------
    def _measures(self, merged: tuple[Merged, ...]) -> list[Measure]:
        """The columns of steps that the SELECT names, and functions of repeated steps."""
        open_ = tuple(i for i, step in enumerate(self.steps) if step.hidden is None)
        hidden = {i: step.hidden for i, step in enumerate(self.steps) if step.hidden is not None}
        view = View(open_, merged, hidden)
        measures = Measures(self.terms, self.scope, self.origins, self.steps, merged)
        measures.replace(self.select)
        self._expand(view)
        self.scope.resolve(self.select, view)
        if self.clause is not None:
            self.scope.clause(self.clause, view)
        for column in self._columns():
            if not measures.add(column.name) and not self._is_result(column.name):
                raise self._unknown(column)
        order_by_aliases(self.select)
        return measures.all()

    def _expand(self, view: View) -> None:
        """``*`` is the columns of all steps with one row; a name that several have stands behind that of the step."""
        if any(isinstance(item, WindowClause) for item in self.select.expressions):
            return
        own = [(i, c) for i in view.tables for c in self.scope.shown(i) if not view.merges(i, c)]
        names = [c for _, c in own] + [each.name for each in view.merged]
        found: list[tuple[str, exp.Expr]] = [(each.name, each.tree.copy()) for each in view.merged]
        for i, c in own:
            tree = exp.column(self.scope.joined_name(i, c), quoted=True)
            found.append((c if names.count(c) == 1 else f"{self.steps[i].name}_{c}", tree))
        items: list[exp.Expr] = []
        for item in self.select.expressions:
            copies = [(name, tree.copy()) for name, tree in found]
            star = isinstance(item, exp.Star)
            items += Stars(self.scope, view).columns(item, copies, item) if star else [item]
        self.select.set("expressions", items)

    def _columns(self) -> Iterator[exp.Expr]:
        """The columns that the SELECT names, in all of its parts."""
        for clause in (self.clause, *(i for i in self.select.expressions if isinstance(i, WindowClause))):
            yield from attributes(clause) if clause is not None else ()
        for part, value in self.select.args.items():
            for tree in value if isinstance(value, list) else [value]:
                if part != "from_" and isinstance(tree, exp.Expr) and not isinstance(tree, WindowClause):
                    yield from tree.find_all(exp.Column)

    def _is_result(self, name: str) -> bool:
        """Whether this is a column of the results of the SELECT, or an option of its window."""
        aliases = {item.alias.lower() for item in self.select.expressions if item.alias}
        return name.lower() in {*aliases, *RESULTS}

    def _unknown(self, column: exp.Expr) -> QueryError:
        there = listing(c for c in self.origins if not c.startswith("@"))
        return fail(column, f"unknown column {column.name!r}; available: {there}", self.terms.text)
