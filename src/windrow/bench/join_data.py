"""Two streams to join, for join-limit, spark-join and asof: a million rows, a band of 5 s on either side.

For join-limit 1,000 keys over an hour: with all keys equally likely a row has 2.8 partners. For spark-join 10,000 keys
over ten minutes, and 1.7 partners. For asof the right side has a tenth of the rows. Rows come up to SLACK seconds out
of order.
"""

from __future__ import annotations

import numpy as np
import polars as pl

MICROS = 1_000_000
START = 1_700_000_040 * MICROS
ROWS = 1_000_000  # of each side
KEYS = 1000
HOUR = 3600  # seconds
BAND = 5  # seconds on either side
SLACK = 3  # seconds, and the disorder of the data
BATCH = 250_000  # rows of a side that are pushed at once, or are a micro-batch


def hot_span(keys: int, span: float) -> float:
    """How long rows must be spread, if half of them have one key, to have as many pairs as with uniform keys.

    Half of the left rows each have half of the right rows to be paired with, instead of all with one in ``keys``.
    """
    return span * keys / 4


def side(
    number: int, rows: int = ROWS, keys: int = KEYS, span: float = HOUR, hot: float = 0.0, slack: float = SLACK
) -> pl.DataFrame:
    """Rows of the left (0) or right (1) side in order of arrival, each with its number in ``a`` or ``b``.

    ``hot``: the share of the rows that have key 0. ``slack``: by how many seconds rows are out of order.
    """
    rng = np.random.default_rng([11, number])
    ts = np.sort(rng.integers(0, int(span * MICROS), rows))
    order = np.argsort(ts + rng.integers(0, max(1, round(slack * MICROS)), rows), kind="stable")
    key = rng.integers(0, keys, rows)
    key[rng.random(rows) < hot] = 0
    return pl.DataFrame(
        {
            "ts": pl.Series(ts[order] + START).cast(pl.Datetime("us", "UTC")),
            "k": key,
            "ab"[number]: np.arange(rows),
        }
    )
