"""schedule-overhead: every row goes through every operator, and the claim fails where it should."""

import polars as pl
import pytest

from windrow.bench.schedule_overhead import GRAPHS, LIMIT, STRATEGIES, claims


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize(("shape", "steps", "rows"), [("path", 20, 2), ("fork", 18, 4)])
def test_each_row_takes_a_step_in_each_operator(strategy, shape, steps, rows):
    for counted in (True, False):
        graph = GRAPHS[shape](strategy)
        for _ in range(2):
            graph.put(0, pl.DataFrame({"x": [1]}))
        if counted:
            assert graph.steps(1000) == steps
        else:
            assert len(graph.run()) == rows


def test_the_claim_fails_beyond_the_limit():
    assert all(claims({"us_per_step": LIMIT}).values())
    assert not any(claims({"us_per_step": LIMIT + 0.1}).values())
