"""The state of an operator that is made of others: the chunks of each part under its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from windrow.spec.batches import State

Chunk = TypeVar("Chunk")


def together(parts: Mapping[str, Mapping[str, Chunk]]) -> dict[str, Chunk]:
    """The chunks of all parts, each under the name of its part.

    >>> together({"a": {"0": 1}, "b": {"0": 2}})
    {'a/0': 1, 'b/0': 2}
    """
    return {f"{part}/{name}": chunk for part, chunks in parts.items() for name, chunk in chunks.items()}


def part_of(state: State, part: str) -> State:
    """The chunks of one part, as it named them."""
    prefix = f"{part}/"
    return {name.removeprefix(prefix): chunk for name, chunk in state.items() if name.startswith(prefix)}
