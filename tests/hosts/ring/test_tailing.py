"""What the head of a ring reads: what Spark's file source would take, in the same steps, with the same positions."""

import os
import random
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from windrow.hosts.ring.tailing import Tail
from windrow.hosts.spark.files import _StreamReader
from windrow.sources.files import DAY, Files
from windrow.sources.position import Position

COLUMNS = ("t", "k")
TYPES = tuple({"t": pl.Int64(), "k": pl.String(), "other": pl.Int64()}.items())


def put(folder, number, at, kind="rows"):
    file = folder / f"{number:02d}.parquet"
    frame = pl.DataFrame({"t": [number, -number], "k": ["x", None], "other": [1, 2]})
    (frame.drop("k") if kind == "foreign" else frame).write_parquet(file)
    if kind == "damaged":
        file.write_bytes(file.read_bytes()[:-40])
    os.utime(file, (at, at))


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_those_of_the_file_source(tmp_path, most, seed):
    rng, stamps = random.Random(seed), ("row_num",)
    files = Files(str(tmp_path), "parquet", TYPES, streaming=True, max_files=most, remember=DAY)
    job = SimpleNamespace(columns=COLUMNS, stamps=stamps, recorded=stamps, waiting=None)
    other = _StreamReader(SimpleNamespace(files=files, job=job, tasks=2))
    tail, offset = Tail(files, COLUMNS, stamps), other.initialOffset()
    limit = ReadAllAvailable() if most is None else ReadMaxFiles(most)
    read = 0
    for step in range(6):
        for number in rng.sample(range(20), rng.randrange(4)):
            age = 3 * DAY if rng.random() < 0.2 else rng.randrange(50)
            put(
                tmp_path, number, 10 * DAY + step * 10 - age, rng.choice(["rows", "rows", "rows", "foreign", "damaged"])
            )
        begin, offset = offset, other.latestOffset(offset, limit)
        found = tail.look(now=0)
        assert (found is None) == (offset == begin)
        if found is None:
            continue
        position = Position.from_json(offset)
        assert replace(tail.position, aside=()) == replace(position, aside=())
        assert [f for f, _ in tail.position.aside] == [f for f, _ in position.aside]
        assert len(found.aside) == len(position.aside)
        if found.rows is not None:
            names = [int(f.path[-10:-8]) for f in position.batch]
            assert found.rows["t"].to_list() == [t for number in names for t in (number, -number)]
            assert found.rows["row_num"].to_list() == list(range(read, read + found.rows.height))
            assert found.rows.columns == ["t", "k", "row_num"]
            read += found.rows.height
    assert read > 0


def test_why_a_file_is_set_aside(tmp_path):
    files = Files(str(tmp_path), "parquet", TYPES, streaming=True, remember=DAY)
    tail = Tail(files, COLUMNS)
    put(tmp_path, 1, 10 * DAY)
    assert tail.look(now=0).aside == ()
    for number, at, kind in ((2, 10 * DAY, "foreign"), (3, 10 * DAY, "damaged"), (4, 5 * DAY, "rows")):
        put(tmp_path, number, at, kind)
    found = tail.look(now=0)
    assert found.rows is None
    old, foreign, damaged = found.aside
    assert "is too old: it was modified 5.0 days before" in old
    assert "does not fit the stream: it has no column k" in foreign
    assert "is damaged or not a parquet file" in damaged
    assert tail.look(now=0) is None
    put(tmp_path, 3, 10 * DAY)  # written anew
    assert tail.look(now=0).rows.height == 2


def test_rows_have_the_time_of_the_look_and_it_never_goes_back(tmp_path):
    tail = Tail(Files(str(tmp_path), "parquet", TYPES, streaming=True), COLUMNS, ("arrival_ts",))
    found = []
    for number, now in ((1, 50), (2, 70), (3, 60)):
        put(tmp_path, number, number)
        rows = tail.look(now=now).rows
        found.append(rows["arrival_ts"].to_physical().unique().to_list())
    assert found == [[50], [70], [70]]
    assert tail.position.arrived == 70
