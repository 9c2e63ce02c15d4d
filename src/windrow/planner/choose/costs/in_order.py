"""How long a row takes through a join whose results come in order (Hammad et al., Eqs. 1 to 8).

The equations are about two streams at constant rates with rows in step, and count the rows of the fast stream only: a
row of the slow one waits for the next of the fast one, which is near. Times are in one unit, rates per that unit. The
paper's windows are inclusive and ours are half open; a pair exactly a window apart makes no difference to a mean.

Three things in the paper do not fit together. Section 4.1 calls ``C_S = c|w|l1`` the time of a row *of* S, but such a
row meets the window of T; the equations use it for rows of T, which is right. Eq. 1 asks that the rows of each stream
alone keep the server busy for less than all of its time; one server has those of both, so it keeps up with half of that
(``one_server_keeps_up``), and Eq. 8 is then a third. And Eq. 4 has results released when the row that they wait for
arrives, as Figure 4 does, where steps 5 and 6 of the algorithm join that row first.
"""

from __future__ import annotations

from dataclasses import dataclass

BOUND = 0.5  # Eq. 8: of the improvement, where Eq. 1 holds
ONE_SERVER_BOUND = 1 / 3  # the same where one server keeps up


@dataclass(frozen=True)
class Streams:
    """``slow`` and ``fast``: rows per unit of time. ``window``: its length. ``cost``: the time to compare two rows.

    >>> streams = Streams(slow=1, fast=10, window=60, cost=0.0005)
    >>> streams.n, round(streams.service, 6), round(streams.share, 6)
    (10.0, 0.03, 0.3)
    """

    slow: float
    fast: float
    window: float
    cost: float

    @property
    def n(self) -> float:
        """Rows of the fast stream for each of the slow one."""
        return self.fast / self.slow

    @property
    def service(self) -> float:
        """C_S: the time of a row of the fast stream, which meets the window of the slow one."""
        return self.cost * self.window * self.slow

    @property
    def share(self) -> float:
        """c|w|l1 l2: the share of time that the rows of either stream take; what the Adaptive join compares."""
        return self.cost * self.window * self.slow * self.fast


def keeps_up(streams: Streams) -> bool:
    """Eq. 1: the rows of each stream, alone, take less than all of the time.

    >>> keeps_up(Streams(1, 10, 60, 0.0016)), keeps_up(Streams(1, 10, 60, 0.0017))
    (True, False)
    """
    return streams.share < 1


def one_server_keeps_up(streams: Streams) -> bool:
    """Eq. 1 for a server that has the rows of both streams.

    >>> one_server_keeps_up(Streams(1, 10, 60, 0.0008)), one_server_keeps_up(Streams(1, 10, 60, 0.0009))
    (True, False)
    """
    return 2 * streams.share < 1


def sync_filter_total(streams: Streams) -> float:
    """Eq. 2: n rows of the fast stream wait for one of the slow one, and are then joined one after another.

    >>> round(sync_filter_total(Streams(1, 10, 60, 0.0005)), 6)
    7.15
    """
    return filter_order_total(streams) + streams.n * (streams.n + 1) / 2 * streams.service


def sync_filter(streams: Streams) -> float:
    """Eq. 3: their mean.

    >>> round(sync_filter(Streams(1, 10, 60, 0.0005)), 6)
    0.715
    """
    return filter_order(streams) + (streams.n + 1) / 2 * streams.service


def filter_order_total(streams: Streams) -> float:
    """Eq. 4: they are joined while they wait, so only the wait is left.

    >>> round(filter_order_total(Streams(1, 10, 60, 0.0005)), 6)
    5.5
    """
    n = streams.n
    return n / streams.slow - (n * n - n) / (2 * streams.fast)


def filter_order(streams: Streams) -> float:
    """Eq. 5: their mean.

    >>> round(filter_order(Streams(1, 10, 60, 0.0005)), 6)
    0.55
    """
    return 1 / streams.slow - (streams.n - 1) / (2 * streams.fast)


def improvement_of(sync: float, filtered: float) -> float:
    """Eq. 6: of Filter-Order over Sync-Filter, relative to Sync-Filter.

    >>> improvement_of(10, 5)
    0.5
    """
    return (sync - filtered) / sync


def improvement(streams: Streams) -> float:
    """Eq. 7: Eq. 6 with Eqs. 3 and 5, exactly, as (n + 1) / 2 is a factor of both.

    >>> round(improvement(Streams(1, 10, 60, 0.0005)), 4)
    0.2308
    """
    return streams.share / (1 + streams.share)


def filters(streams: Streams, alpha: float) -> bool:
    """Whether the Adaptive join runs Filter-Order: the improvement is then at least ``alpha / (1 + alpha)``.

    >>> filters(Streams(1, 10, 60, 0.0005), 0.3), filters(Streams(1, 10, 60, 0.0004), 0.3)
    (True, False)
    """
    return streams.share >= alpha
