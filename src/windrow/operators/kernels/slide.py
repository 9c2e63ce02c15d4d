"""Sliding merges over an array of panes, at a cost per window that does not grow with the panes in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from windrow.aggregates.parts import Array, NumberPart

SLAB = 1 << 16  # cells that are slid over at once: half a megabyte per state column stays in a core's own cache


def slide(part: NumberPart, state: Sequence[Array], length: int, step: int) -> list[Array]:
    """Merge ``length`` consecutive rows, starting at every ``step``-th row. Rows are panes, columns are groups."""
    if length == 1:
        return [s[::step] for s in state]
    return (_by_difference if part.differential else _by_blocks)(part, state, length, step)


def _by_difference(part: NumberPart, state: Sequence[Array], length: int, step: int) -> list[Array]:
    """Full-differential aggregates (Li 6.2.3): one running merge, and what was there before a window taken off."""
    running = part.accumulate(state, axis=0)
    found = [r[length - 1 :: step].copy() for r in running]
    leaving = [r[step - 1 : max(0, len(r) - length) : step] for r in running]
    part.remove([f[1:] for f in found], leaving)
    return found


def _by_blocks(part: NumberPart, state: Sequence[Array], length: int, step: int) -> list[Array]:
    """Van Herk's and Gil and Werman's blocks, for all that cannot be subtracted.

    With running merges forward and backward inside blocks of ``length`` rows, every window is one merge of a suffix
    and a prefix. Three merges per pane, whatever the length, with no inverse, so nothing cancels: right for min and
    max, and as exact for floats as adding them up.
    """
    panes, groups = state[0].shape
    windows = max(0, panes - length + 1)
    found = [np.empty((-(-windows // step), groups), s.dtype) for s in state]
    wide = max(1, SLAB // length)  # groups at a time
    long = length * max(1, wide // max(1, groups))  # windows at a time: whole blocks
    for left, start in product(range(0, groups, wide), range(0, windows, long)):
        count = min(long, windows - start)
        skip = -start % step
        here = [s[start : start + count + length - 1, left : left + wide] for s in state]
        for column, merged in zip(found, _slab(part, here, length, count), strict=True):
            column[(start + skip) // step :, left : left + wide][: len(merged[skip::step])] = merged[skip::step]
    return found


def _slab(part: NumberPart, state: Sequence[Array], length: int, count: int) -> list[Array]:
    """The windows that start at the first ``count`` rows."""
    blocks = -(-count // length)
    cubes = [_cube(s, blocks, length, e) for s, e in zip(state, part.identity, strict=True)]
    suffix = part.accumulate([c[:, ::-1] for c in cubes], axis=1)
    found = [s[:, ::-1].reshape(blocks * length, -1)[:count] for s in suffix]
    cubes = [_cube(s[length:], blocks, length, e) for s, e in zip(state, part.identity, strict=True)]
    prefix = [p.reshape(blocks * length, -1)[: count - 1] for p in part.accumulate(cubes, axis=1)]
    for window, merged in zip(found, part.merge([f[1:] for f in found], prefix), strict=True):
        whole = window[::length].copy()  # these are blocks: the suffix is all of them
        window[1:] = merged
        window[::length] = whole
    return found


def _cube(array: Array, blocks: int, length: int, identity: float) -> Array:
    missing = blocks * length - len(array)
    array = array[: blocks * length]
    padded = np.pad(array, ((0, missing), (0, 0)), constant_values=identity) if missing > 0 else array
    return padded.reshape(blocks, length, array.shape[1])
