"""Nodes of a ring die by SIGKILL: a Python worker, an executor, the whole program, and a worker again and again."""

import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from killed_ring import EXECUTOR, POISON, WORKER, query

import ready_workers
from windrow.hosts.spark.compile import BAD_ROWS, RESULTS
from windrow.testing import after_file, compare, run_until

pytestmark = pytest.mark.kills
PROGRAM = Path(__file__).with_name("killed_ring.py")
AT, FILES, ROWS = datetime(2024, 1, 1, tzinfo=UTC), 5, 40
STRANGE = {(1, 10): WORKER, (2, 10): EXECUTOR, (3, 10): POISON}  # by file and row of stream a


def frame(name, number):
    """Ten seconds of a stream, with rows up to two seconds late."""
    rng = random.Random(f"{name} {number}")
    rows = []
    for n in range(ROWS):
        late = rng.random() * 2 if number else 0.0
        x = STRANGE.get((number, n), rng.randrange(9)) if name == "a" else rng.randrange(9)
        rows.append((AT + timedelta(seconds=10 * number + n / 4 - late), x))
    return pl.DataFrame(rows, {"t": pl.Datetime("us", "UTC"), "x": pl.Int64()}, orient="row")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed-ring")
    for name in "abc":
        (folder / name).mkdir()
        for number in range(FILES):
            frame(name, number).write_parquet(folder / name / f"{number}.parquet")
            os.utime(folder / name / f"{number}.parquet", (100 + number, 100 + number))
    command = [sys.executable, ready_workers.__file__, str(folder / "python"), str(PROGRAM), str(folder)]
    assert run_until(command, after_file(folder / "state" / "commits" / "1", seconds=0.3))
    assert not run_until(command, lambda: False)
    assert len(list((folder / "state" / "commits").glob("[0-9]*"))) == FILES
    return folder


def of(out, column):
    """The rows of a struct column of all micro-batches."""
    found = pl.read_parquet(out / "out" / "*" / "*.parquet").filter(pl.col(column).is_not_null())
    return found.select(column).unnest(column)


def test_results_are_those_of_a_run_never_disturbed(out):
    assert (out / "killed-worker").exists()
    assert (out / "killed-executor").exists()
    data = {name: pl.concat([frame(name, number) for number in range(FILES)]) for name in "abc"}
    expected = query(data, lambda x, y: x != POISON and (x + y) % 3 == 0).collect()
    promised = min(rows["t"].max() for rows in data.values()) - timedelta(seconds=2)
    closed = expected.filter(pl.max_horizontal("t", "t_b", "t_c") < promised)
    assert closed.filter(pl.col("x").is_in([WORKER, EXECUTOR])).height
    compare(of(out, RESULTS).cast(expected.schema), closed, "ring")


def test_a_row_that_kills_its_node_three_times_is_set_aside_and_reported(out):
    bad = of(out, BAD_ROWS)
    assert bad.height
    assert bad["reason"].str.contains("has killed its process 3 times for these rows: they are set aside").all()
    assert all(f'"x": {POISON}' in row or f'"x":{POISON}' in row for row in bad["row"])
