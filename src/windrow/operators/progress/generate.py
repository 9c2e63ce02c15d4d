"""Generate: promises by a rule, in one place, or from the evidence of many parts of a stream and one judge."""

from __future__ import annotations

from windrow.operators.operator import Forwarding, Item, Side
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.operators.progress.punctuate import Punctuate, ignored
from windrow.progress import Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.rules import Rule


class Judge(Forwarding):
    """Turns evidence into promises. All judges that get the same evidence make the same promises."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.memory: State = {}
        self.promises = Promises()
        self._saved: State = {}

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        self.memory, value = self.rule.promise(self.memory, batch)
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


class Generate(Punctuate):
    """Witness and judge of a whole stream.

    >>> import polars as pl
    >>> from windrow.spec.rules import RowSlack
    >>> Generate(RowSlack(1)).on_batch(0, pl.DataFrame({"@t": [5, 9, 7]}))[1]
    Punctuation(value=9, group=None)
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__(None)
        self.judge = Judge(rule)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        passed = super().on_batch(port, batch)
        return [*passed, *self.judge.on_batch(0, self.judge.rule.evidence(batch))] if batch.height else passed

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """A promise from upstream is as good as one of our own."""
        counted = ignored(self.judge.promises, promise)
        return super().on_punctuation(port, promise) if self.judge.promises.give(promise) else list(counted)

    def snapshot(self) -> State:
        return {**super().snapshot(), **{f"judge/{k}": v for k, v in self.judge.snapshot().items()}}

    def changes(self) -> Changes:
        return {**super().changes(), **{f"judge/{k}": v for k, v in self.judge.changes().items()}}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.judge.restore({k.removeprefix("judge/"): v for k, v in state.items() if k.startswith("judge/")})

    def state_bytes(self) -> int:
        return self.judge.state_bytes()
