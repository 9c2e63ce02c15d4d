"""The conditions of a sequence: keys that all steps share, its greatest distance, and comparisons between steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.checked import filtered
from windrow.logical.expressions import fail
from windrow.logical.nodes import Compared
from windrow.sql.band import Bands
from windrow.sql.compared import comparisons
from windrow.sql.parts import Origins
from windrow.sql.terms import Terms

if TYPE_CHECKING:
    from windrow.sql.seq import StepRows

Term = tuple[int, str]  # a step, and an expression over its row as text


@dataclass
class Between:
    """Collects what must be true between the steps of a sequence."""

    steps: Sequence[StepRows]
    origins: Origins
    bands: Bands
    terms: Terms
    keys: list[tuple[exp.Expr, ...]] = field(default_factory=list)
    conditions: list[Compared] = field(default_factory=list)
    within: int | None = None
    equal: list[Compared] = field(default_factory=list)  # equalities of two steps

    def bound(self, most: int) -> None:
        """A greatest distance of the first and the last row."""
        self.within = most if self.within is None else min(most, self.within)

    def add(self, condition: exp.Expr, used: set[int]) -> None:
        """Add a condition that is about several steps."""
        if not used:
            why = "this is about no step: a condition of SEQ is about the rows of one step, or of two"
            raise fail(condition, why, self.terms.text)
        if self._about_order(condition):
            return
        found = comparisons(condition, self.bands, self._place, self.terms.text)
        found = [each._replace(left=self._own(*each[:2]), right=self._own(*each[3:])) for each in found]
        if isinstance(condition.unnest(), exp.EQ):
            self.equal += found
        else:
            self.conditions += found

    def finish(self) -> None:
        """Equalities that connect all steps are keys; with a key, others are comparisons."""
        classes = self._classes()
        whole = [each for each in classes if len({step for step, _ in each}) == len(self.steps)]
        keyed = {term for each in whole for term in each}
        trees = {term: tree for each in self.equal for term, tree in _terms(each)}
        self.keys += [tuple(self._tree(each, i, trees) for i in range(len(self.steps))) for each in whole]
        for each in self.equal:
            if not {term for term, _ in _terms(each)} <= keyed:
                if not self.keys:
                    raise self._left_out(next(c for c in classes if _terms(each)[0][0] in c))
                self.conditions.append(each)
        for terms in whole:
            self._same_step(terms, trees)

    def _classes(self) -> list[list[Term]]:
        """Expressions that are equal to each other, in the order in which they are written."""
        found: list[list[Term]] = []
        for each in self.equal:
            both = [term for term, _ in _terms(each)]
            touched = [c for c in found if any(term in c for term in both)]
            united = list(dict.fromkeys([term for c in touched for term in c] + both))
            found = [c for c in found if c not in touched] + [united]
        return found

    def _tree(self, terms: list[Term], step: int, trees: dict[Term, exp.Expr]) -> exp.Expr:
        return trees[next(term for term in terms if term[0] == step)]

    def _same_step(self, terms: list[Term], trees: dict[Term, exp.Expr]) -> None:
        """Two expressions of one step in a key: its rows must have them equal."""
        for step, rows in enumerate(self.steps):
            first, *others = [trees[term] for term in terms if term[0] == step]
            for other in others:
                rows.node = filtered(rows.node, exp.EQ(this=first.copy(), expression=other.copy()), self.terms.text)

    def _left_out(self, terms: list[Term]) -> QueryError:
        there = {step for step, _ in terms}
        names = " and ".join(self.steps[i].name for i in sorted(there))
        missing = next(rows for i, rows in enumerate(self.steps) if i not in there)
        add = f"{missing.name}.x = {self.steps[min(there)].name}.x"
        why = f"ON makes {names} equal, and leaves out step {missing.name}: a key is in all steps. Add {add} to ON"
        return fail(missing.tree, f"{why}, or name the columns in USING", self.terms.text)

    # -- times ---------------------------------------------------------------------------------------------------
    def _about_order(self, condition: exp.Expr) -> bool:
        """Whether a condition says nothing but how far apart the first and the last row may be, or their order."""
        done = []
        for each in self.bands.of(condition):
            earlier, later = (self.origins[name][0] for name in each[:2])
            if earlier > later and each.most >= 0:
                done.append(True)  # it is so anyway
                continue
            if earlier < later and each.most < 0:
                a, b = self.steps[earlier].name, self.steps[later].name
                why = f"no sequence is like this: a row of {b} is not before that of {a}"
                raise fail(condition, why, self.terms.text)
            last = self.steps[-1].spec
            whole = (earlier, later) == (0, len(self.steps) - 1) and not (last.negated or last.repeated)
            done.append(whole)
            if whole:
                self.bound(each.most)
        return bool(done) and all(done)

    def _place(self, column: exp.Column) -> tuple[int, str]:
        return self.origins[column.name]

    def _own(self, step: int, tree: exp.Expr) -> exp.Expr:
        return self.terms.resolved(tree, self.steps[step].node)


def _terms(compared: Compared) -> list[tuple[Term, exp.Expr]]:
    """Both sides of an equality."""
    sides = ((compared.left_step, compared.left), (compared.right_step, compared.right))
    return [((step, tree.sql("spark")), tree) for step, tree in sides]
