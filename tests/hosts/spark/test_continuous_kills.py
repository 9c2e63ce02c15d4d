"""A ring that runs without end: its program dies by SIGKILL, nodes of it do, and a pair of rows kills its node."""

import os
import random
import sys
from pathlib import Path

import polars as pl
import pytest
from endless import POISON, SLACK, near, query

import ready_workers
from windrow.testing import after_file, compare, run_until

pytestmark = pytest.mark.kills
PROGRAM = Path(__file__).with_name("endless.py")
FILES, ROWS, LAST = 40, 12, 10_000


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The folder of the results: the program died in two epochs, and two of its nodes when it ran again."""
    folder = tmp_path_factory.mktemp("endless")
    rng, total = random.Random(3), 0
    for name in "ab":
        (folder / name).mkdir()
        for number in range(FILES + 1):
            rows = [(number * 10 + rng.randrange(10 + SLACK), rng.randrange(100)) for _ in range(ROWS)]
            if name == "a" and number == FILES // 2:
                rows[0] = number * 10 + SLACK, POISON
            if number == FILES:
                rows = [(LAST, 1)]
            total += len(rows)
            file = folder / name / f"{number}.parquet"
            pl.DataFrame(rows, schema={"t": pl.Int64, "n": pl.Int64}, orient="row").write_parquet(file)
            os.utime(file, (number, number))
    (folder / "rows").write_text(str(total))
    command = [sys.executable, ready_workers.__file__, str(folder / "python"), str(PROGRAM), str(folder)]
    manifests = folder / "state" / "windrow" / "continuous"
    for epoch in (2, 9):
        assert run_until([*command, "0"], after_file(manifests / f"{epoch}.json", rng.uniform(0, 0.05)))
    assert not run_until([*command, "2"], lambda: False)
    return folder


def shown(folder):
    return pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])


def test_each_result_is_seen_once(out):
    def survives(x, y):
        return POISON not in (x, y) and near(x, y)

    meant = query(out, survives, streaming=False).collect().filter(pl.col("t") < LAST)
    assert meant.height > 1000
    found = shown(out / "sink")
    without = found.filter((pl.col("n") == POISON) | (pl.col("n_b") == POISON))
    assert without.height == 0
    compare(found, meant, "endless")


def test_the_row_that_kills_is_set_aside(out):
    bad = shown(out / "sink" / "_bad")
    assert bad["source"].unique().to_list() == ["stage 0"]
    assert all("has killed its process 3 times" in reason for reason in bad["reason"])
    assert all(str(POISON) in row for row in bad["row"])
