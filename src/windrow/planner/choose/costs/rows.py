"""What steps on rows and the stages without a choice cost: nanoseconds for each row, read off timed runs.

They are the same for every algorithm that could run a query, so no choice depends on them, but the cost of a whole plan
does. A call takes as long as thousands of rows: where batches are smaller than BATCH, all of this is too little.
"""

from __future__ import annotations

from windrow.planner.choose.statistics import BATCH

CALL = 80_000.0  # one step on one batch, whatever it does
ROW = 4.0  # a row in a step that looks at it
ADMIT = 4.0  # a row as it is admitted
SORT = 60.0  # put a row in order
DISTINCT = 160.0  # see whether a row is there already
LAST = 300.0  # find the partner of a row in an as-of join
MATCH = 650.0  # a row through the automaton of a sequence
TRACK = 600.0  # a row of a partition, or with a window of its own
RUN = 2500.0  # a row of a session
RANK = 1000.0  # a result of a window that is compared with the others
EMIT = 20.0  # a result


def steps(rate: float, number: int, row: float = ROW) -> float:
    """Some steps, one after the other, on so many rows."""
    return rate * number * (row + CALL / BATCH)
