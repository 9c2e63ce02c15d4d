"""Generate: promises by a rule, in one place, or from the evidence of many parts of a stream and one judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.operators.operator import Forwarding, Item, Side
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.operators.progress.punctuate import Punctuate, ignored
from windrow.progress import Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.rules import ASKED, Answer, Asked, Rule, answers


class Judge(Forwarding):
    """Turns evidence into promises. All judges that get the same evidence make the same promises."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.memory: State = {}
        self.promises = Promises()
        self._saved: State = {}

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        """Evidence, or the answers of a source that was asked."""
        says = self.rule.asked if ASKED in batch.columns else self.rule.promise
        self.memory, value = says(self.memory, batch)
        found = [Punctuation(value)] if value is not None else []
        sides = [side for promise in found for side in ignored(self.promises, promise)] if self.rule.claims else []
        news = [promise for promise in [*found, *self.rule.groups(self.memory)] if self.promises.give(promise)]
        return [*sides, *news]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [promise] if self.promises.give(promise) else []

    def snapshot(self) -> State:
        return {**self.memory, "promised": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        now = self.snapshot()
        news: Changes = {k: v for k, v in now.items() if k not in self._saved or not v.equals(self._saved[k])}
        self._saved = now
        return news

    def restore(self, state: State) -> None:
        self.memory = dict(state)
        saved = self.memory.pop("promised", None)
        self.promises = Promises() if saved is None else promises_of(saved).get(0, Promises())
        self._saved = dict(state)

    @property
    def sees(self) -> bool:
        """Whether it gets evidence, not only answers."""
        return not isinstance(self.rule, Asked) or self.rule.rule is not None

    def hear(self) -> None:
        """There are rows: if the source counted as idle, it does no longer."""
        if isinstance(self.rule, Asked) and self.rule.is_quiet(self.memory):
            self.memory, _ = self.rule.asked(self.memory, answers([Answer(None, None, False, True)]))

    def state_bytes(self) -> int:
        return int(sum(frame.estimated_size() for frame in self.memory.values()))


class Witness(Punctuate):
    """Reports what its part of a stream shows, and promises nothing: it does not see the other parts."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(None)
        self.rule = rule

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        passed = super().on_batch(port, batch)
        return [*passed, Side("evidence", 0, self.rule.evidence(batch))] if batch.height else passed


class Judging(Punctuate):
    """The base of operators with a judge of their own, whose state is part of theirs."""

    def __init__(self, slack: int | None, rule: Rule) -> None:
        super().__init__(slack)
        self.judge = Judge(rule)

    def snapshot(self) -> State:
        return {**super().snapshot(), **_judged(self.judge.snapshot())}

    def changes(self) -> Changes:
        return {**super().changes(), **_judged(self.judge.changes())}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.judge.restore(_of_judge(state))

    def state_bytes(self) -> int:
        return self.judge.state_bytes()


class Asking(Judging):
    """Promises from slack, and from the answers of its source, which come on port 1.

    >>> from windrow.spec.rules import Answer, answers
    >>> Asking(3, Asked(None, delay=5)).on_batch(1, answers([Answer(None, 100, True, False)]))
    [Punctuation(value=95, group=None)]
    """

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if port != 1:
            if batch.height:
                self.judge.hear()
            return super().on_batch(port, batch)
        found = [item for item in self.judge.on_batch(0, batch) if isinstance(item, Punctuation)]
        return [promise for promise in found if self._gives(promise)]

    def _gives(self, promise: Punctuation) -> bool:
        news = self.promises.give(promise)
        self._saved = self._saved and not news
        return news


class Generate(Judging):
    """Witness and judge of a whole stream. Answers of its source come on port 1.

    >>> import polars as pl
    >>> from windrow.spec.rules import RowSlack
    >>> Generate(RowSlack(1)).on_batch(0, pl.DataFrame({"@t": [5, 9, 7]}))[1]
    Punctuation(value=9, group=None)
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__(None, rule)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if port == 1:
            return self.judge.on_batch(0, batch)
        passed = super().on_batch(port, batch)
        if not batch.height:
            return passed
        self.judge.hear()
        return [*passed, *self.judge.on_batch(0, self.judge.rule.evidence(batch))]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise from upstream is as good as one of our own."""
        counted = ignored(self.judge.promises, promise)
        return super().on_punctuation(port, promise) if self.judge.promises.give(promise) else list(counted)


def _judged(state: Mapping[str, Any]) -> dict[str, Any]:
    """The chunks of a judge among those of the operator that it is part of."""
    return {f"judge/{k}": v for k, v in state.items()}


def _of_judge(state: State) -> State:
    return {k.removeprefix("judge/"): v for k, v in state.items() if k.startswith("judge/")}
