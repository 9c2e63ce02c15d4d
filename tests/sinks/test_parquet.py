"""Reading a Parquet sink: only what its log has committed."""

import json

import polars as pl

from windrow.sinks.parquet import committed_files, read_committed


def log(folder, name, files):
    (folder / "_spark_metadata").mkdir(exist_ok=True)
    lines = [json.dumps({"path": f"file://{folder}/{f}", "action": "add"}) for f in files]
    (folder / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def test_leftovers_are_not_read_and_compaction_replaces_what_was_before(tmp_path):
    for i, name in enumerate(["a.parquet", "b.parquet", "leftover.parquet"]):
        pl.DataFrame({"n": [i]}).write_parquet(tmp_path / name)
    log(tmp_path, "0", ["a.parquet"])
    log(tmp_path, "1.compact", ["a.parquet", "b.parquet"])
    log(tmp_path, ".1.compact.crc", [])
    assert [f.name for f in committed_files(tmp_path)] == ["a.parquet", "b.parquet"]
    assert read_committed(tmp_path)["n"].to_list() == [0, 1]
    assert read_committed(tmp_path / "nothing").height == 0
