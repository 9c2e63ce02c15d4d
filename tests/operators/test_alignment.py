"""Where rows of an aligned join go, against the definition of the windows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.operators.ring.alignment import Alignment, Segments, master_of, usual_length
from windrow.windows.multiway import Ranges

MOST = 5
lengths = st.integers(1, 12)


@st.composite
def segmented(draw):
    """Segments whose length, and whose number of nodes, have changed."""
    segments = Segments()
    for start in draw(st.lists(st.integers(-30, 30), min_size=1, max_size=4).map(sorted)):
        segments = segments.changed(draw(lengths), draw(st.integers(1, MOST)), start, -100)
    return segments


def owner(segments, at):
    """The node of a place, by the definition."""
    _, length, nodes = next(epoch for epoch in reversed(segments.epochs) if epoch[0] <= at)
    return at // length % nodes


@given(segmented(), lengths, lengths, st.integers(-40, 40))
def test_a_row_goes_to_all_nodes_with_rows_that_it_can_meet_and_to_no_other(segments, master, slave, time):
    alignment = Alignment(Ranges((slave, master)), 1, segments)
    near = {owner(segments, at) for at in range(-80, 80) if alignment.ranges.near([time, at])}
    [goes] = alignment.nodes(0, np.array([time]), np.array([0]), MOST)
    assert set(np.flatnonzero(goes)) == near
    [own] = alignment.nodes(1, np.array([time]), np.array([0]), MOST)
    assert np.flatnonzero(own).tolist() == [owner(segments, time)]


@given(segmented(), st.integers(-40, 40))
def test_segments_before_what_is_needed_are_forgotten_and_the_others_stay(segments, needed):
    _, length, nodes = segments.epochs[-1]
    later = segments.changed(length, nodes, 99, needed)
    assert all(owner(later, at) == owner(segments, at) for at in range(needed, 90))
    assert len([start for start, *_ in later.epochs if start <= needed]) <= 1


def test_where_nobody_knows_how_long_a_row_is_held_every_node_has_it():
    one = np.array([7])
    for ranges, stream in (Ranges((3, 9), (True, False)), 0), (Ranges((9, 3), (False, True)), 0):
        master = 1
        alignment = Alignment(ranges, master, Segments().changed(4, 2, 0, 0))
        assert alignment.nodes(stream, one, one, 3).tolist() == [[True, True, True]]


def test_the_master_has_most_rows_of_those_with_windows_of_time():
    assert master_of(Ranges((5, 5, 5)), [3, 8, 8]) == 1
    assert master_of(Ranges((5, 5, 5), (False, True, True)), [3, 8, 8]) == 0
    assert master_of(Ranges((5, 5), (True, True)), [3, 8]) == 1


def test_the_usual_length_is_long_beside_the_windows_in_the_same_unit():
    assert usual_length(Ranges((7, 20))) == 100
    assert usual_length(Ranges((7, 20), (False, True))) == 35
    assert usual_length(Ranges((7, 20), (True, True))) == 100
