"""The state table as the paper prints it: one row for each state, and for a fork one for each branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from windrow.graph.states import State
from windrow.graph.strategies import Kind

NOBODY = "-"


@dataclass(frozen=True)
class Row:
    """A state, the states before and after it, and the name of the rules that lead from it to another."""

    state: str
    pred: str
    succ: str
    transition: str


@dataclass(frozen=True)
class Table:
    """Rows of a state table; ``str`` gives it with aligned columns."""

    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [("state", "pred", "succ", "transition")]
        lines += [(row.state, row.pred, row.succ, row.transition) for row in self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(4)]
        padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(line.rstrip() for line in padded)


def table_of(states: Iterable[State]) -> Table:
    """The table of these states, the fork of a state after it."""
    listed: list[State] = []
    for state in states:
        listed.append(state)
        listed += [succ for succ in state.succs if succ.kind is Kind.FORK]
    names = _names(listed)
    rows: list[Row] = []
    for state in listed:
        name = names[id(state)]
        pred = ", ".join(dict.fromkeys(names[id(p)] for _, p in state.preds)) or NOBODY
        transition = f"{state.strategy}-{state.kind.value}"
        succs = [names[id(s)] for s in state.succs] or [NOBODY]
        rows += [Row(name, pred, succ, transition) for succ in succs]
    return Table(tuple(rows))


def _names(states: Iterable[State]) -> dict[int, str]:
    """Labels as far as they name one state only, else whole names."""
    listed = list(states)
    labels = Counter(s.node.label for s in listed if s.node is not None)
    forks = [s for s in listed if s.kind is Kind.FORK]
    found: dict[int, str] = {}
    for state in listed:
        if state.node is not None:
            found[id(state)] = state.node.label if labels[state.node.label] == 1 else state.node.name
    for fork in forks:
        (_, before) = fork.preds[0]
        found[id(fork)] = "fork" if len(forks) == 1 else f"fork of {found[id(before)]}"
    return found
