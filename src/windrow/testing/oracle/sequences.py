"""The rows of sequences: all rows of a key in order, one after the other, against all sequences that have begun."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import Any

from windrow.logical.nodes import AggregateCall, Compared, Measure, Sequence
from windrow.testing.oracle.expressions.cells import Cell, alike
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.folds import fold
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.keys import key_cells, key_of, place
from windrow.testing.oracle.values import Row, order
from windrow.testing.oracle.windows import fitted

Event = tuple[int, int, Row]  # its time, its step, and the row
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def sequence_rows(node: Sequence, given: Given) -> Iterator[Row]:
    """The matches of each key, and of an outer sequence the rows of the last step that find none.

    A row with a NULL key takes part in nothing: a row of the last step comes out alone if rows can.
    """
    keys = key_cells(node.on, [member.schema for member in node.members])
    events: dict[Hashable, list[Event]] = {}
    for step, member in enumerate(node.members):
        for row in given.rows_of(member, given.over(by_rows=False)):
            key = key_of(keys[step], row)
            if key is not None:
                events.setdefault(key, []).append((row[member.progress or ""], step, row))
            elif node.outer and step == len(node.steps) - 1:
                yield _measured(node, {step: [row]})
    rules = _Rules(node)
    for of_key in events.values():
        for rows in _Key(rules).matches(_in_order(node, of_key)):
            yield _measured(node, rows)


def _in_order(node: Sequence, events: list[Event]) -> list[Event]:
    """By time. Of equal times an earlier step first, or a later one if two steps read the same stream; then by all
    columns."""

    def at(event: Event) -> tuple[Any, ...]:
        time, step, row = event
        return time, -step if node.strict else step, place(row, node.members[step].schema)

    return sorted(events, key=at)


class _Begun:
    """A sequence that has rows of its first steps.

    ``number``: sequences are counted as they begin. ``made_from``: the number of what it was before its last step.
    """

    def __init__(self, number: int, start: int, rows: dict[int, list[Row]], made_from: int = 0) -> None:
        self.number, self.start, self.rows, self.made_from = number, start, rows, made_from

    def with_row(self, number: int, step: int, row: Row) -> _Begun:
        """A longer one; it does not change when this one does."""
        rows = {each: list(taken) for each, taken in self.rows.items()}
        return _Begun(number, self.start, {**rows, step: [row]}, self.number)


class _Rules:
    """When a sequence can take a row: in time, and its conditions are true."""

    def __init__(self, node: Sequence) -> None:
        self.node = node
        self.cells = {condition: self._compared(condition) for condition in node.conditions}

    def _compared(self, condition: Compared) -> list[Cell]:
        left, right = (self.node.members[s].schema for s in (condition.left_step, condition.right_step))
        return alike(evaluate(condition.left, left), evaluate(condition.right, right))

    def can_take(self, begun: _Begun, event: Event) -> bool:
        time, step, row = event
        if self.node.within is not None and time - begun.start > self.node.within:
            return False
        due = [c for c in self.node.conditions if c.right_step == step]
        return all(self._true(c, earlier, row) for c in due for earlier in begun.rows[c.left_step])

    def _true(self, condition: Compared, earlier: Row, row: Row) -> bool:
        """NULL is not true; NaN equals NaN and is greater than every number."""
        left, right = self.cells[condition]
        a, b = left.of(earlier), right.of(row)
        return a is not None and b is not None and TESTS[condition.comparison](order(a), order(b))


class _Key:
    """One key: ``open[i]`` are the sequences that have rows of the first i steps, in the order in which they got there.

    Negated steps are not counted in i.
    """

    def __init__(self, rules: _Rules) -> None:
        self.rules, self.node = rules, rules.node
        self.recent = self.node.matching == "recent"
        self.last = len(self.node.taken)
        self.open: list[list[_Begun]] = [[] for _ in range(self.last + 1)]
        self.numbers = count(1)

    def matches(self, events: list[Event]) -> Iterator[dict[int, list[Row]]]:
        """The rows of each step, for each match. What can still be undone or grow is a match at the end of all."""
        for event in events:
            yield from self._next(event)
        if self.node.waits:
            yield from (begun.rows for begun in self.open[self.last])

    def _next(self, event: Event) -> Iterator[dict[int, list[Row]]]:
        _time, step, row = event
        if self.node.steps[step].negated:
            self._ended(event)
        elif self.node.steps[step].repeated:
            self._repeated(event)
        elif step == self.node.taken[0]:
            self.open[1].append(self._first(event))
        else:
            longer = self._longer(event)
            if step == self.node.taken[-1] and not self.node.waits:
                yield from self._matched(longer, step, row)
            elif longer is not None:
                self.open[self._number(step)].append(longer)

    def _number(self, step: int) -> int:
        """How many steps with rows there are up to this one."""
        return sum(1 for taken in self.node.taken if taken <= step)

    def _able(self, number: int, event: Event) -> list[_Begun]:
        """The sequences that can take a row, the one to be preferred last."""
        found = [begun for begun in self.open[number] if self.rules.can_take(begun, event)]
        return found if self.recent else found[::-1]

    def _ended(self, event: Event) -> None:
        """A row of a negated step ends all sequences before it; of "chronicle" one."""
        number = self._number(event[1])
        able = self._able(number, event)
        affected = able if self.recent else able[-1:]
        self.open[number] = [begun for begun in self.open[number] if begun not in affected]

    def _first(self, event: Event) -> _Begun:
        time, step, row = event
        return _Begun(next(self.numbers), time, {step: [row]})

    def _longer(self, event: Event) -> _Begun | None:
        """The sequence that takes a row, with it. Of "chronicle" no other row can take it then."""
        _time, step, row = event
        number = self._number(step)
        able = self._able(number - 1, event)
        if not able:
            return None
        if not self.recent:
            self.open[number - 1].remove(able[-1])
        return able[-1].with_row(next(self.numbers), step, row)

    def _repeated(self, event: Event) -> None:
        """A further row of a sequence that has some of this step, or the first one."""
        _time, step, row = event
        number = self._number(step)
        growing = self._able(number, event)
        if growing and not (self.recent and self._newer_than(growing[-1], event)):
            growing[-1].rows[step].append(row)
        elif number == 1:
            self.open[1].append(self._first(event))
        elif (longer := self._longer(event)) is not None:
            self.open[number].append(longer)

    def _newer_than(self, growing: _Begun, event: Event) -> bool:
        """Whether the sequence that a row of a repeated step would begin with got there after the one that the growing
        sequence was made from."""
        able = self._able(self._number(event[1]) - 1, event)
        return bool(able) and able[-1].number > growing.made_from

    def _matched(self, longer: _Begun | None, step: int, row: Row) -> Iterator[dict[int, list[Row]]]:
        if longer is not None:
            yield longer.rows
            if self.node.skip == "past last row":
                self.open = [[] for _ in self.open]
        elif self.node.outer:
            yield {step: [row]}


def _measured(node: Sequence, rows: dict[int, list[Row]]) -> Row:
    """A result row; NULL for all columns of a step that has no row."""
    return {m.name: _measure(node, m, rows[m.step]) if m.step in rows else None for m in node.measures}


def _measure(node: Sequence, measure: Measure, rows: list[Row]) -> Any:
    """The first and the last are those of the first and the last row, be they NULL; the others leave NULL out."""
    if measure.function in ("", "first", "last"):
        return rows[-1 if measure.function == "last" else 0][measure.column or ""]
    call = AggregateCall(measure.name, measure.function, None)
    return fitted(call, fold(measure.function, measure.column, rows), node.schema[measure.name])
