"""A ring of real processes that are fed in real time, as the simulated one is in virtual time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from windrow.bench.ring_load import Load
from windrow.bench.ring_nodes import in_ring
from windrow.bench.ring_work import bare_hops
from windrow.hosts.ring.links import TcpLinks
from windrow.hosts.ring.simulated_outcome import CAME, FOUND
from windrow.operators.operator import Item
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.ring import Ring
from windrow.operators.ring.sliced_join import HEAD, Sent
from windrow.operators.ring.way import WAYS
from windrow.progress import Punctuation
from windrow.spec.batches import Batch

START = 0.5  # seconds until all nodes are there
WARM = 100  # rows and promises


@dataclass(frozen=True)
class Real:
    """``found``: as of a simulation; ``join``: seconds of a pair, as the nodes have measured it."""

    found: Batch
    join: float


class _Timed(Ring):
    """Notes when results are found. All processes of a machine have the same clock."""

    def _sent(self, sent: Iterator[Sent]) -> Iterator[Item]:
        for item in super()._sent(sent):
            yield item.with_columns(pl.lit(time.monotonic()).alias(FOUND)) if isinstance(item, pl.DataFrame) else item


def real(load: Load, nodes: int, wait: float, way: str = "ring", wishes: Wishes | None = None) -> Real:
    """Runs it in so many processes; ``wait``: seconds of a pair."""
    each = in_ring(nodes, _node, load, wait, way, wishes or Wishes(nodes, nodes))
    found = pl.concat([rows for rows, *_ in each if rows.height])
    return Real(found, sum(seconds for _, _, seconds in each) / sum(pairs for _, pairs, _ in each))


def hop(rounds: int) -> float:
    """Seconds of a message from one process to another, the median of many."""
    times = sorted(in_ring(2, bare_hops, rounds)[0])
    return times[len(times) // 2] / 2


def _node(links: TcpLinks, load: Load, wait: float, way: str, wishes: Wishes) -> tuple[Batch, int, float]:
    """What one process does; returns its results, and how many pairs it has tried in which time."""
    _warm_up(load)
    joining, stamps = load.joining(wait), [f"{CAME}{stream}" for stream in range(load.ways)]
    columns = tuple((*own, stamp) for own, stamp in zip(joining.columns, stamps, strict=True))
    ring = _Timed(replace(joining, columns=columns), wishes, way=WAYS[way])
    ring.connect(links, clock=time.perf_counter)
    items = _feed(ring, links, load) if links.node == HEAD else _follow(ring, links)
    found = [item for item in items if isinstance(item, pl.DataFrame)]
    work = ring.nodes[links.node].work
    if not found:
        return pl.DataFrame(), work.pairs, work.seconds
    came = pl.max_horizontal(stamps).alias(CAME)
    return pl.concat(found).with_columns(came).drop(stamps), work.pairs, work.seconds


def _warm_up(load: Load) -> None:
    """The first call of anything takes long."""
    ring = Ring(load.joining(), Wishes(1, 1), clock=time.perf_counter)
    for _, port, item in load.come()[:WARM]:
        if isinstance(item, Punctuation):
            ring.on_punctuation(port, item)
        else:
            ring.on_batch(port, item)


def _feed(ring: Ring, links: TcpLinks, load: Load) -> list[Item]:
    """Rows as they come. What comes during a round waits for the next one."""
    come, at, found = load.come(), 0, list[Item]()
    began = time.monotonic() + START
    while at < len(come):
        time.sleep(max(0.0, began + come[at].at - time.monotonic()))
        now = time.monotonic() - began
        while at < len(come) and come[at].at <= now:
            each = come[at]
            at += 1
            if isinstance(each.item, Punctuation):
                ring.on_punctuation(each.port, each.item)
            else:
                stamp = pl.lit(each.at, pl.Float64).alias(f"{CAME}{each.port}")
                ring.on_batch(each.port, each.item.with_columns(stamp))
        found += ring.on_flush()
    if links.nodes > 1:
        links.send(HEAD + 1, Message(Kind.MARK, values={"began": began}))
    return [_since(item, began) for item in found]


def _follow(ring: Ring, links: TcpLinks) -> list[Item]:
    """Rounds, until the head says that there will be no more."""
    found = list[Item]()
    while links.next_kind() != Kind.MARK:
        found += ring.on_flush()
    mark = links.receive(wait=True)
    assert mark is not None
    if links.node + 1 < links.nodes:
        links.send(links.node + 1, mark)
    return [_since(item, mark.values["began"]) for item in found]


def _since(item: Item, began: float) -> Item:
    return item.with_columns(pl.col(FOUND) - began) if isinstance(item, pl.DataFrame) else item
