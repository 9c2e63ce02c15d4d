"""Chunks: partial aggregates kept by time slice, so that a checkpoint writes what changed and frees what is past."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK

CHUNKS_PER_WINDOW = 16  # more: finer freeing, but more and smaller frames to write


class Chunks:
    """A small log-structured store: each chunk is a stack of frames, the newest on top.

    A new frame is pushed; while the frame below the top is not at least twice as large as the top, the two are
    merged. So a frame is rewritten O(log n) times, a chunk has O(log n) frames, and a batch that touches a large
    chunk with a few rows writes a few rows.

    ``together``: ``combine`` leaves a column ``@chunk`` alone, so that frames of many chunks are merged by one call.
    """

    def __init__(self, combine: Callable[[Batch], Batch], together: bool = False) -> None:
        self.combine = combine
        self.together = together
        self.stacks: dict[int, list[Batch]] = {}
        self._dirty: set[str] = set()
        self._stored: set[str] = set()

    def append(self, frame: Batch) -> None:
        """Add partials; column ``@chunk`` says where."""
        parts = _by_chunk(frame)
        while self.together and len(parts) > 1:
            small = [c for c in parts if (stack := self.stacks.get(c)) and stack[-1].height < 2 * parts[c].height]
            if len(small) < 2:
                break
            frames = [f for c in small for f in (self._pop(c), parts.pop(c))]
            self._push_all(parts)
            place = pl.Series(CHUNK, np.repeat(np.repeat(small, 2), [f.height for f in frames]))
            parts = _by_chunk(self.combine(pl.concat(frames).with_columns(place)))
        self._push_all(parts)

    def _push_all(self, parts: dict[int, Batch]) -> None:
        for chunk, part in parts.items():
            self.push(chunk, part)

    def push(self, chunk: int, frame: Batch) -> None:
        """Add partials to one chunk."""
        stack = self.stacks.setdefault(chunk, [])
        while stack and stack[-1].height < 2 * frame.height:
            frame = self.combine(pl.concat([self._pop(chunk), frame]))
        self._dirty.add(f"{chunk}.{len(stack)}")
        stack.append(frame)

    def _pop(self, chunk: int) -> Batch:
        stack = self.stacks[chunk]
        self._dirty.add(f"{chunk}.{len(stack) - 1}")
        return stack.pop()

    def replace(self, chunk: int, frame: Batch) -> None:
        """Replace everything in a chunk by one frame."""
        self._dirty.update(f"{chunk}.{level}" for level in range(len(self.stacks.pop(chunk, ()))))
        if frame.height:
            self.push(chunk, frame)

    def below(self, chunk: int) -> list[Batch]:
        """All frames of the chunks with a smaller number, oldest chunk first."""
        return [frame for c in sorted(self.stacks) if c < chunk for frame in self.stacks[c]]

    def free_below(self, chunk: int) -> None:
        """Forget the chunks with a smaller number."""
        for c in [c for c in self.stacks if c < chunk]:
            self._dirty.update(f"{c}.{level}" for level in range(len(self.stacks.pop(c))))

    def first(self) -> int | None:
        """The smallest chunk that holds anything."""
        return min(self.stacks, default=None)

    def height(self) -> int:
        """The number of rows in all frames."""
        return sum(frame.height for stack in self.stacks.values() for frame in stack)

    def snapshot(self) -> State:
        return dict(self._named())

    def changes(self) -> Changes:
        current = dict(self._named())
        # A frame that came and went since the last call was never stored: it needs no deletion.
        found: Changes = {name: current.get(name) for name in self._dirty if name in current or name in self._stored}
        self._dirty.clear()
        self._stored = set(current)
        return dict(sorted(found.items()))

    def restore(self, state: State) -> None:
        self.stacks = {}
        for name in sorted(state, key=_place):
            chunk, _level = _place(name)
            self.stacks.setdefault(chunk, []).append(state[name])
        self._dirty.clear()
        self._stored = set(state)

    def state_bytes(self) -> int:
        return int(sum(frame.estimated_size() for stack in self.stacks.values() for frame in stack))

    def _named(self) -> Iterator[tuple[str, Batch]]:
        for chunk, stack in self.stacks.items():
            for level, frame in enumerate(stack):
                yield f"{chunk}.{level}", frame


def _by_chunk(frame: Batch) -> dict[int, Batch]:
    parts = frame.partition_by(CHUNK, include_key=False, as_dict=True)
    return {int(chunk): part for (chunk,), part in parts.items()}


def _place(name: str) -> tuple[int, int]:
    chunk, level = name.rsplit(".", 1)
    return int(chunk), int(level)
