"""A checkpoint stands where it was written, until ``windrow checkpoint move`` takes it elsewhere. Issue 11."""

import json
import os
import shutil

import polars as pl
import pytest
from typer.testing import CliRunner

import windrow as wr
from windrow.cli import app
from windrow.errors import CheckpointError
from windrow.hosts.spark.checkpoint import check
from windrow.hosts.spark.place import move
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

run = CliRunner().invoke


def made(folder, operators=2):
    """A checkpoint in miniature, with the files that name its place."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"x"}')
    for number in range(operators):
        schema = folder / "state" / str(number) / "_stateSchema" / "default" / f"0_{number}"
        schema.parent.mkdir(parents=True)
        schema.write_text("v3\n..")
        store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [f"file:{schema}"]}
        for version in ("0", "3"):
            file = folder / "state" / str(number) / "_metadata" / "v2" / version
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("v2\n" + json.dumps({"operatorInfo": {"operatorId": number}, "stateStoreInfo": [store]}))
    return folder


def schemas(folder):
    """The paths that Spark would read."""
    files = [f for f in folder.glob("state/*/_metadata/v2/*") if not f.name.startswith(".")]
    infos = [json.loads(f.read_text().split("\n", 1)[1])["stateStoreInfo"] for f in files]
    return [path.removeprefix("file:") for info in infos for store in info for path in store["stateSchemaFilePaths"]]


def stands(folder):
    check(folder)
    assert len(schemas(folder)) == 4
    assert all(path.startswith(f"{folder}/state/") and os.path.isfile(path) for path in schemas(folder))


def test_one_that_stands_where_it_was_written_passes_by_any_name(tmp_path, monkeypatch):
    made(tmp_path / "a")
    stands(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    check(tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    check("a")


@pytest.mark.parametrize("take", [shutil.move, shutil.copytree])
def test_one_that_was_moved_or_copied_is_refused_with_the_command_that_mends_it(tmp_path, take):
    old, new = made(tmp_path / "the old"), tmp_path / "new"
    take(old, new)
    with pytest.raises(CheckpointError) as error:
        wr.check_checkpoint(new)
    assert f"windrow checkpoint move '{old}' {new}" in str(error.value)
    assert run(app, ["checkpoint", "move", str(old), str(new)]).exit_code == 0
    stands(new)
    assert old.exists() == (take is shutil.copytree)
    if old.exists():
        stands(old)  # a copy takes nothing from it


def test_a_folder_is_moved_whole_and_the_one_of_its_bad_rows_with_it(tmp_path):
    old, new = made(tmp_path / "old"), tmp_path / "there" / "new"
    made(tmp_path / "old-bad-rows", operators=0)
    result = run(app, ["checkpoint", "move", f"file://{old}", str(new)])
    assert result.exit_code == 0, result.output
    result = run(app, ["checkpoint", "move", str(new), str(tmp_path / "newer")])
    assert sorted(line.split()[0] for line in result.output.splitlines()) == ["moved", "moved"]
    stands(tmp_path / "newer")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["newer", "newer-bad-rows", "there"]
    for name in ("newer", "newer-bad-rows"):
        again = run(app, ["checkpoint", "move", str(new), str(tmp_path / name)])
        assert "nothing to do" in again.output


def test_over_file_systems_it_is_copied_first(tmp_path, monkeypatch):
    old, new = made(tmp_path / "old"), tmp_path / "new"
    rename = type(old).rename

    def refuse(self, target):
        if self == old:
            raise OSError(18, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(type(old), "rename", refuse)
    assert move(old, new) == f"moved {old} to {new}"
    stands(new)
    assert [p.name for p in tmp_path.iterdir()] == ["new"]


def test_checksums_fit_the_new_content(tmp_path):
    old, new = made(tmp_path / "old"), tmp_path / ("long" * 50)
    move(old, new)
    sums = sorted(new.glob("state/*/_metadata/v2/.*.crc"))
    assert len(sums) == 4
    assert len(sums[0].read_bytes()) == 8 + 4 * -(-(new / "state/0/_metadata/v2/0").stat().st_size // 512)
    check(new)
    (new / "state/0/_metadata/v2/0").write_text("v2\n{}")
    with pytest.raises(CheckpointError, match="torn"):
        check(new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nothing", "new", "is not the checkpoint of a streaming query"),
        ("a", "full", "already exists"),
        ("a", "a/inside", "is inside"),
        ("a", "b", "nothing in it names another place"),
        ("a", "copy-of-b", "was written at .*/b and not at .*/a"),
        ("hdfs://host/a", "new", "only a local folder"),
        ("a", "s3a://bucket/a", "only a local folder"),
        ("b", "half", "not copied whole"),
    ],
)
def test_what_cannot_be_moved_is_refused_with_the_reason(tmp_path, old, new, message):
    made(tmp_path / "a")
    made(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "copy-of-b")
    shutil.copytree(tmp_path / "b", tmp_path / "half", ignore=shutil.ignore_patterns("_stateSchema"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "holiday.jpg").touch()
    given = [text if "://" in text else str(tmp_path / text) for text in (old, new)]
    with pytest.raises(CheckpointError, match=message):
        move(*given)
    stands(tmp_path / "a")
    stands(tmp_path / "b")


def test_a_copy_from_another_file_system_is_mended(tmp_path):
    made(tmp_path / "a")
    for file in tmp_path.glob("a/state/*/_metadata/v2/*"):
        file.write_text(file.read_text().replace(f"file:{tmp_path}", "hdfs://host/x"))
    with pytest.raises(CheckpointError, match="windrow checkpoint move hdfs://host/x/a "):
        check(tmp_path / "a")
    move("hdfs://host/x/a", tmp_path / "a")
    stands(tmp_path / "a")


@pytest.mark.spark
def test_a_query_with_two_stateful_operators_goes_on_elsewhere(spark, tmp_path):
    rows = pl.DataFrame({"t": range(200), "k": ["abc"[i % 3] for i in range(200)]})
    (tmp_path / "in").mkdir()

    def query(source):
        s = wr.stream(source, progress="t", slack=0, name="s")
        return s.window(10).group_by("k").agg(n=wr.count()).window(40).agg(total=wr.sum("n"))

    def ran(state):
        source = spark.readStream.schema("t BIGINT, k STRING").parquet(str(tmp_path / "in"))
        writer = query(source).to_spark(2).writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer.option("checkpointLocation", str(state)).trigger(availableNow=True).start().awaitTermination()

    rows[:100].write_parquet(tmp_path / "in" / "0.parquet")
    ran(tmp_path / "old place")
    move(tmp_path / "old place", tmp_path / "new place")
    check(tmp_path / "new place")
    rows[100:].write_parquet(tmp_path / "in" / "1.parquet")
    ran(tmp_path / "new place")
    check(tmp_path / "new place")
    whole = query(rows).collect()
    found = read_committed(tmp_path / "out")
    compare(found, whole.filter(pl.col("window_end") <= found["window_end"].max()))
    assert found["window_end"].max() >= 160
