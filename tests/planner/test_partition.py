"""Where rows go: every row where it must be, once, and every pair of a join in one shard."""

import math
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.planner.partition import SHARD, ByKeys, BySlice, ToAll
from windrow.spec.names import HOME

NAN = float("nan")
CHECK = settings(deadline=None, max_examples=150)
TIMES = st.integers(-(10**6), 10**6) | st.integers(-20, 20)


def numbered(**columns):
    """Rows with a number of their own."""
    frame = pl.DataFrame(columns)
    return frame.with_columns(pl.Series("n", range(frame.height), pl.Int64))


def shards_of(partition, frame, shards):
    """By the number of a row, the shards that it is in; each shard is named once, and has the columns of the frame."""
    found, seen = {}, []
    for shard, part in partition.split(frame, shards):
        assert 0 <= shard < shards
        assert part.height
        assert part.drop(HOME, strict=False).schema == frame.schema
        seen.append(shard)
        for n in part["n"]:
            found.setdefault(n, []).append(shard)
    assert len(seen) == len(set(seen))
    return found


keys = st.tuples(st.sampled_from([None, NAN, -NAN, 0.0, -0.0, 1.5]), st.sampled_from([None, "", "a", "long text" * 3]))


def key(value):
    """What two equal keys have in common."""
    a, b = value
    return ("nan" if a is not None and math.isnan(a) else a), b


@CHECK
@given(st.lists(keys, min_size=1, max_size=40), st.integers(1, 7))
def test_by_keys_every_row_is_in_one_shard_and_equal_keys_are_together(rows, shards):
    frame = numbered(
        a=pl.Series([a for a, _ in rows], dtype=pl.Float64), b=pl.Series([b for _, b in rows], dtype=pl.String)
    )
    found = shards_of(ByKeys(("a", "b")), frame, shards)
    assert sorted(found) == list(range(len(rows)))
    assert all(len(where) == 1 for where in found.values())
    places = {}
    for n, row in enumerate(rows):
        places.setdefault(key(row), set()).add(found[n][0])
    assert all(len(where) == 1 for where in places.values())


def test_by_keys_rows_keep_their_order_and_all_shards_are_used():
    frame = numbered(a=list(range(1000)))
    parts = dict(ByKeys(("a",)).split(frame, 8))
    assert sorted(parts) == list(range(8))
    assert all(part["n"].is_sorted() for part in parts.values())
    assert max(part.height for part in parts.values()) < 200


def test_by_keys_places_never_change():
    """State in a checkpoint stays where it is."""
    frame = numbered(a=[1, 2, 3, None], b=["x", "", None, "y"])
    assert shards_of(ByKeys(("a",)), frame, 5) == {0: [3], 1: [1], 2: [0], 3: [3]}
    assert shards_of(ByKeys(("a", "b")), frame, 5) == {0: [4], 1: [4], 2: [2], 3: [2]}


@pytest.mark.parametrize("partition", [ByKeys(("a",)), ByKeys(), BySlice(5), BySlice(5, before=1, after=1), ToAll()])
def test_no_rows_go_nowhere(partition):
    assert list(partition.split(numbered(a=[1]).with_columns(pl.col("a").alias("@t")).clear(), 3)) == []


def test_without_keys_all_rows_are_in_the_first_shard():
    assert shards_of(ByKeys(), numbered(a=[1, 2, 3]), 4) == {0: [0], 1: [0], 2: [0]}


@CHECK
@given(
    lefts=st.lists(TIMES, min_size=1, max_size=15),
    rights=st.lists(TIMES, min_size=1, max_size=15),
    low=st.integers(-30, 30),
    width=st.integers(0, 60),
    length=st.integers(1, 200),
    shards=st.integers(1, 6),
)
def test_by_time_every_pair_of_a_band_meets_in_exactly_one_shard(lefts, rights, low, width, length, shards):
    high = low + width
    left = shards_of(BySlice(length), numbered(**{"@t": lefts}), shards)
    right = shards_of(BySlice(length, before=high, after=-low), numbered(**{"@t": rights}), shards)
    assert all(len(where) == 1 for where in left.values())
    assert sorted(left) == list(range(len(lefts)))
    for where in right.values():
        assert max(Counter(where).values()) == 1, "a copy twice in one shard would make a pair twice"
    for n, a in enumerate(lefts):
        for m, b in enumerate(rights):
            if low <= b - a <= high:
                assert len(set(left[n]) & set(right[m])) == 1


@CHECK
@given(TIMES, st.integers(1, 50), st.integers(0, 40), st.integers(0, 40))
def test_by_time_a_row_is_copied_to_no_more_shards_than_it_needs(t, length, before, after):
    """With as many shards as slices, it is in those that hold a value from before to after, and in no others."""
    shards = 500
    found = shards_of(BySlice(length, before=before, after=after), numbered(**{"@t": [t]}), shards)[0]
    wanted = {(value // length) % shards for value in range(t - before, t + after + 1)}
    assert set(found) == wanted


def test_by_time_slices_before_zero_are_slices_too():
    frame = numbered(**{"@t": [-11, -10, -1, 0, 9, 10]})
    assert shards_of(BySlice(10), frame, 3) == {0: [1], 1: [2], 2: [2], 3: [0], 4: [0], 5: [1]}


def test_by_time_a_row_near_a_border_is_in_both_slices():
    frame = numbered(**{"@t": [5, 9, 11]})
    assert shards_of(BySlice(10, before=2, after=1), frame, 4) == {0: [0], 1: [0, 1], 2: [0, 1]}


def test_one_copy_of_a_row_is_at_home():
    frame = numbered(**{"@t": [5, 9, 11]})
    for before, after in ((2, 1), (30, -20), (0, 35)):
        parts = [part for _, part in BySlice(10, before=before, after=after).split(frame, 3)]
        assert sorted(pl.concat(parts).filter(HOME)["n"].to_list()) == [0, 1, 2]


def test_a_key_with_many_rows_is_in_every_shard_over_time():
    frame = numbered(a=[7] * 4, **{"@t": [1, 11, 21, 31]})
    first, second, *rest = (where for _, where in sorted(shards_of(BySlice(10, keys=("a",)), frame, 2).items()))
    assert first != second
    assert rest == [first, second]


def test_to_all_every_shard_has_every_row():
    assert shards_of(ToAll(), numbered(a=[7, 8]), 3) == {0: [0, 1, 2], 1: [0, 1, 2]}


def test_the_column_of_the_shard_does_not_leave():
    for partition in (ByKeys(("a",)), BySlice(5)):
        for _, part in partition.split(numbered(a=[1, 2, 9], **{"@t": [1, 7, 20]}), 3):
            assert SHARD not in part.columns


def test_each_says_what_it_does():
    assert [str(p) for p in (ByKeys(("a", "b")), ByKeys(), BySlice(5), BySlice(5, before=1, keys=("a",)), ToAll())] == [
        "hash of a, b",
        "hash of nothing: one group, one shard",
        "slice of time",
        "hash of a and slice of time, copied into both slices near a border",
        "a copy to every shard",
    ]
