"""Chunks: what is told as changes adds up to the state, frames stay few, writes stay small, freed chunks go."""

import math

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.state.chunks import Chunks
from windrow.spec.names import CHUNK

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
ENTRIES = st.lists(st.tuples(st.integers(-2, 3), st.integers(0, 12)), min_size=1, max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ENTRIES),
        st.tuples(st.just("append"), ENTRIES),
        st.tuples(st.just("free"), st.integers(-3, 4)),
        st.tuples(st.just("changes"), st.none()),
        st.tuples(st.just("restore"), st.none()),
    ),
    max_size=16,
)


def combine(frame):
    return frame.group_by("key").agg(pl.col("rows").sum())


def frame_of(entries):
    """Partials with a key each; within one frame and chunk a key occurs once, as in a lifted frame."""
    frame = pl.DataFrame(entries, schema={CHUNK: pl.Int64, "key": pl.Int64}, orient="row")
    return frame.group_by(CHUNK, "key").agg(pl.len().cast(pl.Int64).alias("rows"))


def contents(chunks):
    """{(chunk, key): rows} over all frames."""
    found = {}
    for chunk, stack in chunks.stacks.items():
        for frame in stack:
            for key, rows in frame.select("key", "rows").rows():
                found[chunk, key] = found.get((chunk, key), 0) + rows
    return found


def apply(disk, changes):
    for name, frame in changes.items():
        if frame is None:
            del disk[name]  # only what was stored is deleted
        else:
            disk[name] = frame


def assert_stored(disk, chunks):
    snapshot = chunks.snapshot()
    assert set(disk) == set(snapshot)
    assert all(frame.equals(snapshot[name]) for name, frame in disk.items())


@CHECK
@given(STEPS)
def test_successive_changes_add_up_to_the_snapshot(steps):
    chunks, disk, model = Chunks(combine), {}, {}
    for what, argument in steps:
        if what == "append":
            chunks.append(frame_of(argument))
            for chunk, key in argument:
                model[chunk, key] = model.get((chunk, key), 0) + 1
        elif what == "free":
            chunks.free_below(argument)
            model = {at: rows for at, rows in model.items() if at[0] >= argument}
        else:
            apply(disk, chunks.changes())
            assert_stored(disk, chunks)
            if what == "restore":
                chunks = Chunks(combine)
                chunks.restore(dict(disk))
        assert contents(chunks) == model
        assert chunks.first() == min((chunk for chunk, _ in model), default=None)
    apply(disk, chunks.changes())
    assert_stored(disk, chunks)
    assert chunks.changes() == {}


@settings(CHECK, max_examples=30)
@given(st.lists(ENTRIES, max_size=20))
def test_each_frame_is_at_least_twice_as_large_as_the_one_above_it(batches):
    chunks = Chunks(combine)
    for entries in batches:
        chunks.append(frame_of(entries))
        for stack in chunks.stacks.values():
            heights = [frame.height for frame in stack]
            assert all(below >= 2 * above for below, above in zip(heights, heights[1:], strict=False))  # noqa: RUF007
            assert len(stack) <= math.log2(sum(heights)) + 1


def test_single_rows_are_rewritten_a_logarithmic_number_of_times():
    chunks, n, written = Chunks(combine), 256, 0
    for key in range(n):
        chunks.append(pl.DataFrame({CHUNK: [0], "key": [key], "rows": [1]}))
        written += sum(frame.height for frame in chunks.changes().values() if frame is not None)
        assert len(chunks.snapshot()) <= math.log2(key + 1) + 1
    assert written <= n * (math.log2(n) + 1)
    assert contents(chunks) == {(0, key): 1 for key in range(n)}


def test_a_few_rows_into_a_large_chunk_write_a_few_rows():
    chunks = Chunks(combine)
    chunks.append(pl.DataFrame({CHUNK: 0, "key": range(10_000), "rows": 1}))
    chunks.changes()
    chunks.append(pl.DataFrame({CHUNK: 0, "key": [1, 2, 3], "rows": 1}))
    assert {name: frame.height for name, frame in chunks.changes().items()} == {"0.1": 3}


def test_equal_keys_in_a_chunk_are_merged_when_frames_are():
    chunks = Chunks(combine)
    for _ in range(10):
        chunks.append(pl.DataFrame({CHUNK: [5], "key": [1], "rows": [1]}))
    assert [f.rows() for f in chunks.below(6)] == [[(1, 10)]]


def test_freed_chunks_disappear_from_state_and_store():
    chunks, disk = Chunks(combine), {}
    chunks.append(frame_of([(-1, 0), (0, 0), (1, 0)]))
    apply(disk, chunks.changes())
    chunks.free_below(1)
    assert {name: frame is None for name, frame in chunks.changes().items()} == {"-1.0": True, "0.0": True}
    assert list(chunks.snapshot()) == ["1.0"]
    assert chunks.below(1) == []
    chunks.free_below(2)
    assert chunks.state_bytes() == 0


def test_a_chunk_that_came_and_went_is_never_written():
    chunks = Chunks(combine)
    chunks.append(frame_of([(0, 0)]))
    chunks.free_below(1)
    assert chunks.changes() == {}


def test_a_chunk_freed_and_filled_again_replaces_what_was_stored():
    chunks, disk = Chunks(combine), {}
    chunks.append(frame_of([(0, key) for key in range(8)]))
    chunks.append(frame_of([(0, 0)]))
    apply(disk, chunks.changes())
    assert set(disk) == {"0.0", "0.1"}
    chunks.free_below(1)
    chunks.append(frame_of([(0, 99)]))
    apply(disk, chunks.changes())
    assert {name: frame.rows() for name, frame in disk.items()} == {"0.0": [(99, 1)]}


def test_below_gives_the_oldest_chunks_first_in_order_of_number():
    chunks = Chunks(combine)
    for chunk in (10, -3, 2, 9):
        chunks.append(frame_of([(chunk, chunk)]))
    assert [frame["key"][0] for frame in chunks.below(10)] == [-3, 2, 9]


def test_levels_are_restored_in_order_even_from_ten_on():
    chunks = Chunks(combine)
    state = {f"0.{level}": pl.DataFrame({"key": [level], "rows": [1]}) for level in range(12)}
    chunks.restore(dict(sorted(state.items())))
    assert [frame["key"][0] for frame in chunks.stacks[0]] == list(range(12))
