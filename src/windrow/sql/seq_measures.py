"""What a SELECT takes from the steps of a sequence: columns, and functions of the rows of a repeated step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.errors import listing
from windrow.logical.expressions import fail
from windrow.logical.nodes import OF_STEP, Measure
from windrow.logical.reading import named, written
from windrow.sql.parts import Origins
from windrow.sql.scope import Merged, Scope, View
from windrow.sql.terms import Terms, column_like

if TYPE_CHECKING:
    from windrow.sql.seq import StepRows


@dataclass
class Measures:
    """The measures of a sequence, by what they are called among its columns."""

    terms: Terms
    scope: Scope
    origins: Origins
    steps: Sequence[StepRows]
    merged: tuple[Merged, ...]
    found: dict[str, Measure] = field(default_factory=dict)

    def add(self, name: str) -> bool:
        """The column of a step, if this is one."""
        if name in self.origins and name not in self.found:
            step, column = self.origins[name]
            function = "last" if self.steps[step].spec.repeated else ""
            self.found[name] = Measure(name, step, column, function)
        return name in self.found

    def all(self) -> list[Measure]:
        """All of them, with the time that the results progress on."""
        last = max(i for i, step in enumerate(self.steps) if not step.spec.negated)
        self.add(self.scope.joined_name(last, self.steps[last].node.progress or ""))
        return list(self.found.values())

    def replace(self, select: exp.Select) -> None:
        """Put a column in the place of each function of a repeated step: it is computed with the sequence."""
        for part, value in select.args.items():
            if part != "from_":
                for tree in list(value) if isinstance(value, list) else [value]:
                    for call in reversed(list(tree.walk())) if isinstance(tree, exp.Expr) else ():
                        self._replace(call)

    def _replace(self, call: exp.Expr) -> None:
        if not self.terms.is_aggregate(call):
            return
        columns = list(call.find_all(exp.Column))
        steps = {step for column in columns if (step := self._repeated(column)) is not None}
        if not steps:
            return
        (step,) = steps if len(steps) == 1 else (-1,)
        argument = call.expressions[0] if isinstance(call, exp.Anonymous) and call.expressions else call.this
        function = self.terms.function_name(call)
        outer = call.parent if isinstance(call.parent, (exp.Filter, exp.IgnoreNulls, exp.Window)) else call
        if function not in OF_STEP:
            why = f"{named(call, self.terms.text)} is no function of the rows of a step; available: {listing(OF_STEP)}"
            raise fail(outer, why, self.terms.text)
        if outer is not call or len(columns) != 1 or argument is not columns[0]:
            example = f"{function}({self.steps[step].name}.x)"
            why = (
                f"a function of the rows of a step takes one of its columns alone, as in {example}: compute others in "
            )
            raise fail(outer, f"{why}a query that is the step, (SELECT .. FROM ..)+ b", self.terms.text)
        column = self._column(columns[0], step)
        name = f"{function}({self.steps[step].name}.{column or '*'})"
        self.found[name] = Measure(name, step, column, function)
        found = column_like(name, call)
        found.this.set("quoted", True)
        called = call.parent is not None and isinstance(call.parent, exp.Select) and call.arg_key == "expressions"
        short = f"{function}_{column or self.steps[step].name}"
        call.replace(exp.alias_(found, short, quoted=True) if called else found)

    def _repeated(self, column: exp.Column) -> int | None:
        """The repeated step that a column is of."""
        if column.name in self.found:
            return None
        if column.table:
            step = self.scope.table(column)
            return step if self.steps[step].spec.repeated else None
        taken = tuple(i for i, each in enumerate(self.steps) if not each.spec.negated)
        there = self.scope._named(column.name, View(taken, self.merged))
        found = [each for each in there if isinstance(each, int) and self.steps[each].spec.repeated]
        return found[0] if len(there) == 1 and found else None

    def _column(self, column: exp.Column, step: int) -> str | None:
        if isinstance(column.this, exp.Star):
            if not isinstance(column.parent, exp.Count):
                raise fail(column, f"{written(column, self.terms.text)} can be counted only", self.terms.text)
            return None
        schema = self.steps[step].node.schema
        alike = [column.name] if column.name in schema else [c for c in schema if c.lower() == column.name.lower()]
        if len(alike) != 1:
            there = listing(c for c in schema if not c.startswith("@"))
            why = f"step {self.steps[step].name} has no column {column.name!r}; available: {there}"
            raise fail(column, why, self.terms.text)
        return alike[0]
