"""Sliding merges over an array of panes, at a cost per window that does not grow with the panes in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.aggregates.parts import Array, NumberPart


def slide(part: NumberPart, state: Sequence[Array], length: int, step: int) -> list[Array]:
    """Merge ``length`` consecutive rows, starting at every ``step``-th row. Rows are panes, columns are groups.

    Van Herk's and Gil and Werman's blocks: with running merges forward and backward inside blocks of ``length``
    rows, every window is one merge of a suffix and a prefix. Three merges per pane, whatever the length, with no
    inverse, so nothing cancels: right for min and max, and as exact for floats as adding them up.
    """
    if length == 1:
        return [s[::step] for s in state]
    panes, groups = state[0].shape
    blocks = -(-panes // length)
    padded = [_padded(s, blocks * length, e) for s, e in zip(state, part.identity, strict=True)]
    cubes = [p.reshape(blocks, length, groups) for p in padded]
    prefix = [p.reshape(-1, groups) for p in part.accumulate(cubes, axis=1)]
    reverse = part.accumulate([c[:, ::-1] for c in cubes], axis=1)
    suffix = [r[:, ::-1].reshape(-1, groups) for r in reverse]
    starts = np.arange(0, panes - length + 1, step)
    aligned = starts % length == 0  # the suffix is the whole window
    merged = part.merge([s[starts] for s in suffix], [p[starts + length - 1] for p in prefix])
    return [np.where(aligned[:, None], s[starts], m) for s, m in zip(suffix, merged, strict=True)]


def _padded(array: Array, rows: int, identity: float) -> Array:
    missing = rows - len(array)
    return np.pad(array, ((0, missing), (0, 0)), constant_values=identity) if missing else array
