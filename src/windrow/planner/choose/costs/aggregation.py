"""What a window aggregation costs per window, in time (Li, Eqs. 6.1 to 6.4) and in memory (Eqs. 6.5 to 6.8).

The equations are the thesis's with two changes that the operators force. A window level that slides (van Herk's blocks,
subtraction) takes a fixed number of merges per pane and group, where Eq. 6.1 has one per pane *of the window* (c P G).
And Wid reduces the rows of a batch that have the same windows before it updates them, so that it pays Eq. 6.3's price
for partials, not for rows. On Spark what an algorithm keeps crosses an exchange: pane partials, or rows. The unit costs
are nanoseconds, read off timed runs over a grid of rows, groups and panes; only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.planner.choose.statistics import Workload

A = 150.0  # lift a row into its pane or window (a of Eq. 6.1)
B = 430.0  # put out a partial, or a result (b of Eq. 6.1)
C = 60.0  # merge a partial at the window level (c of Eqs. 6.1 and 6.2)
U = 180.0  # update one window's accumulator with a partial (a' of Eq. 6.3, by partials)
R = 100.0  # revisit a buffered row for one window (a' of Eq. 6.3, by rows)
KEEP = 70.0  # put a row into a buffer
CHECK = 160.0  # see whether a row's group is lazy or eager
MOVE = 300.0  # take a row or partial through the exchange
MERGES = 3  # of a pane in a window level that slides


def paned(w: Workload) -> float:
    """Eq. 6.1 and 6.2: each row once, a partial per pane and group, a few merges per pane and group."""
    merges = MERGES if w.panes > 1 else 0
    return w.step * (A * w.tuples + B * w.groups + merges * C * w.groups) + _moved(w, w.groups)


def wid(w: Workload) -> float:
    """Eq. 6.3, with the rows of a pane and group reduced first: each pane partial updates all its windows."""
    return w.step * (A * w.tuples + B * w.groups) + U * w.groups * w.panes + _moved(w, w.tuples)


def buffering(w: Workload) -> float:
    """Eq. 6.3: every row of the window, again for every window."""
    return w.step * KEEP * w.tuples + R * w.tuples * w.panes + B * w.groups + _moved(w, w.tuples)


def adaptwid(w: Workload) -> float:
    """Each group by the better of the two, and a look at every row's group."""
    eager, lazy = U * w.groups * w.panes, R * w.tuples * w.panes
    own = w.step * ((A + CHECK) * w.tuples + B * w.groups)
    return own + min(eager, lazy) + _moved(w, w.tuples)


def adaptpaned(w: Workload) -> float:
    """The same for panes, which are tumbling: no row is revisited."""
    return paned(w) + w.step * CHECK * w.tuples + _moved(w, w.tuples - w.groups)


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
