"""Lift: the first step of user-defined aggregates, row by row, so that a row that fails leaves by the side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from windrow.aggregates import Failed, UserAggregate
from windrow.aggregates.user import calling
from windrow.errors import ResultError
from windrow.operators.operator import Item, Side, Stateless
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS, REASON, ROW


class Lift(Stateless):
    """Each column holds the argument of a user's aggregate, and then its lifted state. NULL is not lifted.

    >>> square = UserAggregate("squares", lambda x: x * x, lambda a, b: a + b, lambda s: s, pl.Int64(), pl.Int64())
    >>> Lift([("x", square)]).on_batch(0, pl.DataFrame({"x": [3, None]}))[0]["x"].to_list()
    [9, None]
    """

    def __init__(
        self,
        columns: Sequence[tuple[str, UserAggregate]],
        keys: Sequence[str] = (),
        stops: bool = False,
        window_at: Callable[[int], Any] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.keys = tuple(keys)
        self.stops = stops
        self.window_at = window_at

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        reasons: dict[int, str] = {}
        lifted = [self._lifted(batch, column, user, reasons) for column, user in self.columns]
        done = batch.with_columns(lifted)
        if not reasons:
            return [done]
        failed = pl.Series([row in reasons for row in range(batch.height)])
        why = pl.Series(REASON, [reasons[row] for row in sorted(reasons)])
        rows = batch.filter(failed)
        rows = rows.select(ROW).unnest(ROW) if ROW in batch.columns else rows
        return [done.filter(~failed), Side("bad", len(reasons), rows.with_columns(why))]

    def _lifted(self, batch: Batch, column: str, user: UserAggregate, reasons: dict[int, str]) -> pl.Series:
        found: list[Any] = []
        for row, value in enumerate(batch[column].to_list()):
            try:
                with calling(user.name, "lift"):
                    found.append(None if value is None else user.lift(value))
            except Failed as failure:
                found.append(None)
                reasons[row] = str(failure)
                if self.stops:
                    raise ResultError(f"{failure}, at {self._place(batch, row)}") from failure.cause
        try:
            return pl.Series(column, found, dtype=user.state)
        except (TypeError, pl.exceptions.PolarsError) as error:
            raise ResultError(
                f"aggregate {user.name!r}: lift returned a state that is not {user.state}: {error}"
            ) from error

    def _place(self, batch: Batch, row: int) -> dict[str, Any]:
        found = {k: batch[k][row] for k in self.keys}
        if self.window_at is not None:
            found["window"] = self.window_at(int(batch[PROGRESS][row]))
        return found
