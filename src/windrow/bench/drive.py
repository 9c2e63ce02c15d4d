"""Rows and promises through an operator, with what it costs: time, time of promises, and the greatest state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import polars as pl

from windrow.operators.operator import Item, Operator
from windrow.progress import Punctuation

Step = tuple[pl.DataFrame, int]  # rows, and what is promised after them


@dataclass
class Cost:
    """Of one run, in seconds of CPU, so that other work on the machine does not show. ``latency``: from a promise to
    its results, on average over those that have any.
    """

    seconds: float = 0.0
    promises: list[float] = field(default_factory=list)
    bytes: int = 0
    results: int = 0

    @property
    def latency(self) -> float:
        return sum(self.promises) / max(1, len(self.promises))


def drive(feed: Operator, operator: Operator, steps: Iterable[Step], sizes: bool = False) -> Cost:
    """Feed rows and promises, one batch after another. ``sizes``: look at the state after each call, untimed."""
    cost = Cost()
    for rows, promised in steps:
        _timed(cost, operator, lambda batch=rows: feed.on_batch(0, batch))  # type: ignore[misc]
        cost.bytes = max(cost.bytes, operator.state_bytes() if sizes else 0)
        before, began = cost.results, cost.seconds
        _timed(cost, operator, lambda value=promised: feed.on_punctuation(0, Punctuation(value)))  # type: ignore[misc]
        if cost.results > before:
            cost.promises.append(cost.seconds - began)
        cost.bytes = max(cost.bytes, operator.state_bytes() if sizes else 0)
    return cost


def _timed(cost: Cost, operator: Operator, fed: Callable[[], list[Item]]) -> None:
    began = time.process_time()
    for item in fed():
        if isinstance(item, pl.DataFrame):
            operator.on_batch(0, item)
        elif isinstance(item, Punctuation):
            released = operator.on_punctuation(0, item)
            cost.results += sum(r.height for r in released if isinstance(r, pl.DataFrame))
    cost.seconds += time.process_time() - began
