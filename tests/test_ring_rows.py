"""Windows of the last rows beside windows of time: rings give what the oracle says, for any arrival and any nodes."""

import random

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from windrow.operators.ring.way import WAYS
from windrow.testing import replay

SEEDS = range(int(90 * max(1, EXAMPLES)))
NAMES = "abcd"


def drawn(seed):
    """Few different times and values, so that many are equal; some keys are NULL."""
    rng = random.Random(f"rows {seed}")
    count = rng.choice([2, 3, 3, 4])
    slack, most = rng.choice([0, 3]), {2: 14, 3: 8, 4: 5}[count]
    streams, within = [], {}
    for name in NAMES[:count]:
        times = sorted(rng.randrange(12) for _ in range(rng.randrange(most + 1)))
        rows = [(t, rng.choice([0, 1, 2, None]), rng.randrange(4)) for t in times]
        frame = pl.DataFrame(rows, {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}, orient="row")
        streams.append(wr.stream(frame, "t", slack=slack, name=name))
        within[name] = rng.choice([3, 8, "1 row", "2 rows", "5 rows"])
    within["a"] = rng.choice(["1 row", "3 rows"])
    where = rng.choice([None, "x < x_b", lambda a, b: a.x == b.x, ["x <= x_b", lambda a, b: a.x != b.x + 1]])
    options = wr.RingOptions(
        flight=rng.choice([1, 3, 2048]), segment=rng.choice([2, 5]), smoothing=rng.choice(["count", "time"])
    )
    using, nodes = rng.choice(["ring", "ring", *WAYS]), rng.choice([1, 2, 3])
    on = rng.choice([None, None, "k"])
    return wr.multi_join(*streams, within=within, on=on, where=where, using=using, nodes=nodes, options=options)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_last_rows_are_those_that_the_oracle_says(seed):
    replay(drawn(seed), runs=1, seed=seed)
