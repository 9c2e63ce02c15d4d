"""ByFunction: promises by a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.progress import START
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.spec.rules.rule import COUNT, Rule
from windrow.spec.time import Bounds, physical, reach


@dataclass(frozen=True)
class Seen:
    """What a user's function is given: of the newest rows, and of all."""

    rows: int
    least: Any
    greatest: Any
    all_rows: int
    all_greatest: Any
    promised: Any


@dataclass(frozen=True)
class ByFunction(Rule):
    """Whatever a user's function returns, as a value of the progressing attribute; None promises nothing new."""

    function: Callable[[Seen], Any] = field(compare=False)
    name: str
    dtype: pl.DataType
    claims = True

    def says(self, attribute: str, span: Callable[[int], str]) -> str:
        return f"promises what the function {self.name} says"

    def evidence(self, batch: Batch) -> Batch:
        at = batch[PROGRESS]
        return pl.DataFrame({COUNT: [batch.height], "least": [at.min()], "greatest": [at.max()]})

    def promise(self, memory: State, evidence: Batch) -> tuple[State, int | None]:
        rows, greatest, promised = memory["now"].row(0) if "now" in memory else (0, START, START)
        if not evidence.height:
            return memory, None
        count, least, newest = int(evidence[COUNT].sum()), evidence["least"].min(), evidence["greatest"].max()
        rows, greatest = rows + count, max(greatest, int(newest))  # type: ignore[arg-type]
        seen = Seen(count, self._value(least), self._value(newest), rows, self._value(greatest), self._value(promised))
        answer = self._answer(seen)
        promised = max(promised, START if answer is None else answer)
        return {"now": pl.DataFrame({"rows": [rows], "greatest": [greatest], "promised": [promised]})}, answer

    def _value(self, at: Any) -> Any:
        return None if at == START else Bounds(self.dtype).column("t", np.array([at]))[0]

    def _answer(self, seen: Seen) -> int | None:
        try:
            answer = self.function(seen)
        except Exception as error:
            raise ResultError(
                f"the function {self.name} that makes promises failed on {seen}: {type(error).__name__}: {error}"
            ) from error
        if answer is None:
            return None
        if not self._fits(answer):
            raise ResultError(
                f"the function {self.name} that makes promises returned {answer!r}: it must return a value of type "
                f"{self.dtype}, or None"
            )
        at = answer if isinstance(answer, int) else self._physical(answer)
        if abs(at) >= reach(self.dtype)[0]:
            raise ResultError(f"the function {self.name} that makes promises returned {answer!r}: it is out of range")
        return int(at)

    def _physical(self, answer: Any) -> int:
        found = pl.DataFrame({"t": [answer]}).select(physical(pl.col("t").cast(self.dtype), self.dtype))
        return int(found.item())

    def _fits(self, answer: Any) -> bool:
        if self.dtype.is_integer():
            return isinstance(answer, int) and not isinstance(answer, bool)
        return isinstance(answer, datetime) if isinstance(self.dtype, pl.Datetime) else type(answer) is date
