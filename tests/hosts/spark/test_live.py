"""The live copy of a shard: exactly the state of one version, or nothing."""

from functools import partial

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.hosts.spark.live import MANIFEST, LiveCopy

FRAMES = st.none() | st.integers(0, 5).map(lambda n: pl.DataFrame({"x": list(range(n))}, schema={"x": pl.Int64}))
STEPS = st.lists(st.dictionaries(st.sampled_from(["a/1.0", "a/1.1", "b", "c d"]), FRAMES), max_size=6)


def never():
    raise AssertionError("the copy is of the version before: nothing else needs to be written")


@settings(deadline=None, derandomize=True, max_examples=60)
@given(STEPS)
def test_after_each_step_it_is_the_state_and_holds_no_other_file(tmp_path_factory, steps):
    copy = LiveCopy(tmp_path_factory.mktemp("live") / "0")
    state, before = {}, None
    for number, changes in enumerate(steps):
        state = {k: v for k, v in {**state, **changes}.items() if v is not None}
        copy.store(before, f"v{number}", changes, partial(dict, state) if before is None else never)
        before = f"v{number}"
        found = copy.load(before)
        assert found is not None
        assert {k: v.rows() for k, v in found.items()} == {k: v.rows() for k, v in state.items()}
        assert copy.load("another") is None
        assert len(list(copy.folder.iterdir())) == 1 + len(state)


def test_a_copy_of_another_version_is_replaced_as_a_whole(tmp_path):
    copy = LiveCopy(tmp_path / "0")
    frame = pl.DataFrame({"x": [1]})
    copy.store(None, "v0", {"a": frame}, lambda: {"a": frame})
    copy.store("v5", "v6", {"b": frame}, lambda: {"b": frame, "c": frame})
    assert sorted(copy.load("v6")) == ["b", "c"]
    assert copy.load("v0") is None


def test_a_damaged_copy_is_not_used(tmp_path):
    copy = LiveCopy(tmp_path / "0")
    frame = pl.DataFrame({"x": list(range(1000))})
    copy.store(None, "v0", {"a": frame}, lambda: {"a": frame})
    [file] = copy.folder.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:-50])
    assert copy.load("v0") is None
    (copy.folder / MANIFEST).write_text("{")
    assert copy.load("v0") is None
