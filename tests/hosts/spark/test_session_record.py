"""What a session does with its checkpoint."""

from windrow.hosts.spark.session_record import committed, forget_uncommitted


def test_state_of_micro_batches_without_a_commit_is_removed(tmp_path):
    state = tmp_path / "state" / "1" / "0"
    for folder in (tmp_path / "commits", state / "_metadata", state / "SSTs"):
        folder.mkdir(parents=True)
    for batch in (0, 1, 10):
        (tmp_path / "commits" / str(batch)).touch()
    kept = ["1.zip", "1.changelog", "11.changelog", ".11.changelog.crc", "11_2b.zip", "_metadata", "SSTs"]
    gone = ["12.changelog", ".12.changelog.crc", "12.zip", "12_2b.zip", ".12.changelog.9a.TID1.tmp", "12.delta"]
    for name in [*kept[:-2], *gone]:
        (state / name).touch()
    forget_uncommitted(tmp_path)
    assert sorted(p.name for p in state.iterdir()) == sorted(kept)
    assert committed(tmp_path) == 10


def test_before_the_first_commit_no_state_counts(tmp_path):
    state = tmp_path / "state" / "0" / "0"
    state.mkdir(parents=True)
    (state / "1.zip").touch()
    forget_uncommitted(tmp_path)
    assert not list(state.iterdir())


def test_a_first_offset_that_was_not_finished_is_removed(tmp_path):
    """Spark takes a folder of offsets without any for the checkpoint of something else, and refuses it."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.1b2c.tmp").touch()
    forget_uncommitted(tmp_path)
    assert not (tmp_path / "offsets").exists()
    (tmp_path / "offsets").mkdir()
    for name in ("0", ".0.crc"):
        (tmp_path / "offsets" / name).touch()
    forget_uncommitted(tmp_path)
    assert len(list((tmp_path / "offsets").iterdir())) == 2
