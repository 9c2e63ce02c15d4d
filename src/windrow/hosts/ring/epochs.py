"""Rounds and epochs of a ring that runs without end.

The head reads what has come, and a round takes it through the ring. Between two rounds nothing is on its way. There,
when it is time, the head sends a mark round: every node writes its state and its results, and one manifest makes them
count together with how far the sources have been read. Only then results are seen. So a run that begins again with the
last manifest gives every result once.
"""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import polars as pl

from windrow.hosts.counters import Counter
from windrow.hosts.described import BAD_SCHEMA
from windrow.hosts.ring.agree import WRITTEN, report, reports
from windrow.hosts.ring.folder import TakenError
from windrow.hosts.ring.links import LostError, TcpLinks
from windrow.hosts.ring.results import BAD
from windrow.hosts.ring.running import COUNTS, MADE, OFFSETS, Member, Running
from windrow.hosts.ring.store import Manifest
from windrow.hosts.ring.tailing import Tail
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.sliced_join import HEAD
from windrow.sources.position import Position

BEGIN, EPOCH = "begin", "epoch"  # what a mark is for; without a value nothing comes after it
IDLE = 0.01  # seconds between two looks at the sources
LOOKING = 4.0  # times as long as a look takes is the pause after it, if that is more


@dataclass(frozen=True)
class Progress:
    """How far a run has come: the last epoch that counts, what has been counted since the first start, and the seconds
    from reading the first rows of that epoch until its results were seen.
    """

    epoch: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    latency: float = 0.0

    def written(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, manifest: Manifest | None) -> Progress:
        """As of a restart."""
        return cls() if manifest is None else cls(manifest.round, manifest.more[COUNTS])


class Control(Protocol):
    """Who has started the run."""

    def stopping(self) -> bool:
        """Whether the run is to end after the epoch that is under way."""

    def pause(self, seconds: float) -> None:
        """Nothing has come: wait, unless the run is to end."""

    def tell(self, progress: Progress) -> None:
        """An epoch counts, and its results are seen."""


@dataclass(frozen=True)
class Clocks:
    """``now``: the time of day in microseconds, as the arrival of rows; ``elapsed``: seconds from any moment on."""

    now: Callable[[], int]
    elapsed: Callable[[], float]


class Head:
    """The first node: it reads, and decides when a round, an epoch, and the run are over."""

    def __init__(self, run: Running, links: TcpLinks, watch: Watch | None, control: Control, clocks: Clocks) -> None:
        self.run, self.links, self.control, self.clocks = run, links, control, clocks
        self.member = Member(run, links, watch)
        plan = run.plan
        self.tails = {
            scan.name: Tail(run.sources[scan.name], tuple(plan.read_from(scan)), plan.stamps_of(scan))
            for scan in plan.scans()
        }
        self.ports: dict[str, list[int]] = {}
        for port, read in enumerate(plan.reads()):
            self.ports.setdefault(read.scan.name, []).append(port)
        self.counts: Sums[str] = Sums()
        self.since: float | None = None  # when the first rows of the epoch were read

    def serve(self) -> None:
        """Until the run is to end."""
        self._begin(self.run.store.last())
        ended = self.clocks.elapsed()
        while True:
            stop, began = self.control.stopping(), self.clocks.elapsed()
            came = self._look()
            now = self.clocks.elapsed()
            if self.since is not None and (stop or now - ended >= self.run.every):
                self._end_epoch()
                ended = self.clocks.elapsed()
            if stop:
                self._send_mark({})
                return
            if not came:
                self.links.check()
                self.control.pause(max(IDLE, LOOKING * (now - began)))

    def _begin(self, before: Manifest | None) -> None:
        """All nodes have to continue from the same epoch, whatever an attempt that still runs may do meanwhile."""
        self._send_mark({BEGIN: None if before is None else before.round})
        self.member.restore(before)
        if before is None:
            return
        self.counts.update(before.more[COUNTS])
        for name, position in before.more[OFFSETS].items():
            self.tails[name].position = Position.from_json(position)
        self.run.sink.publish(before.more[MADE])
        self.run.sink.forget(before.round)
        self.control.tell(Progress.of(before))

    def _look(self) -> bool:
        """Take what has come to the sources, if anything has."""
        came = False
        for name, tail in self.tails.items():
            found = tail.look(self.clocks.now())
            if found is None:
                continue
            came = True
            if self.since is None:
                self.since = self.clocks.elapsed()
            self._aside(name, found.aside)
            if found.rows is not None:
                self.member.counts[Counter.ROWS_IN.label] += found.rows.height
                for port in self.ports[name]:
                    self.member.take(self.member.graph.feed(port, found.rows))
        if came:
            self.member.round()
        return came

    def _aside(self, name: str, reasons: tuple[str, ...]) -> None:
        rows = [(name, reason, "{}") for reason in reasons]
        self.member.counts[Counter.FILES_BAD.label] += len(rows)
        self.member.staged.add(BAD, pl.DataFrame(rows, schema=BAD_SCHEMA, orient="row"))

    # -- epochs ------------------------------------------------------------------------------------------------
    def _end_epoch(self) -> None:
        epoch = self.member.epoch + 1
        self._send_mark({EPOCH: epoch})
        found = reports(self.links, self.member.write(epoch))
        for each in found:
            self.counts.update(each[COUNTS])
        made = [each for node in found for each in node[MADE]]
        offsets = {name: tail.position.to_json() for name, tail in self.tails.items()}
        more = {COUNTS: dict(self.counts), MADE: made, OFFSETS: offsets}
        try:
            self.run.store.commit(epoch, self.run.identity, tuple(each[WRITTEN] for each in found), more, once=True)
        except TakenError as error:
            raise LostError(
                f"epoch {epoch} has been written by another run ({error}): each run needs a checkpoint of its own"
            ) from None
        self.run.sink.publish(made)
        assert self.since is not None
        latency, self.since = self.clocks.elapsed() - self.since, None
        self.control.tell(Progress(epoch, dict(self.counts), latency))

    def _send_mark(self, values: Mapping[str, Any]) -> None:
        if self.links.nodes > 1:
            self.links.send(HEAD + 1, Message(Kind.MARK, values=values))


class Follower:
    """Every other node: it takes part in rounds, and does what marks say."""

    def __init__(self, run: Running, links: TcpLinks, watch: Watch | None) -> None:
        self.run, self.links = run, links
        self.member = Member(run, links, watch)

    def serve(self) -> None:
        """Until the head ends the run."""
        while True:
            if self.links.next_kind() != Kind.MARK:
                self.member.round()
                continue
            mark = self.links.receive(wait=True)
            assert mark is not None
            if self.links.node + 1 < self.links.nodes:
                self.links.send(self.links.node + 1, mark)
            if BEGIN in mark.values:
                self.member.restore(self._before(mark.values[BEGIN]))
            elif EPOCH in mark.values:
                report(self.links, self.member.write(int(mark.values[EPOCH])))
            else:
                return

    def _before(self, epoch: int | None) -> Manifest | None:
        """What the head continues from."""
        found = None if epoch is None else self.run.store.manifest(epoch)
        if epoch is not None and found is None:
            raise LostError(f"node {self.links.node} does not see epoch {epoch} in {self.run.store.folder}")
        return found
