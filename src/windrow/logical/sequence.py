"""The node of a sequence: rows of several streams that follow each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple, Self, get_args

import polars as pl
from sqlglot import exp

from windrow.logical.asof import names_keys
from windrow.logical.node import Node, Time, Times
from windrow.logical.source import Scan
from windrow.logical.windowed import AggregateCall, aggregate_type
from windrow.spec.options import Policy

LAST = "@last"  # what the results of a sequence progress on: the time of its last row
Matching = Literal["recent", "chronicle"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)
Skip = Literal["to next row", "past last row"]
SKIPS: tuple[Skip, ...] = get_args(Skip)
Comparison = Literal["=", "<>", "<", "<=", ">", ">="]
OF_STEP = ("first", "last", "count", "sum", "min", "max", "avg")  # what can be asked of a step with several rows


class SeqStep(NamedTuple):
    """One step: a row of its stream, none (``negated``), or one and more (``repeated``)."""

    name: str
    negated: bool = False
    repeated: bool = False


class Compared(NamedTuple):
    """What must be true of the rows of two steps, each side over the columns of one. ``right_step`` is the later one.

    Of a repeated step: each row that is taken. NULL is not true.
    """

    left_step: int
    left: exp.Expr
    comparison: Comparison
    right_step: int
    right: exp.Expr


class Measure(NamedTuple):
    """A result column: a column of the row of a step, or of a repeated one a function of its rows (``OF_STEP``).

    ``column`` is None for "count" alone, which counts rows.
    """

    name: str
    step: int
    column: str | None
    function: str = ""


@dataclass(frozen=True)
class Sequence(Node):
    """Rows that follow each other in time, one of each step (Bai et al., section 5, for two and more streams).

    Rows of one key are taken in the order of time. Of rows with equal times those of an earlier step come first; if
    two steps read the same stream (``strict``), those of a later step, so that no row follows itself. Rows of one
    step with equal times are in the order of their columns.

    ``matching``: a row takes the latest sequence of the steps before it ("recent", which can be taken again), or the
    earliest that no other row has taken ("chronicle": every row is in one sequence at most). Of a repeated step a row
    joins the sequence that the row of that step before it has joined, as long as that is the one to take. A row of a
    negated step ends all sequences that stand before it (of "chronicle" the earliest).
    A sequence that ends with a negated or repeated step comes out when its time is over.

    ``on``: keys; each has one expression for each step. ``within``: the greatest distance between the times of the
    first and the last row, included. ``conditions``: what must be true between steps; a row takes the latest or the
    earliest sequence for which it is true. ``skip``: after a match, "past last row" forgets all other sequences of the
    key that have begun. ``outer``: rows of the last step that find no sequence come out alone. ``most_keys``: how many
    keys the query may hold in one shard.
    """

    members: tuple[Node, ...]
    steps: tuple[SeqStep, ...]
    on: tuple[tuple[exp.Expr, ...], ...]
    measures: tuple[Measure, ...]
    matching: Matching = "recent"
    within: int | None = None
    conditions: tuple[Compared, ...] = ()
    skip: Skip = "to next row"
    outer: bool = False
    most_keys: int | None = None
    late: tuple[Policy, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def rebuild(self, *inputs: Node) -> Self:
        if len(inputs) != len(self.members):
            raise ValueError(f"a sequence of {len(self.members)} steps over {len(inputs)} streams")
        return replace(self, members=inputs)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {measure.name: self._type(measure) for measure in self.measures}

    def _type(self, measure: Measure) -> pl.DataType:
        given = self.members[measure.step].schema
        if measure.function in ("", "first", "last"):
            return given[measure.column or ""]
        argument = None if measure.column is None else exp.column(measure.column)
        return aggregate_type(AggregateCall(measure.name, measure.function, argument), given)

    @property
    def taken(self) -> list[int]:
        """The steps that have rows in a sequence."""
        return [number for number, step in enumerate(self.steps) if not step.negated]

    @property
    def waits(self) -> bool:
        """Whether a sequence comes out only when its time is over."""
        return self.steps[-1].negated or self.steps[-1].repeated

    @property
    def strict(self) -> bool:
        """Whether two steps read the same stream."""
        read = [{node.name for node in member.walk() if isinstance(node, Scan)} for member in self.members]
        return any(a & b for a, b in combinations(read, 2))

    @property
    def times(self) -> Times:
        """A result comes with the time of its last row."""
        last = self.taken[-1]
        wanted = (last, self.members[last].progress, "last" if self.steps[last].repeated else "")
        return {m.name: Time(0, LAST) for m in self.measures if (m.step, m.column, m.function) == wanted}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        """All columns of all steps: they decide between rows with equal times, whatever is selected."""
        _ = wanted
        return tuple(set(member.schema) for member in self.members)

    def bounds(self) -> list[str]:
        """What bounds its state; nothing bounds it if there is none."""
        found = ["the greatest distance"] if self.within is not None else []
        if self.on and all(names_keys(node, [key[i] for key in self.on]) for i, node in enumerate(self.members)):
            found.append("keys that all streams finish")
        if self.by_latest:
            if self.most_keys is not None:
                found.append(f"at most {self.most_keys} keys in a shard, each with the latest row of each step")
            found += [] if self.on else ["the latest row of each step: there are no keys"]
        return found if not self.waits or self.within is not None else []

    @property
    def by_latest(self) -> bool:
        """Whether the latest row of each step is all that is ever needed of a key."""
        return self.matching == "recent" and not self.conditions and not any(s.repeated for s in self.steps)
