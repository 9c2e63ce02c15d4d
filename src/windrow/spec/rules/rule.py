"""Rules by which promises are made from what has arrived so far (Li 8.1), where the newest batch says too little.

A rule has two halves, so that it means the same in one process and on many. ``evidence`` is what a part of the stream
shows: small, and without an order among parts. ``promise`` adds evidence to what is remembered and says what follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from windrow.errors import InternalError
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, State

COUNT = "@count"  # of evidence: how many rows


class Rule(ABC):
    """How a stream progresses. ``columns``: those of the source that it looks at, besides the progressing one."""

    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # the columns that name the groups it can promise for, if it can
    claims = False  # whether promises are given by a user and should not go back, or estimated, so that they may

    @abstractmethod
    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        """What ``explain`` shows; ``span`` writes lengths of the attribute."""

    @abstractmethod
    def evidence(self, batch: Batch) -> Batch:
        """The evidence of a batch that is not empty."""

    @abstractmethod
    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        """What is remembered after some evidence, and what can be promised."""

    def asked(self, memory: State, given: Batch) -> tuple[State, int | None]:
        """The same after the answers of a source that was asked; only some rules ask (see ``Asked``)."""
        raise InternalError(f"{type(self).__name__} does not ask its source")

    def groups(self, memory: State) -> list[Punctuation]:
        """What can be promised about single groups."""
        return []

    def check(self, in_order: bool) -> str | None:
        """Why the rule cannot be used; ``in_order``: whether rows are seen in the order in which they arrive."""
        return None
