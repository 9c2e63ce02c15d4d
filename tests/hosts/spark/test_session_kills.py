"""Twenty queries come and go over a million rows, and the program dies twice: each gives what it gives alone."""

import random
import sys
from pathlib import Path

import polars as pl
import pytest
from killed_session import AHEAD, FILES, QUERIES, SLACK, brittle, changes, standing, statements

import ready_workers
import windrow as wr
from windrow.errors import ResultError
from windrow.sinks.parquet import read_committed
from windrow.sources.links import Link, packets, write
from windrow.testing import after_file, compare, run_until

pytestmark = pytest.mark.kills
PROGRAM = Path(__file__).with_name("killed_session.py")
SEED = 3
ROWS = 1_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the session, after the last run has come to its end."""
    folder = tmp_path_factory.mktemp("session")
    seconds = ROWS / 1000
    write(packets(Link("main", rate=1000, hosts=20, band=3.2), seconds), folder / "rows", step=seconds / (FILES - 0.9))
    command = [sys.executable, ready_workers.__file__, str(folder / "python"), str(PROGRAM), str(folder), str(SEED)]
    rng = random.Random(SEED)
    for first in (3, 8):  # some time in these micro-batches, or in a change after them
        log = folder / "session" / "checkpoint" / rng.choice(["offsets", "commits"])
        assert run_until(command, after_file(log / str(first), rng.uniform(0, 3)))
    assert not run_until(command, lambda: False)
    return folder


@pytest.fixture(scope="module")
def batches(folder):
    """The rows of each micro-batch: one file each."""
    files = sorted((folder / "in").glob("*.parquet"))
    commits = (folder / "session" / "checkpoint" / "commits").glob("[0-9]*")
    assert sorted(int(p.name) for p in commits) == list(range(len(files)))
    frames = [pl.read_parquet(file) for file in files]
    assert sum(frame.height for frame in frames) == ROWS
    return frames


def alone(name, record, batches):
    """The results of a query by itself over the rows from its start to its end."""
    stream = wr.stream(pl.DataFrame(schema=batches[0].schema), progress="ts", slack=SLACK, name="packets")
    query = brittle(stream) if name == "q0" else wr.sql(statements()[name], packets=stream)
    run, found = query.run(), [pl.DataFrame(schema=query.schema)]
    for rows in batches[record["first"] : record["end"]]:
        run.push("packets", rows)
        found.append(run.results())
    return pl.concat(found)


def test_each_query_gives_what_it_gives_alone(folder, batches):
    records = standing(folder)
    assert len(records) == QUERIES
    rows = 0
    for name, record in records.items():
        expected = alone(name, record, batches)
        found = read_committed(folder / "session" / "results" / f"{name}-{record['number']}")
        compare(found if found.width else expected.clear(), expected, f"{name}, {record}")
        rows += expected.height
    assert rows > 1000
    for moment, action, names in changes(SEED):
        if action == "add":
            assert all(moment <= records[name]["first"] <= moment + AHEAD for name in names)
        else:
            assert records[names[0]]["status"] == "dropped"


def test_a_query_that_fails_is_reported_alone(folder, batches):
    record = standing(folder)["q0"]
    assert "more than it can take" in record["error"]
    with pytest.raises(ResultError, match="more than it can take"):
        alone("q0", {**record, "end": record["end"] + 1}, batches)
