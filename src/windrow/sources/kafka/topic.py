"""Topic: what is declared of a topic, and the columns that its messages have before their values are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from windrow.spec.messages import RAW

Starting = Literal["earliest", "latest"]
OnLoss = Literal["error", "continue"]


@dataclass(frozen=True)
class Topic:
    """The messages of a topic. ``columns``: what they look like as they come; their values are read by the query.

    ``streaming``: messages that come later are read, too, at most ``max_rows`` in a step. ``starting``: where the first
    step begins. ``on_loss``: what to do when messages are gone that have not been read. ``patience``: for how many
    seconds the brokers may be away. ``settings``: of the client, as librdkafka calls them.
    """

    brokers: str
    name: str
    streaming: bool = True
    starting: Starting = "earliest"
    max_rows: int | None = None
    on_loss: OnLoss = "error"
    patience: float = 60.0
    settings: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    columns: tuple[tuple[str, pl.DataType], ...] = field(default=tuple(RAW.items()), repr=False)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    def __str__(self) -> str:
        return f"topic {self.name} at {self.brokers}"
