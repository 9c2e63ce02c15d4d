"""BlockScan: the merges of entries inside blocks of time, forward from the start and backward from the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.aggregates.objects import ObjectPart
from windrow.aggregates.parts import Array, NumberPart
from windrow.aggregates.user import locating
from windrow.operators.kernels.segments import Scanned, lasts, picked, scan, scan_back, segments
from windrow.operators.windows.by_tuple import GROUP, PART
from windrow.progress import START
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Ints

LAST = "@last"  # the last progress value of the group in the block


@dataclass
class Rows:
    """What a promise works on, sorted by group and time: what is left of the block before, and entries behind it.

    ``front`` rows hold, at the progress value of an entry that windows have passed, the merge of all entries behind it
    in its block. The others are entries; ``at`` is where each row is among them, and ``segment`` their group and block.
    """

    frame: Batch
    group: Ints
    part: Ints
    times: Ints
    blocks: Ints
    front: Array
    at: Ints
    segment: Ints
    raw: list[list[Array]]
    prefix: list[list[Array]]
    suffix: list[list[Array]]


class BlockScan:
    """Blocks are as long as ``range``. ``place`` says where a user's function failed.

    Numbers and objects are ``merged``. ``lists`` are not: their running merges are never needed, as windows
    put the lists of their entries together.
    """

    def __init__(
        self,
        range: int,
        keys: Sequence[str],
        aggregates: Partials,
        place: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self.range = range
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.place = place
        self.merged: list[Scanned] = [p for p in aggregates.parts if isinstance(p, (NumberPart, ObjectPart))]
        self.lists = [p for p in aggregates.parts if not isinstance(p, (NumberPart, ObjectPart))]
        self.blank = [pl.lit([], t).alias(c) for p in self.lists for c, t in zip(p.columns, p.dtypes, strict=True)]

    def scanned(self, frame: Batch, now: int, complete: bool = False) -> Rows:
        group, part = (frame[c].to_numpy().astype(np.int64) for c in (GROUP, PART))
        times = frame[PROGRESS].to_numpy()
        blocks = times // self.range
        front = blocks < now
        at = np.where(front, -1, np.cumsum(~front) - 1)
        segment = segments(group[~front], blocks[~front])
        raw = [part.arrays(frame) for part in self.merged]
        entries = [[state[~front] for state in each] for each in raw]
        with locating(lambda at: self.place(frame.filter(~front).select(self.keys).row(at["@row"], named=True))):
            prefix = [scan(p, s, segment) for p, s in zip(self.merged, entries, strict=True)]
            suffix = entries  # the suffixes of an incomplete block are not used
            if complete:
                suffix = [scan_back(p, s, segment) for p, s in zip(self.merged, entries, strict=True)]
        return Rows(frame, group, part, times, blocks, front, at, segment, raw, prefix, suffix)

    def completed(self, rows: Rows, block: int) -> tuple[Batch, Batch]:
        """The entries of a complete block, each with the merge of those behind it, by time; and the merge of all."""
        at = np.flatnonzero(~rows.front & (rows.blocks == block))
        segment = rows.segment[rows.at[at]]
        ends = np.append(lasts(segment), 0)
        final = ends[np.searchsorted(ends[:-1], np.arange(len(at)))] if len(at) else at  # the last of its segment
        last = pl.Series(LAST, rows.times[at][final], dtype=pl.Int64)
        behind = np.where(final > np.arange(len(at)), rows.at[at] + 1, -1)
        columns = [last]
        for part, suffix in zip(self.merged, rows.suffix, strict=True):
            columns += part.series(picked(part, suffix, behind))
        kept = rows.frame.select(PROGRESS, *self.keys, *(c for p in self.lists for c in p.columns))[at]
        order = [PROGRESS, *self.keys, *self.aggregates.columns, LAST]
        totals = self.states(rows, at[ends[:-1]], rows.prefix).with_columns(pl.col(PROGRESS).alias(LAST))
        totals = totals.with_columns(pl.lit(START, pl.Int64).alias(PROGRESS)).select(order)
        return kept.hstack(columns).select(order).sort(PROGRESS), totals

    def states(self, rows: Rows, at: Ints, state: list[list[Array]]) -> Batch:
        """Keys and progress values of some rows, with other states; entries' lists left out."""
        places = rows.at[at]
        columns = [s for p, v in zip(self.merged, state, strict=True) for s in p.series(picked(p, v, places))]
        frame = self.without_lists(rows.frame.select(PROGRESS, *self.keys)[at].hstack(columns))
        return frame.select(PROGRESS, *self.keys, *self.aggregates.columns)

    def without_lists(self, frame: Batch) -> Batch:
        return frame.with_columns(self.blank) if self.blank else frame

    def newest(self, frame: Batch) -> Batch:
        """The last of each group, in the order in which they were put there."""
        return frame.unique(self.keys, keep="last", maintain_order=True) if self.keys else frame.tail(1)
