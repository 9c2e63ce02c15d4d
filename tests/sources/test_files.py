"""Files as a source: what is new, what is remembered, what is torn or foreign."""

import json
import os

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import CheckpointError, DataError
from windrow.sources import files as module
from windrow.sources.files import File, Files, Unreadable
from windrow.sources.position import Position, seconds, spread

ROWS = pl.DataFrame({"t": [1, 2, 12], "k": ["a", "b", "a"], "x": [5, 6, 7]})
SECOND = 1_000_000_000


def put(folder, name, frame=ROWS, at=0):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("parquet"):
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    os.utime(path, (at, at))
    return path


def of(folder, kind="parquet"):
    return Files(str(folder), kind).with_columns_of_first()


def test_files_come_by_time_then_name_and_hidden_or_other_ones_do_not_count(tmp_path):
    for name, at in (("b.parquet", 5), ("a.parquet", 5), ("sub/c.parquet", 1), ("_tmp/d.parquet", 0)):
        put(tmp_path, name, at=at)
    put(tmp_path, ".e.parquet")
    put(tmp_path, "f.arrow")
    found = [f.path.rsplit("/", 1)[-1] for f in of(tmp_path).listed()]
    assert found == ["c.parquet", "a.parquet", "b.parquet"]


def test_a_single_file_is_a_stream_too(tmp_path):
    path = put(tmp_path, "one.parquet")
    assert wr.read_parquet(path, progress="t").window(range=10).agg(n=wr.count()).collect().rows() == [
        (0, 10, 2),
        (10, 20, 1),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_and_arrow_streams_hold_the_same_rows(tmp_path, stream):
    path = tmp_path / "rows.arrow"
    (ROWS.write_ipc_stream if stream else ROWS.write_ipc)(path)
    files = of(tmp_path, "arrow")
    assert pl.concat(files.frames(files.listed()[0], ["t", "k", "x"])).equals(ROWS)
    assert wr.read_arrow(tmp_path, progress="t").collect().rows() == ROWS.rows()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_large_files_come_in_pieces(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 10)
    rows = pl.DataFrame({"t": range(35), "k": ["a"] * 35})
    put(tmp_path, f"a.{kind}", rows)
    files = of(tmp_path, kind)
    frames = list(files.frames(files.listed()[0], ["t"]))
    assert [f.height for f in frames] == [10, 10, 10, 5]
    assert pl.concat(frames).equals(rows.select("t"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_an_empty_file_has_no_rows_and_no_problem(tmp_path, kind):
    put(tmp_path, f"a.{kind}", ROWS.clear())
    files = of(tmp_path, kind)
    assert files.problem(files.listed()[0], ["t"]) is None
    assert pl.concat(files.frames(files.listed()[0], ["t"])).height == 0


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_every_torn_file_is_noticed_wherever_it_is_cut(tmp_path, kind):
    path = put(tmp_path, f"a.{kind}", pl.DataFrame({"t": range(3000), "k": [str(i) for i in range(3000)]}))
    files = of(tmp_path, kind)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, max(1, len(whole) // 97)):
        path.write_bytes(whole[:cut])
        [file] = files.listed()
        if files.problem(file, ["t", "k"]) is None:
            with pytest.raises(Unreadable):
                list(files.frames(file, ["t", "k"]))


def test_a_foreign_file_is_named_with_what_differs(tmp_path):
    put(tmp_path, "a.parquet", at=1)
    put(tmp_path, "b.parquet", ROWS.drop("x"), at=2)
    put(tmp_path, "c.parquet", ROWS.with_columns(pl.col("x").cast(pl.String)), at=3)
    files = of(tmp_path)
    assert [files.problem(f, ["t", "k", "x"]) for f in files.listed()] == [
        None,
        f"{tmp_path}/b.parquet does not fit the stream: it has no column x",
        f"{tmp_path}/c.parquet does not fit the stream: its column x is of type String, that of the stream of type "
        "Int64",
    ]


def test_in_process_bad_files_are_set_aside_counted_and_named(tmp_path):
    put(tmp_path, "a.parquet", at=1)
    put(tmp_path, "b.parquet", ROWS.drop("x"), at=2)
    torn = put(tmp_path, "c.parquet", at=3)
    torn.write_bytes(torn.read_bytes()[:-9])
    query = wr.read_parquet(tmp_path, progress="t").window(range=10).agg(n=wr.count(), s=wr.sum("x"))
    assert query.collect().rows() == [(0, 10, 2, 11), (10, 20, 1, 7)]
    reasons = query.bad_rows()["reason"].to_list()
    assert len(reasons) == 2
    assert "does not fit the stream" in reasons[0]
    assert "damaged" in reasons[1]
    run = query.run().read("stream", query.sources["stream"].data)
    assert (run.counts["files_bad"], run.counts["rows_in"], run.counts["rows_bad"]) == (2, 3, 0)


def test_nothing_to_read_says_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="no readable parquet file"):
        wr.read_parquet(tmp_path, progress="t")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match=r"a\.parquet: "):
        wr.read_parquet(tmp_path, progress="t")


# -- positions ---------------------------------------------------------------------------------------------------------
FILES = st.builds(File, st.integers(0, 40).map(lambda s: s * SECOND), st.sampled_from("abcdefgh"), st.integers(1, 3))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.lists(FILES, max_size=4, unique_by=lambda f: f.path), max_size=6), st.integers(1, 4))
def test_each_file_is_read_once_whatever_the_steps_are(arrivals, limit):
    """Files appear in any order within what is remembered; positions go through JSON, as in a checkpoint."""
    there, read = {}, []
    position = Position()
    for arrived in arrivals:
        there.update({f.path: f for f in arrived if f.path not in there})
        while fresh := position.fresh(sorted(there.values()), remember=40)[:limit]:
            position = Position.from_json(position.after(fresh, [], 40).to_json())
            assert list(position.batch) == fresh
            read += [f.path for f in fresh]
    assert sorted(read) == sorted(there)
    assert position.count == len(read)


def test_a_file_that_was_torn_is_read_when_it_is_written_anew():
    torn, whole = File(5 * SECOND, "a", 3), File(6 * SECOND, "a", 9)
    position = Position().after([], [(torn, "torn")], 100)
    assert position.fresh([torn], 100) == []
    assert position.fresh([whole], 100) == [whole]
    assert Position.from_json(position.to_json()) == position


def test_of_files_that_are_gone_those_are_remembered_that_are_not_too_old():
    files = [File(i * SECOND, str(i), 1) for i in range(100)]
    assert len(Position().after(files, [], 10).known) == 11
    position = Position().after(files, [], 10, files[:5])
    assert len(position.known) == 16
    assert position.fresh([*files[:5], *files[-11:]], 10) == []
    old, new = File(50 * SECOND, "new but old", 1), File(95 * SECOND, "new", 1)
    assert position.fresh([old, new], 10) == [old, new]
    assert [position.too_old(f, 10) for f in (old, new)] == [True, False]


def test_a_position_of_version_0_3_goes_on_and_what_it_has_forgotten_counts_as_read():
    """It had only the files of the last ``remember`` seconds; all older ones are still there (issue 11)."""
    files = [File(i * SECOND, str(i), 1) for i in range(100)]
    written = Position().after(files, [], 10).to_json()
    del written["format"]
    position = Position.from_json(written)
    assert position.fresh(files, 10) == []
    new = File(99 * SECOND, "new", 1)
    assert position.fresh([*files, new], 10) == [new]
    position = Position.from_json(position.after([new], [], 10, [*files, new]).to_json())
    assert position.fresh([*files, new], 10) == []
    assert position.fresh([File(50 * SECOND, "old", 1)], 10) != []
    with pytest.raises(CheckpointError, match="format 3"):
        Position.from_json({**written, "format": 3})


def test_a_position_of_another_source_is_refused_with_what_to_do():
    with pytest.raises(CheckpointError, match="spark-parquet"):
        Position.from_json({"logOffset": 3})


def test_files_are_spread_by_size_and_none_is_lost():
    files = [File(0, str(i), size) for i, size in enumerate([100, 1, 1, 1, 90, 1])]
    parts = spread(files, 2)
    assert sorted(f for part in parts for f in part) == sorted(files)
    assert {sum(f.size for f in part) for part in parts} == {100, 94}
    assert spread([], 3) == []
    assert len(spread(files, 99)) == 6


def test_times_before_1970_and_after_2106_are_as_old_and_as_new_as_it_gets():
    files = [File(-5, "a", 1), File(2**62, "b", 1)]
    assert [seconds(f) for f in files] == [0, 2**32 - 1]
    assert Position.from_json(Position().after(files, [], 10, files).to_json()).fresh(files, 10) == []


def test_options_are_checked(tmp_path):
    put(tmp_path, "a.parquet")
    with pytest.raises(wr.QueryError, match="max_files"):
        wr.read_parquet(tmp_path, progress="t", max_files=0)
    with pytest.raises(wr.QueryError, match="not a column"):
        wr.read_parquet(tmp_path, progress="ts")


def test_timestamps_with_other_units_are_instants(tmp_path):
    stamps = pa.table({"t": pa.array([1_000, 2_000], pa.timestamp("ms", "Europe/Berlin"))})
    pl.DataFrame(stamps).write_parquet(tmp_path / "a.parquet")
    s = wr.read_parquet(tmp_path, progress="t")
    assert s.schema["t"] == pl.Datetime("us", "UTC")
    assert s.window(range="1 second").agg(n=wr.count()).collect()["n"].to_list() == [1, 1]


def test_a_position_knows_when_files_came_and_numbers_their_rows():
    files = [File(i, f"{i}.parquet", 1) for i in range(4)]
    first = Position().after(files[:2], [], 100, now=500, sizes=[3, 0])
    assert (first.arrived, first.rows, first.first) == (500, 3, (0, 3))
    again = Position.from_json(json.loads(json.dumps(first.to_json())))
    assert again == first
    second = again.after(files[2:], [], 100, now=400, sizes=[2, 5])  # the clock went back, and the position does not
    assert (second.arrived, second.rows, second.first) == (500, 10, (3, 5))
    assert not {"arrived", "rows", "first"} & Position().after(files, [], 100).to_json().keys()
