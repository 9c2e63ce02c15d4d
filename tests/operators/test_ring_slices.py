"""Slices: rows in few pieces, which keep no more memory than they need; rows picked as the definition says."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InternalError
from windrow.operators.ring.head import check_slices
from windrow.operators.ring.picking import picked
from windrow.operators.ring.slices import MANY, NUMBER, TIME, Slice


def rows(first, count, size=1):
    numbers = range(first, first + count)
    return pl.DataFrame({NUMBER: numbers, TIME: numbers, "blob": [bytes([n % 256]) * size for n in numbers]})


def test_rows_that_come_one_by_one_are_in_few_pieces():
    state = Slice()
    for n in range(1000):
        state.append(rows(n, 1))
    assert state.frame.n_chunks() <= MANY
    assert state.frame.equals(rows(0, 1000))
    state.forget(990)
    state.append(rows(1000, 5))
    assert state.frame.equals(rows(990, 15))
    assert state.numbers.tolist() == state.times.tolist() == [*range(990, 1005)]


def test_what_has_left_keeps_no_memory_after_the_round():
    state = Slice()
    state.append(rows(0, 1000, size=1000))
    state.start = 990
    state.changes()
    blobs = state.frame["blob"].to_arrow(compat_level=pl.CompatLevel.newest())
    assert sum(buffer.size for buffer in blobs.buffers() if buffer is not None) < 20_000
    assert state.frame.equals(rows(990, 10, size=1000))


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_picked_rows_are_those_at_the_places(pieces, data):
    frame = pl.concat([rows(sum(pieces[:n]), count) for n, count in enumerate(pieces)], rechunk=False)
    at = data.draw(
        st.lists(st.integers(0, frame.height - 1), max_size=8)
        | st.tuples(st.integers(0, frame.height - 1), st.integers(1, 4)).map(lambda x: [x[0]] * x[1])
        | st.integers(1, frame.height).map(lambda n: [*range(n)])
    )
    found = picked(frame, ["blob", NUMBER], np.array(at, np.int64))
    assert [column.name for column in found] == ["blob", NUMBER]
    assert pl.DataFrame(found).rows() == [frame.select("blob", NUMBER).row(n) for n in at]


@pytest.mark.parametrize("stop", [6, 8])
def test_a_row_that_is_live_at_two_nodes_or_at_none_is_an_error_while_it_runs(stop):
    between = {"start": [7], "stop": [0], "live": [0]}  # a node that only passes on
    reports = [{"start": [7], "stop": [9], "live": [2]}, between, {"start": [4], "stop": [stop], "live": [3]}]
    with pytest.raises(InternalError, match=f"stream 0 from row 7 on, and node 2 has it up to row {stop}"):
        check_slices(reports)
