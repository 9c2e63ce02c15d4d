"""What the file source decides for an offset: which files a step reads and sets aside. No Spark is started."""

import os
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

import windrow as wr
from windrow.hosts.spark.files import Task, _StreamReader
from windrow.hosts.spark.side import _BadRows, _BadRowsOfFiles
from windrow.sources.arriving import TornError, readable
from windrow.sources.files import File, Files, Unreadable
from windrow.sources.position import Position

ROWS = pl.DataFrame({"t": range(3000), "k": [f"h{i % 7}" if i % 5 else None for i in range(3000)]})
SECOND = 1_000_000_000


def reader(files, columns=("t", "k")):
    return _StreamReader(
        SimpleNamespace(
            files=files, job=SimpleNamespace(columns=columns, stamps=(), recorded=(), waiting=None), tasks=2
        )
    )


def step(stream, start, limit=None):
    """One step, and its position; None if there is nothing to do."""
    end = stream.latestOffset(start, ReadAllAvailable() if limit is None else ReadMaxFiles(limit))
    return (end, Position.from_json(end)) if end != start else (end, None)


def put(folder, name, at, frame=ROWS, damage=lambda data: data):
    frame.write_parquet(folder / name)
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    os.utime(folder / name, (at, at))


def spoiled(data):
    """The pages of the first column; head and foot are as they were."""
    return data[:40] + bytes(80) + data[120:]


def test_a_file_damaged_inside_is_set_aside_once_and_read_when_it_is_written_anew(tmp_path):
    """It could not be before: the offset took it for read before anybody had looked at its pages (issue 11)."""
    files = Files(str(tmp_path), "parquet", tuple({"t": pl.Int64(), "k": pl.String()}.items()), streaming=True)
    stream = reader(files)
    put(tmp_path, "a.parquet", 10)
    put(tmp_path, "b.parquet", 11, damage=spoiled)
    assert files.problem(files.listed()[1], ["t"]) is None  # its head is fine
    start, position = step(stream, stream.initialOffset())
    assert [f.path[-9:] for f in position.batch] == ["a.parquet"]
    assert [f.path[-9:] for f, _ in position.aside] == ["b.parquet"]
    assert step(stream, start)[1] is None
    put(tmp_path, "a.parquet", 12)  # read before: not again
    put(tmp_path, "b.parquet", 13)
    start, position = step(stream, start)
    assert ([f.path[-9:] for f in position.batch], position.aside) == (["b.parquet"], ())
    put(tmp_path, "b.parquet", 14, damage=spoiled)  # neither that
    assert step(stream, start)[1] is None


def test_damage_in_a_column_that_the_query_does_not_need_does_no_harm(tmp_path):
    files = Files(str(tmp_path), "parquet", tuple({"t": pl.Int64(), "k": pl.String()}.items()), streaming=True)
    put(tmp_path, "a.parquet", 10, damage=spoiled)
    _, position = step(reader(files, ("k",)), reader(files).initialOffset())
    assert (len(position.batch), position.aside) == (1, ())
    put(tmp_path, "a.parquet", 10, ROWS.with_columns(n=pl.col("t")), damage=spoiled)
    query = wr.read_parquet(tmp_path, progress="n").window(range=3000).agg(k=wr.count("k"))
    assert query.collect().rows() == [(0, 3000, 2400)]  # in process, too
    assert query.bad_rows().height == 0
    steps = query.plan().reads()[0].steps[:1]
    job = _BadRowsOfFiles(
        _BadRows(steps, 0, "s", pa.schema([("n", pa.int64()), ("reason", pa.string())])), None, ("n", "k")
    )
    found = job.run(Task(0, files.listed()), query.sources["stream"].data)
    assert sum(batch.num_rows for batch in found) == 0


@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_whatever_bytes_are_damaged_a_file_is_readable_or_torn(tmp_path, compression):
    """Polars panics over some of them, which no ``except Exception`` catches (issue 11)."""
    ROWS.write_parquet(tmp_path / "a.parquet", compression=compression)
    files = Files(str(tmp_path), "parquet").with_columns_of_first()
    whole = (tmp_path / "a.parquet").read_bytes()
    chance = random.Random(11)
    for _ in range(120):
        at, size = chance.randrange(4, len(whole) - 8), chance.choice([1, 4, 40])
        data = bytearray(whole)
        data[at : at + size] = chance.randbytes(min(size, len(data) - 8 - at))
        (tmp_path / "a.parquet").write_bytes(data)
        [file] = files.listed()
        verdict = files.problem(file, ["t", "k"], pages=True)
        try:
            rows = pl.concat(readable(files, file, ["t", "k"]))
        except TornError:
            assert verdict is not None
        else:
            assert verdict is None
            assert rows.height == ROWS.height


def test_a_panic_counts_as_unreadable():
    assert issubclass(pl.exceptions.PanicException, Unreadable)


def test_a_file_that_turns_up_too_old_is_set_aside_once_with_the_reason(tmp_path):
    """It was passed over without a word (issue 11)."""
    query = wr.read_parquet(tmp_path, "t", schema="t BIGINT, k STRING", streaming=True, remember="1 day")
    stream = reader(query.sources["stream"].data)
    day = 86_400
    put(tmp_path, "a.parquet", 10 * day)
    put(tmp_path, "b.parquet", 11 * day)
    put(tmp_path, "c.parquet", 12 * day)  # at the first start nothing is too old, however few are read at a time
    start = stream.initialOffset()
    for name in ("a", "b", "c"):
        start, position = step(stream, start, 1)
        assert [f.path[-9:] for f in position.batch] == [f"{name}.parquet"]
    put(tmp_path, "old.parquet", 9 * day)
    put(tmp_path, "new.parquet", 11 * day)
    start, position = step(stream, start)
    assert [f.path[-11:] for f in position.batch] == ["new.parquet"]
    [(_, reason)] = position.aside
    assert "old.parquet is too old: it was modified 3.0 days before the newest file" in reason
    assert step(stream, start)[1] is None
    os.utime(tmp_path / "old.parquet", (12 * day, 12 * day))  # as the reason says
    _, position = step(stream, start)
    assert [f.path[-11:] for f in position.batch] == ["old.parquet"]


# -- any order of events -----------------------------------------------------------------------------------------------
REMEMBER = 10


@dataclass
class Folder:
    """Files that exist in memory only: by path, when they were written, and whether head and pages are whole."""

    there: dict[str, tuple[File, str]] = field(default_factory=dict)
    remember: int = REMEMBER
    max_files: int | None = None

    def listed(self):
        return sorted(file for file, _ in self.there.values())

    def problem(self, file, needed, pages=False):
        state = self.there[file.path][1]
        return "torn" if state == "torn" or (state == "spoiled" and pages) else None


EVENT = st.tuples(st.sampled_from("abcdef"), st.integers(0, 40), st.sampled_from(["whole", "whole", "torn", "spoiled"]))


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(st.one_of(EVENT, st.integers(1, 3)), max_size=25))
def test_each_path_is_read_once_whole_and_each_bad_attempt_is_told_once(events):
    """Files are written and written anew at any time, with any time, whole or damaged; steps come in between, and each
    is planned twice, as after a kill.
    """
    folder, written, read, told = Folder(), 0, [], []
    stream = reader(folder)
    start = stream.initialOffset()

    def run(limit):
        nonlocal start
        end, position = step(stream, start, limit)
        if position is None:
            return False
        assert [t.files for t in stream.partitions(start, end)] == [t.files for t in stream.partitions(start, end)]
        for file in position.batch:
            assert folder.there[file.path] == (file, "whole")
            read.append(file.path)
        told.extend(file for file, _ in position.aside)
        start = end
        return True

    for event in [*events, 1]:
        if isinstance(event, int):
            run(event)
        else:
            path, at, state = event
            written += 1
            folder.there[path] = File(at * SECOND, path, written), state
    while run(2):
        pass
    assert len(read) == len(set(read))
    assert len(told) == len(set(told))
    for path, (file, _) in folder.there.items():
        assert path in read or file in told
