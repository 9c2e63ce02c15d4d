"""As-of joins and sequences of rows at the ends of what times can be."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from windrow.testing import compare, oracle, replay

LAST, FAR = 2**62 - 1, 2**60
TIMES = [-LAST, 1 - LAST, -FAR, -1, 0, 1, FAR, LAST - 1, LAST]
SCHEMA = {"x": pl.Int64(), "t": pl.Int64(), "k": pl.Int64()}
SHAPES = {
    "three": lambda a, b, c: {"a": a, "b": b, "c": c},
    "none between": lambda a, b, c: {"a": a, "b": wr.no(b), "c": c},
    "none at the end": lambda a, b, c: {"a": a, "b": b, "c": wr.no(c)},
    "some at the end": lambda a, b, _: {"a": a, "b": wr.some(b)},
}


def drawn(seed):
    rng = random.Random(seed)
    promise = rng.choice([{}, {"slack": 0}, {"slack": FAR}])

    def stream(name):
        data = [(rng.randrange(3), rng.choice(TIMES), rng.choice([1, 2])) for _ in range(6)]
        rows = pl.DataFrame(data, schema=SCHEMA, orient="row")
        return wr.stream(rows.sort("t") if promise == {"slack": 0} else rows, "t", name=name, **promise)

    a, b, c = (stream(name) for name in "abc")
    far = rng.choice([0, 1, FAR])
    if rng.random() < 0.5:
        matching = rng.choice(["recent", "chronicle"])
        return wr.seq(SHAPES[rng.choice(sorted(SHAPES))](a, b, c), on="k", within=far, matching=matching)
    strategy = rng.choice(["backward", "forward", "nearest"])
    query = a.join_asof(b, by="k", strategy=strategy, tolerance=far, allow_exact_matches=rng.random() < 0.5)
    return replace(query, node=replace(query.node, shift=rng.choice([0, 0, 1, -1, FAR, -FAR])))


@pytest.mark.parametrize("seed", range(int(14 * max(1, EXAMPLES))))
def test_no_time_is_too_far(seed):
    replay(drawn(seed), runs=2, seed=seed)


@pytest.mark.parametrize("strategy", ["forward", "nearest"])
@pytest.mark.parametrize(("last", "dtype"), [(2**62 - 1, pl.Int64()), (127, pl.Int8()), (2**15 - 1, pl.Int16())])
def test_the_last_row_of_all_can_be_a_partner(last, dtype, strategy):
    left, right = (
        wr.stream(pl.DataFrame({"t": [t], name: [1]}, schema_overrides={"t": dtype}), "t", slack=0, name=name)
        for name, t in (("x", last - 1), ("y", last))
    )
    query = left.join_asof(right, strategy=strategy, tolerance=3)
    compare(query.collect(), oracle(query))
    assert query.collect()["y"].to_list() == [1]
