"""Sequences in Python: ``Stream.following``, and ``wr.seq`` with the steps that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from windrow.api import given
from windrow.api.as_of import late_policies, nearest, time_type
from windrow.api.resolved import Names, key_pairs, resolved
from windrow.errors import QueryError, listing
from windrow.logical import expressions
from windrow.logical.checked_join import all_columns
from windrow.logical.checked_sequence import sequence
from windrow.logical.compared import compared
from windrow.logical.nodes import (
    AS_OF_HOWS,
    MATCHINGS,
    OF_STEP,
    SKIPS,
    AsOfHow,
    Compared,
    Matching,
    Measure,
    Node,
    SeqStep,
    Skip,
)
from windrow.spec.lengths import Length, length

if TYPE_CHECKING:
    from windrow.api.stream import Stream

EARLIER, LATER = "earlier", "later"  # the steps of a row that follows another


@dataclass(frozen=True)
class Following:
    """What ``Stream.following`` was asked for; its fields are the arguments there."""

    on: Names
    left_on: Names
    right_on: Names
    matching: str
    within: Length | None
    how: str
    where: str | None
    suffix: str
    late: str | Sequence[str]
    max_keys: int | None

    def of(self, later: Node, earlier: Node) -> Node:
        """The as-of join of two streams, or their one-to-one matching."""
        given.one_of(self.matching, "matching", MATCHINGS)
        given.one_of(self.how, "how", AS_OF_HOWS)
        keys = key_pairs(later, earlier, self.on, self.left_on, self.right_on)
        columns = all_columns(later, earlier, given.text(self.suffix, "suffix"))
        if self.matching == "recent":
            how = cast("AsOfHow", self.how)
            return nearest(
                later, earlier, keys, columns, "backward", self.within, True, how, self.where, self.late, self.max_keys
            )
        if self.max_keys is not None:
            raise QueryError("max_keys= bounds nothing here: a key can have many rows that none follows; leave it out")
        policies = late_policies(self.late, 2)
        return sequence(
            (earlier, later),
            (SeqStep(EARLIER), SeqStep(LATER)),
            [(b, a) for a, b in keys],
            [Measure(name, 1 - side, column) for name, side, column in columns],
            matching="chronicle",
            within=None if self.within is None else length(self.within, time_type(later), "within", zero=True),
            conditions=self._conditions(later, earlier),
            outer=self.how == "left",
            late=policies[::-1],
        )

    def _conditions(self, later: Node, earlier: Node) -> list[Compared]:
        """A condition over the columns of a pair, as comparisons between its rows."""
        if self.where is None:
            return []
        text = given.text(self.where, "where")
        names = {name: (1 - side, column) for name, side, column in all_columns(later, earlier, self.suffix)}
        schema = {name: (earlier, later)[step].schema[column] for name, (step, column) in names.items()}
        tree = expressions.resolve(expressions.column_or(text, schema), schema, text)
        return compared(tree, lambda column: names[column.name], text)


@dataclass(frozen=True)
class Step:
    """A step of ``wr.seq``: a stream, and how many of its rows."""

    stream: Stream
    negated: bool = False
    repeated: bool = False


def no(stream: Stream) -> Step:
    """A step of ``wr.seq`` of which there must be no row."""
    return Step(stream, negated=True)


def some(stream: Stream) -> Step:
    """A step of ``wr.seq`` with one or more rows."""
    return Step(stream, repeated=True)


def seq(
    steps: Mapping[str, Stream | Step],
    *,
    on: str | Sequence[str] = (),
    within: Length | None = None,
    matching: str = "recent",
    where: str | None = None,
    skip: str = "to next row",
    columns: Mapping[str, str] | None = None,
    late: str | Sequence[str] | None = None,
    max_keys: int | None = None,
) -> Stream:
    """Rows that follow each other in time, one of each step: streams by name, ``wr.no(stream)`` or ``wr.some(stream)``.

    ``on``: columns that must be equal in all steps. ``within``: the greatest distance between the first and the last
    row. ``matching``: a row takes the latest sequence of the steps before it ("recent"), or the earliest that no other
    row has taken ("chronicle"; every row is in one sequence at most). ``where``: comparisons between steps, such as
    ``b.price > a.price``. ``skip``: after a match, "past last row" forgets all sequences of the key that have begun.

    Results have the columns of each step, named after both (``a_ts``); of a repeated step ``b_count`` and the first and
    last value of each column (``b_first_ts``). ``columns`` chooses others: ``{"paid": "sum(b.amount)", "id": "a.id"}``.
    A sequence that ends with ``wr.no`` or ``wr.some`` comes out when ``within`` is over; ``max_keys`` is as for
    ``join_asof``, and ``late`` as for ``join``, for all steps or one for each.

    >>> import windrow as wr
    >>> orders = wr.stream([{"t": 1, "id": 7}, {"t": 2, "id": 8}], progress="t", name="orders")
    >>> payments = wr.stream([{"t": 4, "id": 7}], progress="t", name="payments")
    >>> wr.seq({"o": orders, "p": payments}, on="id", within=5).collect().rows()
    [(1, 7, 4, 7)]
    >>> wr.seq({"o": orders, "p": wr.no(payments)}, on="id", within=5).collect().rows()
    [(2, 8)]
    """
    from windrow.api.query import merged
    from windrow.api.stream import Stream

    found = _steps(steps)
    nodes = [step.stream.node for step in found.values()]
    given.one_of(matching, "matching", MATCHINGS)
    given.one_of(skip, "skip", SKIPS)
    keys = [tuple(resolved(node, text) for node in nodes) for text in given.texts(on, "on")]
    node = sequence(
        nodes,
        [SeqStep(name, step.negated, step.repeated) for name, step in found.items()],
        keys,
        _default(found) if columns is None else _chosen(columns, found),
        matching=cast("Matching", matching),
        within=None if within is None else length(within, time_type(nodes[0]), "within", zero=True),
        conditions=[] if where is None else _conditions(given.text(where, "where"), found),
        skip=cast("Skip", skip),
        most_keys=None if max_keys is None else given.whole(max_keys, "max_keys"),
        late=late_policies("drop" if late is None else late, len(nodes)),
    )
    return Stream(node, merged([step.stream for step in found.values()]))


def _steps(steps: Mapping[str, Stream | Step]) -> dict[str, Step]:
    from windrow.api.stream import Stream

    if not isinstance(steps, Mapping):
        raise QueryError(
            f"seq() takes streams by the names of steps, as in {{'a': orders, 'b': payments}}, not {steps!r}"
        )
    found = {given.text(name, "step"): Step(s) if isinstance(s, Stream) else s for name, s in steps.items()}
    for name, step in found.items():
        if not isinstance(step, Step) or not isinstance(step.stream, Stream):
            raise QueryError(f"step {name!r} must be a stream, wr.no(stream) or wr.some(stream), not {steps[name]!r}")
    return found


def _default(steps: Mapping[str, Step]) -> list[Measure]:
    """All columns of all steps that have rows."""
    found: list[Measure] = []
    for number, (name, step) in enumerate(steps.items()):
        columns = [] if step.negated else list(step.stream.node.schema)
        if step.repeated:
            found.append(Measure(f"{name}_count", number, None, "count"))
            found += [Measure(f"{name}_{f}_{c}", number, c, f) for f in ("first", "last") for c in columns]
        else:
            found += [Measure(f"{name}_{c}", number, c) for c in columns]
    return found


def _chosen(columns: Mapping[str, str], steps: Mapping[str, Step]) -> list[Measure]:
    if not isinstance(columns, Mapping) or not columns:
        raise QueryError(f"columns={columns!r} must be columns of steps by name, as in {{'id': 'a.id'}}")
    return [_measure(given.text(name, "columns"), given.text(text, name), steps) for name, text in columns.items()]


def _measure(name: str, text: str, steps: Mapping[str, Step]) -> Measure:
    """``a.id``, or of a repeated step ``sum(b.amount)``."""
    tree = expressions.parse(text)
    function = ""
    if isinstance(tree, exp.Func) and not isinstance(tree, exp.Column):
        function, tree = (tree.sql_name() if not isinstance(tree, exp.Anonymous) else tree.name).lower(), tree.this
        if function not in OF_STEP:
            raise QueryError(
                f"{name}={text!r}: {function} is no function of the rows of a step; available: {listing(OF_STEP)}"
            )
    if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
        return Measure(name, _step(tree.table, steps, text), None, function)
    if not isinstance(tree, exp.Column) or not tree.table:
        raise QueryError(f"{name}={text!r} must be a column of a step, such as 'a.id', or a function of one")
    number = _step(tree.table, steps, text)
    return Measure(name, number, _column(tree, steps, number, text), function)


def _step(name: str, steps: Mapping[str, Step], text: str) -> int:
    if name not in steps:
        raise QueryError(f"{text!r}: there is no step {name!r}; available: {listing(steps)}")
    return list(steps).index(name)


def _column(tree: exp.Column, steps: Mapping[str, Step], number: int, text: str) -> str:
    schema = list(steps.values())[number].stream.node.schema
    if tree.name not in schema:
        raise QueryError(f"{text!r}: step {tree.table!r} has no column {tree.name!r}; available: {listing(schema)}")
    return tree.name


def _conditions(text: str, steps: Mapping[str, Step]) -> list[Compared]:
    def place(column: exp.Column) -> tuple[int, str]:
        if not column.table:
            raise QueryError(f"where={text!r}: say of which step {column.name!r} is, as in a.{column.name}")
        number = _step(column.table, steps, text)
        return number, _column(column, steps, number, text)

    return compared(expressions.parse(text), place, text)
