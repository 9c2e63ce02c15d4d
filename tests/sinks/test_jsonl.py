"""The JSON-lines sink: a micro-batch counts once, however often and however badly it was written before."""

import pytest

from windrow.errors import CheckpointError
from windrow.sinks.jsonl import JsonLines


def test_batches_are_appended(tmp_path):
    sink = JsonLines(tmp_path / "deep" / "out.jsonl")
    sink.write(0, ["1", "2"])
    sink.write(1, [])
    sink.write(2, ["3"])
    assert sink.path.read_text() == "1\n2\n3\n"


def test_a_repeated_batch_replaces_itself(tmp_path):
    sink = JsonLines(tmp_path / "out.jsonl")
    sink.write(0, ["1"])
    sink.write(1, ["2", "3"])
    JsonLines(tmp_path / "out.jsonl").write(1, ["2", "3"])
    assert sink.path.read_text() == "1\n2\n3\n"


def test_a_half_written_batch_is_cut_off(tmp_path):
    sink = JsonLines(tmp_path / "out.jsonl")
    sink.write(0, ["1"])
    sink.write(1, ["22222"])
    with sink.path.open("r+b") as torn:  # the crash came in the middle of the line
        torn.truncate(4)
    JsonLines(tmp_path / "out.jsonl").write(1, ["22222"])
    assert sink.path.read_text() == "1\n22222\n"


def test_a_file_of_another_run_is_refused(tmp_path):
    JsonLines(tmp_path / "out.jsonl").write(5, ["1"])
    with pytest.raises(CheckpointError, match="do not belong together"):
        JsonLines(tmp_path / "out.jsonl").write(0, ["1"])


def test_a_torn_note_is_named(tmp_path):
    sink = JsonLines(tmp_path / "out.jsonl")
    sink.write(0, ["1"])
    sink.note.write_text("{")
    with pytest.raises(CheckpointError, match=r"\.out\.jsonl\.batch is damaged"):
        sink.write(1, ["2"])
