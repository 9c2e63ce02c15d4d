"""Slices: rows in few pieces, which keep no more memory than they need; rows picked as the definition says."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from windrow.operators import Ring
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Wishes
from windrow.operators.ring.messages import Payload
from windrow.operators.ring.picking import picked
from windrow.operators.ring.slices import MANY, NUMBER, TIME, Slice
from windrow.progress import Punctuation
from windrow.windows.multiway import Ranges


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


def test_rows_that_nobody_has_looked_at_are_read_when_somebody_does():
    seen, unseen = Slice(), Slice()
    for at in range(0, 60, 3):
        rows = pl.DataFrame({"@n": [at, at + 1, at + 2], "@t": [at, at, at + 2], "x": [f"{at}", None, "y"]})
        seen.append(rows)
        written = bytes(Payload(rows).packed(lambda data: (data, 0))[0])
        unseen.take(Payload(None, written), np.array([at, at + 1, at + 2]), np.array([at, at, at + 2]))
        if at % 15 == 0:
            for state in (seen, unseen):
                state.forget(at - 4)
    assert unseen.height == seen.height
    assert unseen.younger(50) == seen.younger(50) == 51
    assert unseen.frame.equals(seen.frame)
    assert unseen.between(43, 52).equals(seen.between(43, 52))


def test_what_is_written_ahead_of_time_is_what_leaves():
    found = []
    for ahead in (False, True):
        ring = Ring(Joining(Ranges((30, 30)), (("a",), ("b",))), Wishes(most=4, nodes=4))
        for node in ring.nodes.values():
            node.ahead = ahead
        rows = []
        for time in range(150):
            port = time * 7 % 3 % 2
            ring.on_batch(port, pl.DataFrame({"@t": [time], "ab"[port]: [time]}))
            for each in (0, 1):
                items = ring.on_punctuation(each, Punctuation(time + 1))
                rows += [row for item in items if isinstance(item, pl.DataFrame) for row in item.rows()]
        state = {name: frame.rows() for name, frame in ring.snapshot().items() if name != "node0"}
        found.append((sorted(rows), state))
        assert any(node._ready for node in ring.nodes.values()) == ahead
    assert found[0] == found[1]
    assert len(found[0][0]) > 500
