"""What steps on rows and the stages without a choice cost: nanoseconds for each row, read off timed runs.

They are the same for every algorithm that could run a query, so no choice depends on them, but the cost of a whole plan
does. A call takes as long as thousands of rows: where batches are smaller than BATCH, all of this is too little.
"""

from __future__ import annotations

BATCH = 10_000  # rows that come at a time, where nothing else is known
CALL = 250_000.0  # one step on one batch, whatever it does
ROW = 15.0  # a row in a step that looks at it
ADMIT = 30.0  # a row as it is admitted
SORT = 250.0  # put a row in order
DISTINCT = 300.0  # see whether a row is there already
LAST = 300.0  # find the partner of a row in an as-of join
MATCH = 600.0  # a row through the automaton of a sequence
TRACK = 500.0  # a row of a session, of a partition, or with a window of its own
EMIT = 100.0  # a result


def steps(rate: float, number: int, row: float = ROW) -> float:
    """Some steps, one after the other, on so many rows."""
    return rate * number * (row + CALL / BATCH)
