"""Joins by the order of times: ``ASOF JOIN .. MATCH_CONDITION``, and ``FOLLOWING RECENT`` or ``CHRONICLE``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.logical.checked_join import Columns
from windrow.logical.checked_sequence import as_of, sequence
from windrow.logical.expressions import fail
from windrow.logical.nodes import AsOfHow, Compared, Measure, Node, SeqStep, Strategy
from windrow.sql.band import Distance
from windrow.sql.compared import comparisons
from windrow.sql.distance import distance, number
from windrow.sql.match import Match, matched
from windrow.sql.parts import Part, own_names
from windrow.sql.relations import Pair, Relation, Static
from windrow.sql.trees import KEYS, MATCHED, PAIRING, WITHIN

if TYPE_CHECKING:
    from windrow.sql.pairs import Pairs


def nearest_rows(pairs: Pairs, pair: Pair, given: tuple[Distance, ...]) -> Part:
    """The rows of a join by the order of times. ``given``: what the joins above demand of its left rows.

    Left rows of CHRONICLE are all needed: each takes a right row that no other can have then.
    """
    for side in pair.sides:
        if isinstance(side, Static):
            why = f"{side.table.name} is a static table: its rows have no times, so none is near. Use JOIN"
            raise fail(side.tree, why, pairs.terms.text)
    if pairs.hints.places:
        why = (
            "a hint is about the algorithm or limits of a join of times that are near; ASOF JOIN and FOLLOWING have "
            "one algorithm only, and shed no rows"
        )
        raise fail(pair.join, why, pairs.terms.text)
    pairing = pair.join.args.get(PAIRING)
    one_to_one = pairing is not None and pairing.name == "CHRONICLE"
    left, right = pairs.part(pair.left, () if one_to_one else given), pairs.part(pair.right)
    for part, side in ((left, pair.left), (right, pair.right)):
        if not part.times:
            raise pairs.timeless(side)
    return Nearest(pairs, pair, left, right, one_to_one).rows()


@dataclass
class Nearest:
    """A join by the order of times."""

    pairs: Pairs
    pair: Pair
    left: Part
    right: Part
    one_to_one: bool

    def rows(self) -> Part:
        self.match = self._match()
        self.keys, self.rest = self._conditions()
        with self.pairs.terms.at(self.pair.join):
            node = self._chronicle() if self.one_to_one else self._as_of()
        facts = self.left.facts
        if self.pair.how == "inner":
            facts += (*self.right.facts, *self.match.facts)
        return Part(self.pairs.filtered(node, self.pair), {name: name for name in node.schema}, facts)

    def _match(self) -> Match:
        """What is near, with the greatest distance that WITHIN gives."""
        condition = self.pair.join.args.get(MATCHED)
        times = self._progress(self.left), self._progress(self.right)
        found = Match(times) if condition is None else matched(self, condition)
        within = self.pair.join.args.get(WITHIN)
        if within is None:
            return found
        dtype = self.pairs.bands.times[found.times[0]]
        return replace(found, tolerance=distance(within, dtype, self.pairs.terms.text))

    def _progress(self, part: Part) -> str:
        """The time that a side progresses on, as it is called among the columns of all tables."""
        return next(name for name, own in part.own.items() if own == part.node.progress)

    def _conditions(self) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """The keys, and what else must be true; what is about the distance of both times goes into the tolerance."""
        said = [each for each in self.pair.conditions if self._bounds(each)]
        sides = (self.left.own, self.left.node), (self.right.own, self.right.node)
        keys, rest = self.pairs.split(self.pair, sides)
        rest = [each for each in rest if not any(each is other for other in said)]
        alone = [each for each in rest if self._of_left(each)]
        if self.match.tolerance is not None or not keys or not alone:
            return keys, rest
        keys[0] = (self._only(keys[0][0], alone), keys[0][1])
        return keys, [each for each in rest if not self._of_left(each)]

    def _of_left(self, condition: exp.Expr) -> bool:
        """Whether a condition is about left rows alone: in a LEFT join it says which have no partner."""
        return self.pairs.used(condition) <= set(self.pair.left.tables)

    def _only(self, key: exp.Expr, conditions: list[exp.Expr]) -> exp.Expr:
        """A left key that is NULL, and so equals nothing, unless conditions are true: no right rows are kept for it."""
        tree = own_names(exp.and_(*(each.copy() for each in conditions), copy=False), self.left.own)
        return exp.Case(ifs=[exp.If(this=self.pairs.terms.resolved(tree, self.left.node), true=key)])

    def _bounds(self, condition: exp.Expr) -> bool:
        """Whether a condition says nothing but how far apart both times may be."""
        distances = self.pairs.bands.of(condition)
        if not distances or any({each.earlier, each.later} != {*self.match.times} for each in distances):
            return False
        bounds = [self.match.bound(each) for each in distances]
        for least in (each for each in bounds if each is not None):
            if least < self.match.nearest:
                later = "earlier" if self.match.strategy == "backward" else "later"
                why = f"no rows are like this: right rows that are taken are {later}, and this asks for others"
                raise fail(condition, why, self.pairs.terms.text)
            tolerance = least if self.match.tolerance is None else min(least, self.match.tolerance)
            self.match = replace(self.match, tolerance=tolerance)
        return all(b is not None or self.match.implies(d) for b, d in zip(bounds, distances, strict=True))

    # -- nodes ---------------------------------------------------------------------------------------------------
    def _as_of(self) -> Node:
        columns: Columns = (
            *((name, 0, own) for name, own in self.left.own.items()),
            *((name, 1, own) for name, own in self.right.own.items()),
        )
        how: AsOfHow = "left" if self.pair.how == "left" else "inner"
        strategy: Strategy = self.match.strategy
        return as_of(
            self.left.on(self.match.times[:1]),
            self.right.on(self.match.times[1:]),
            self.keys,
            columns,
            self.pairs.terms.text,
            strategy=strategy,
            exact=self.match.exact,
            shift=self.match.shift,
            tolerance=self.match.tolerance,
            how=how,
            where=exp.and_(*self.rest, copy=False) if self.rest else None,
            most_keys=number(self.pair.join.args.get(KEYS), self.pairs.terms.text),
            late=(self.left.late, self.right.late),
            at=self.pair.join,
        )

    def _chronicle(self) -> Node:
        """The right side is the first step, and the left one the second."""
        parts = (self.right, self.left)
        members = [part.on((time,)) for part, time in zip(parts, self.match.times[::-1], strict=True)]
        sides = (self.pair.right, self.pair.left)
        measures = [Measure(n, 1 - i, own) for i, part in enumerate(parts[::-1]) for n, own in part.own.items()]
        return sequence(
            members,
            [SeqStep(self._name(side)) for side in sides],
            [key[::-1] for key in self.keys],
            measures,
            self.pairs.terms.text,
            matching="chronicle",
            within=self.match.tolerance,
            conditions=[each for condition in self.rest for each in self._compared(condition)],
            outer=self.pair.how == "left",
            most_keys=number(self.pair.join.args.get(KEYS), self.pairs.terms.text),
            late=[part.late for part in parts],
            at=self.pair.join,
        )

    def _name(self, side: Relation) -> str:
        if isinstance(side, Pair):
            return " and ".join(self._name(each) for each in side.sides)
        return side.name or f"table {side.index + 1}"

    def _compared(self, condition: exp.Expr) -> list[Compared]:
        if self._of_left(condition):
            tree = self.pairs.terms.resolved(own_names(condition, self.left.own), self.left.node)
            return [Compared(0, exp.true(), "=", 1, tree)]
        return comparisons(condition, self.pairs.bands, self._place, self.pairs.terms.text)

    def _place(self, column: exp.Column) -> tuple[int, str]:
        """The step of a column, and its name there."""
        later = column.name in self.left.own
        return int(later), (self.left if later else self.right).own[column.name]
