"""What a window aggregation costs per window, in time (Li, Eqs. 6.1 to 6.4) and in memory (Eqs. 6.5 to 6.8).

The equations are the thesis's with the changes that the operators force. A window level over panes (van Herk's blocks,
subtraction) merges each pane a fixed number of times, where Eq. 6.1 has one merge per pane *of the window* (c P G). But
windows close with a batch, and each time the partials of all their panes are read again, into a table of panes and
groups that has a place for every group in every pane: so the panes of a window count per batch, not per window. Wid and
buffering reduce the rows of a batch first, and wid then merges the accumulators of all windows that the batch touches.
A window gives a result for each group that it has, which are more than those of a pane if groups are sparse. What is
paid once for each call is spread over the rows of a batch. On Spark what an algorithm keeps crosses an exchange: pane
partials, or rows. The unit costs are nanoseconds, fitted to timed runs over a grid of rows, groups and panes
(``windrow bench optimizer-grid``); only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.planner.choose.statistics import BATCH, Workload

A = 290.0  # lift a row into its pane or window, and its share of all calls (a of Eq. 6.1)
B = 70.0  # read a partial as windows close (b of Eq. 6.1)
C = 18.0  # slide over a group of the table, in one pane (c of Eqs. 6.1 and 6.2)
MERGE = 150.0  # merge the partials of a window that is one pane
U = 250.0  # merge an accumulator of a window with what a batch has for it (a' of Eq. 6.3, by partials)
E = 60.0  # update one window's accumulator with a partial, where groups are looked at one by one
R = 40.0  # revisit a buffered row for one window (a' of Eq. 6.3, by rows)
KEEP = 240.0  # put a row into a buffer, and its share of all calls
CHECK = 450.0  # see whether a row's group is lazy or eager
EMIT = 35.0  # put out a result (b of Eq. 6.1)
GROUP = 65.0  # a group of a window that is computed from rows
CHUNK = 10_000.0  # write and free a slice of the state; a window has at most SLICES
SLICES = 16
CLOSE = 50_000.0  # close a window of which some groups are lazy and others are eager
MOVE = 300.0  # take a row or partial through the exchange


def paned(w: Workload) -> float:
    """Eq. 6.1 and 6.2: each row once, and with each batch the partials of all panes of the windows that close. A window
    that is one pane needs no table.
    """
    if w.panes == 1:
        return w.step * A * w.tuples + _chunks(w) + (MERGE + EMIT) * w.groups + _moved(w, w.groups)
    own = w.step * (A * w.tuples + (B * w.groups + C * w.seen) * _batches(w))
    return own + CHUNK * w.step * min(1.0, SLICES / w.panes) + EMIT * w.results + _moved(w, w.groups)


def wid(w: Workload) -> float:
    """Eq. 6.3, with the rows of a batch reduced first: they update the accumulators of all windows that they are in."""
    own = w.step * A * w.tuples + _chunks(w) + U * w.results * _batches(w)
    return own + EMIT * w.results + _moved(w, w.tuples)


def buffering(w: Workload) -> float:
    """Eq. 6.3: every row of the window, again for every window."""
    own = w.step * KEEP * w.tuples + _chunks(w) + R * w.tuples * w.panes
    return own + (EMIT + GROUP) * w.results + _moved(w, w.tuples)


def adaptwid(w: Workload) -> float:
    """Each group by the better of the two, and a look at every row's group."""
    eager, lazy = E * w.groups * w.panes, R * w.tuples * w.panes
    own = w.step * (A + CHECK) * w.tuples + _chunks(w) + CLOSE + EMIT * w.results
    return own + min(eager, lazy) + _moved(w, w.tuples)


def adaptpaned(w: Workload) -> float:
    """The same for panes, which are tumbling: no row is revisited."""
    return paned(w) + w.step * CHECK * w.tuples + CLOSE + _moved(w, w.tuples - w.groups)


def _batches(w: Workload) -> float:
    """In how many batches a pane is looked at: that of its own rows, and those that close windows with it."""
    return 1 + w.panes / max(1.0, BATCH / w.tuples)


def _chunks(w: Workload) -> float:
    """Of what is kept by window."""
    return CHUNK * min(1.0, SLICES * w.step / w.panes)


def _moved(w: Workload, items: float) -> float:
    return MOVE * w.step * items if w.exchanged else 0.0


def eager_bytes(w: Workload) -> float:
    """Eq. 6.5: a partial for each open window and group."""
    return w.partial * w.groups * w.wed / w.step


def pane_bytes(w: Workload) -> float:
    """The same with panes: a partial for each pane of the open windows and group."""
    return w.partial * w.groups * w.wed


def lazy_bytes(w: Workload) -> float:
    """Eq. 6.6, and 6.8 for sources that arrive together: the rows of all open windows."""
    return w.row * w.tuples * w.wed


def adapt_bytes(w: Workload) -> float:
    """Cond. 6.9 picks the smaller of the two group by group."""
    return min(eager_bytes(w), lazy_bytes(w), w.smaller * w.groups * w.wed)


def adapt_pane_bytes(w: Workload) -> float:
    """The same for each pane of a group."""
    return w.smaller * w.groups * w.wed


TIME: dict[str, Callable[[Workload], float]] = {
    "paned": paned,
    "wid": wid,
    "buffering": buffering,
    "adaptwid": adaptwid,
    "adaptpaned": adaptpaned,
}
MEMORY: dict[str, Callable[[Workload], float]] = {
    "paned": pane_bytes,
    "wid": eager_bytes,
    "buffering": lazy_bytes,
    "adaptwid": adapt_bytes,
    "adaptpaned": adapt_pane_bytes,
}
